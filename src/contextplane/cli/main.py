"""The entry point of `ctx`. The lightest answers are given here, before anything else is imported."""

import gc
import sys

__all__ = ["console", "main"]

_BROKEN_PIPE, _INTERRUPTED = 141, 130
_SELDOM = 100_000


def console() -> None:
    """Run the console script: run, flush, and exit with the status."""
    # Imports make very many values that stay, and no cycles to speak of: looking for them takes a tenth of the time.
    gc.set_threshold(_SELDOM)
    try:
        if None in (sys.stdin, sys.stdout, sys.stderr):
            _replace_closed_streams()
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except BrokenPipeError:
        status = _BROKEN_PIPE  # the reader of the output has left
    except OSError as error:
        sys.stderr.write(f"ctx: output_failed: {error.strerror or error}\n")
        status = 1
    _leave(status)


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
    if argv == ["mcp"]:
        # An agent waits for its first answer: no parser either.
        from contextplane.mcp.main import run as serve

        return serve()
    if argv[:1] == ["__complete"]:
        # A shell asks while somebody types.
        return _complete(argv[1:])
    from contextplane.cli.dispatch import run

    return run(argv)


def _complete(words: list[str]) -> int:
    """Print what the last word may become. Nothing that goes wrong is shown."""
    from contextplane.cli.completion import complete
    from contextplane.cli.table import VERBS

    try:
        candidates = list(complete(words, VERBS))
    except Exception:  # noqa: BLE001  an error would stand between the words that a person types
        return 0
    # A name with a control character is none that can be typed.
    lines = [line for line in candidates if line.replace("\t", "").isprintable()]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _replace_closed_streams() -> None:
    """Occupy the descriptors of closed standard streams, or the next opened file would get one of them.

    Reading a closed input and writing to a closed output fail, as they should. Text for a closed error stream is lost.
    """
    import os

    # The system hands out the lowest free descriptor first: in this order each stream gets its own.
    if sys.stdin is None:
        os.open(os.devnull, os.O_WRONLY)
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115  until the end
    if sys.stderr is None:
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")  # noqa: SIM115


def _leave(status: int) -> None:
    """Exit, also if buffered output cannot be written any more: that was reported, or there is no reader."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    gc.freeze()  # the process ends: the interpreter need not look for cycles once more
    sys.exit(status)
