"""Where `ctx` begins. The two lightest answers are given here, before anything else is imported."""

import sys

__all__ = ["console", "main"]


def console() -> None:
    """The console script: run, and leave with the exit status."""
    sys.exit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    if argv in (["--version"], ["-V"]):
        from contextplane import __version__

        sys.stdout.write(f"ctx {__version__}\n")
        return 0
    if not argv or argv in (["--help"], ["-h"], ["help"]):
        # Rendered ahead by `make docs`, so that asking for help costs no parser.
        with open(__file__.removesuffix("main.py") + "help.txt", encoding="utf-8") as file:
            sys.stdout.write(file.read())
        return 0
    from contextplane.cli.shell import run

    return run(argv)
