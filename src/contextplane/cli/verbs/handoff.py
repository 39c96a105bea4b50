"""Look at handoff packs: what agents pass on to each other, anchored to lines of code.

list shows those that can be had, newest first; expired ones only with --freshness expired. read shows one as
its readers see it, with the code as it is now, in colour on a terminal: as a reviewer, or with --profile as
another agent. show is a summary: its revisions, what is frozen, its sections, and what became of the lines
that its refs point at. log is everything that happened to it, also when it was deleted or is expired, until
'ctx gc' takes it. export writes it with all its revisions up to the named one to FILE, as 'ctx export' does.

PACK is pk_<id>, a revision of it as pk_<id>@3, or a name. A finalized revision is frozen: later writes make
new revisions, and it stays what its digest says. Handoff packs cannot be signed yet.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from contextplane.cli.options import LIMIT, limit_of
from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]

_LIST = ("all", "status", "freshness", "query")
_READ = ("profile", "contains")
_TAKES = {
    "list": frozenset({*_LIST, "limit", "offset"}),
    "read": frozenset({*_READ, "limit", "offset"}),
    "show": frozenset[str](),
    "log": frozenset[str](),
    "export": frozenset({"output"}),
}
_OPTIONS = sorted(frozenset[str]().union(*_TAKES.values()))
_MOST_DIGITS = 9


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(_TAKES), help="what to do")
    parser.add_argument("ref", metavar="PACK", nargs="?", help="the pack; list takes none")
    both = parser.add_argument_group("list and read")
    both.add_argument("--limit", type=limit_of, metavar="N", help=f"at most N packs (default: {LIMIT}), or N chunks")
    both.add_argument("--offset", type=_offset, metavar="N", help="leave out the first N")
    listing = parser.add_argument_group("list")
    listing.add_argument("--all", action="store_true", help="all of them")
    listing.add_argument("--status", choices=("draft", "finalized"), help="of this status")
    listing.add_argument("--freshness", choices=("fresh", "expiring_soon", "expired"), help="in this state")
    listing.add_argument("--query", metavar="TEXT", help="with this text in title, name or brief")
    reading = parser.add_argument_group("read")
    reading.add_argument("--profile", choices=("reviewer", "orchestrator", "executor"), help="as this reader sees it")
    reading.add_argument("--contains", metavar="TEXT", help="only the chunks that contain this text")
    writing = parser.add_argument_group("export")
    writing.add_argument("-o", "--output", metavar="FILE", help="where to write, - for standard output")


def run(args: Namespace, output: CommandOutput) -> int:
    _check(args)
    if args.what == "list":
        from contextplane.cli.handoff.read import list_packs

        return list_packs(args, output)
    if args.what == "read":
        from contextplane.cli.handoff.read import read_pack

        return read_pack(args, output)
    if args.what == "show":
        from contextplane.cli.handoff.show import show

        return show(args.ref, output)
    if args.what == "log":
        from contextplane.cli.handoff.show import log

        return log(args.ref, output)
    from contextplane.cli.verbs.export import export

    return export([], output, handoffs=[args.ref], path=args.output)


def _check(args: Namespace) -> None:
    """Refuse arguments that belong to another action."""
    from contextplane.cli.parser import Usage

    hint = "see 'ctx handoff --help'"
    if (args.ref is None) != (args.what == "list"):
        raise Usage("list takes no pack" if args.what == "list" else f"{args.what} needs a PACK", hint=hint)
    for name in _OPTIONS:
        if getattr(args, name) not in (None, False) and name not in _TAKES[args.what]:
            raise Usage(f"argument --{name}: not allowed with {args.what}", hint=hint)
    if args.all and args.limit:
        raise Usage("argument --all: not allowed with argument --limit", hint=hint)
    if args.what == "export" and args.output is None:
        raise Usage("the following arguments are required: -o/--output", hint=hint)


def _offset(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    raise ArgumentTypeError(f"not a number: {text[:20]!r}")
