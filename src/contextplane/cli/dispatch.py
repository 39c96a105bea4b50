"""From a command line to an exit status: find the verb, parse, run, report. It knows no verb by name."""

import sys
from typing import ClassVar, TextIO

from contextplane.app.settings import from_environment
from contextplane.cli.exit import EXIT_OF, FAILED, OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.parser import Usage, Verb, parser_of, top_help, whole_parser
from contextplane.cli.table import VERBS
from contextplane.errors import ContextPlaneError

__all__ = ["Defect", "run"]


class Defect(ContextPlaneError):
    """Something went wrong that nobody foresaw: a defect of contextplane."""

    code: ClassVar[str] = "internal_error"


_GLOBAL = frozenset({"--json", "--quiet", "--no-color"})


def run(argv: list[str]) -> int:
    """Run one command line. Every error that we know of ends a command here, with one line."""
    # A name that is not text is shown escaped rather than ending the command.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    output = CommandOutput(json="--json" in argv, color=_colored(argv, sys.stderr))
    try:
        return _run(argv)
    except ContextPlaneError as error:
        output.error(error)
        return EXIT_OF[error.family]
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except UnicodeEncodeError as error:
        # A path may be of any bytes. Of what is text, only the place where it is used knows that it is.
        wrong = [one for one in argv if not _is_text(one)]
        if not wrong:
            return _defect(error, output)
        output.error(Usage(f"not UTF-8, and only a path may be: {ascii(wrong[0])[:80]}"))
        return EXIT_OF[Usage.family]
    except Exception as error:  # noqa: BLE001  the last resort: what nobody foresaw ends in one line, too
        return _defect(error, output)


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _defect(error: Exception, output: CommandOutput) -> int:
    if from_environment().debug:
        raise error
    # Writing to a full disk that standard output leads to, for example, is no defect of ours.
    if isinstance(error, OSError):
        raise error
    output.error(Defect(f"{type(error).__name__}: {error}", hint="please report it; CTX_DEBUG=1 shows where"))
    return FAILED


def _run(argv: list[str]) -> int:
    name, rest = _split(argv)
    if name in {"--help", "-h", "--version", "-V"}:
        from contextplane import __version__

        sys.stdout.write(f"ctx {__version__}\n" if name in {"--version", "-V"} else top_help(VERBS))
        return OK
    verb = _verb(name)
    parser = parser_of(verb)
    if "--help" in rest or "-h" in rest:
        sys.stdout.write(parser.format_help())
        return OK
    args = parser.parse_args(rest)
    args.whole_parser = lambda: whole_parser(VERBS)  # what no verb can know by itself: all the others
    color = not args.json and _colored(argv, sys.stdout)
    return verb.load().run(args, CommandOutput(json=args.json, quiet=args.quiet, color=color))


def _colored(argv: list[str], stream: TextIO) -> bool:
    return "--no-color" not in argv and stream.isatty() and not from_environment().no_color


def _split(argv: list[str]) -> tuple[str, list[str]]:
    """The verb and what follows it; options that every verb takes may also stand before it."""
    ahead = 0
    while ahead < len(argv) and argv[ahead] in _GLOBAL:
        ahead += 1
    if ahead == len(argv):
        raise Usage("which verb?", hint="see 'ctx --help'")
    if argv[ahead] == "help" and len(argv) > ahead + 1:
        return argv[ahead + 1], ["--help"]
    return argv[ahead], argv[:ahead] + argv[ahead + 1 :]


def _verb(name: str) -> Verb:
    for verb in VERBS:
        if verb.name == name:
            return verb
    from contextplane.model.suggestion import closest_name

    near = closest_name(name, (verb.name for verb in VERBS))
    hint = f"did you mean 'ctx {near}'?" if near else "see 'ctx --help'"
    raise Usage(f"no such verb: {name[:80]!r}", hint=hint)
