"""From a command line to an exit status: find the verb, parse, run, report. It knows no verb by name."""

import os
import sys

from contextplane.cli.exit import BROKEN_PIPE, EXIT_OF, INTERRUPTED, OK
from contextplane.cli.parser import Usage, parser_of, whole_parser
from contextplane.cli.screen import Screen
from contextplane.cli.table import VERBS
from contextplane.cli.verb import Verb
from contextplane.errors import ContextPlaneError

__all__ = ["run"]

_GLOBAL = frozenset({"--json", "--quiet", "--no-color"})


def run(argv: list[str]) -> int:
    """Run one command line. Everything that ends a command ends it here."""
    # A name that is not text is shown escaped rather than ending the command.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    screen = Screen(json="--json" in argv)
    try:
        status = _run(argv)
        sys.stdout.flush()
    except ContextPlaneError as error:
        screen.error(error)
        return EXIT_OF[error.family]
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has left. Nothing more can be written, also not by the interpreter as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status


def _run(argv: list[str]) -> int:
    name, rest = _split(argv)
    verb = _verb(name)
    parser = parser_of(verb)
    if "--help" in rest or "-h" in rest:
        sys.stdout.write(parser.format_help())
        return OK
    args = parser.parse_args(rest)
    args.whole_parser = lambda: whole_parser(VERBS)  # what no verb can know by itself: all the others
    return verb.load().run(args, _screen(args.json, args.quiet, no_color=args.no_color))


def _screen(json: bool, quiet: bool, *, no_color: bool) -> Screen:  # noqa: FBT001
    from contextplane.app.settings import from_environment

    color = not (json or no_color) and sys.stdout.isatty() and not from_environment().no_color
    return Screen(json=json, quiet=quiet, color=color)


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
    import difflib

    near = difflib.get_close_matches(name, [verb.name for verb in VERBS], n=1)
    hint = f"did you mean 'ctx {near[0]}'?" if near else "see 'ctx --help'"
    raise Usage(f"no such verb: {name[:80]!r}", hint=hint)
