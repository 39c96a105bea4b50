"""Runs a command line: finds the verb, parses, runs, and turns errors into exit statuses."""

import sys
from typing import ClassVar, TextIO

from contextplane.app.settings import from_environment
from contextplane.cli.exit import EXIT_OF, FAILED, OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.parser import Usage, Verb, parser_of
from contextplane.cli.table import VERBS
from contextplane.errors import ContextPlaneError

__all__ = ["Defect", "run"]


class Defect(ContextPlaneError):
    """Something went wrong that was not foreseen: a defect of contextplane."""

    code: ClassVar[str] = "internal_error"


_GLOBAL = frozenset({"--json", "--quiet", "--no-color"})


def run(argv: list[str]) -> int:
    """Run one command line, and return its exit status. Every error of ours ends here, as one line."""
    # A name that is not text is shown escaped rather than ending the command.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    output = CommandOutput(json="--json" in argv, color=_has_color(argv, sys.stderr))
    try:
        return _run(argv)
    except ContextPlaneError as error:
        output.error(error)
        return EXIT_OF[error.family]
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except UnicodeEncodeError as error:
        # A path may have any bytes. Only the code that uses an argument knows whether it must be text.
        wrong = [argument for argument in argv if not _is_text(argument)]
        if not wrong:
            return _defect(error, output)
        output.error(Usage(f"not UTF-8, and only a path may be: {ascii(wrong[0])[:80]}"))
        return EXIT_OF[Usage.family]
    except Exception as error:  # noqa: BLE001  the last resort: a defect ends in one line, too
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
    # A full disk behind standard output, for example, is no defect of ours.
    if isinstance(error, OSError):
        raise error
    output.error(Defect(f"{type(error).__name__}: {error}", hint="please report it; CTX_DEBUG=1 shows where"))
    return FAILED


def _run(argv: list[str]) -> int:
    name, arguments = _split(argv)
    if name in {"--version", "-V"}:
        from contextplane import __version__

        sys.stdout.write(f"ctx {__version__}\n")
        return OK
    if name in {"--help", "-h"} or "--help" in arguments or "-h" in arguments:
        from contextplane.cli.help import help_width, top_help, verb_help

        sys.stdout.write(top_help(VERBS) if name in {"--help", "-h"} else verb_help(_verb(name), help_width()))
        return OK
    verb = _verb(name)
    args = parser_of(verb).parse_args(arguments)
    args.summaries = {other.name: other.summary for other in VERBS}  # no verb knows the others by itself
    color = not args.json and _has_color(argv, sys.stdout)
    return verb.load().run(args, CommandOutput(json=args.json, quiet=args.quiet, color=color))


def _has_color(argv: list[str], stream: TextIO) -> bool:
    return "--no-color" not in argv and stream.isatty() and not from_environment().no_color


def _split(argv: list[str]) -> tuple[str, list[str]]:
    """Return the verb and its arguments. Options of all verbs may also stand before the verb."""
    at = 0
    while at < len(argv) and argv[at] in _GLOBAL:
        at += 1
    if at == len(argv):
        raise Usage("which verb?", hint="see 'ctx --help'")
    if argv[at] == "help" and len(argv) > at + 1:
        return argv[at + 1], ["--help"]
    return argv[at], argv[:at] + argv[at + 1 :]


def _verb(name: str) -> Verb:
    for verb in VERBS:
        if verb.name == name:
            return verb
    from contextplane.model.suggestion import closest_name

    near = closest_name(name, (verb.name for verb in VERBS))
    hint = f"did you mean 'ctx {near}'?" if near else "see 'ctx --help'"
    raise Usage(f"no such verb: {name[:80]!r}", hint=hint)
