"""List, read, write, extend and export handoff packs, which agents pass to each other.

  list      list available packs, newest first; with --expired also those that have expired.
  read      print a pack as its readers see it, with the current code: as a reviewer, or as --profile says.
            With --follow again whenever the pack or its code changes, until Ctrl-C.
  write     store the document in FILE (JSON, or YAML by its extension; - for standard input) as a new pack. With
            --update it becomes the next revision of a pack, if that still has the revision that you name.
  show      summarize a pack: its revisions, what is finalized, its sections, and the state of the code it refers to.
            With --html as a page for a browser, with links into the code.
  log       list everything that happened to a pack, also if it was deleted or has expired, until 'ctx gc' removes it.
  extend    move the deadline of a pack by --by; if it has expired, from now on. A pack that has expired can be revived
            until 'ctx gc' removes it.
  export    write a pack with its revisions up to the named one to FILE, as 'ctx export' does.

PACK is pk_<id>, one revision as pk_<id>@3, or a name. A finalized revision never changes: later writes make new
revisions. Handoff packs cannot be signed yet.

Examples:
  ctx handoff list                                       list available packs
  ctx handoff read refund-limit                          print one
  ctx handoff write findings.yaml                        store a new one
  ctx handoff write edited.json --update pk_abcd2345@3   replace revision 3
  ctx handoff show pk_abcd2345                           summarize one
  ctx handoff read refund-limit --follow                 watch it while agents write
  ctx handoff show refund-limit --html                   print a page for a browser
  ctx handoff log pk_abcd2345                            list its events
  ctx handoff extend pk_abcd2345 --by 3d                 give it three more days
  ctx handoff export pk_abcd2345@3 -o handoff.tar        write it to a file
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from contextplane.cli.options import LIMIT, limit_of
from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]

_LIST = ("all", "status", "freshness", "expired", "query")
_READ = ("profile", "contains", "follow")
_TAKES = {
    "list": frozenset({*_LIST, "limit", "offset"}),
    "read": frozenset({*_READ, "limit", "offset"}),
    "write": frozenset({"update", "dry_run"}),
    "show": frozenset({"html"}),
    "log": frozenset[str](),
    "extend": frozenset({"by"}),
    "export": frozenset({"output"}),
}
_OPTIONS = sorted(frozenset[str]().union(*_TAKES.values()))
_MOST_DIGITS = 9


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(_TAKES), help="the action")
    parser.add_argument("ref", metavar="PACK|FILE", nargs="?", help="the pack; for write the file; none for list")
    both = parser.add_argument_group("list and read")
    both.add_argument("--limit", type=limit_of, metavar="N", help=f"at most N packs (default: {LIMIT}), or N chunks")
    both.add_argument("--offset", type=_offset, metavar="N", help="skip the first N")
    listing = parser.add_argument_group("list")
    listing.add_argument("--all", action="store_true", help="list all")
    listing.add_argument("--status", choices=("draft", "finalized"), help="only packs of this status")
    listing.add_argument(
        "--freshness", choices=("fresh", "expiring_soon", "expired"), help="only packs of this freshness"
    )
    listing.add_argument("--expired", action="store_true", help="list expired packs too, until they are collected")
    listing.add_argument("--query", metavar="TEXT", help="only packs with this text in title, name, brief or tags")
    reading = parser.add_argument_group("read")
    reading.add_argument(
        "--profile", choices=("reviewer", "orchestrator", "executor"), help="as this reader sees it (default: reviewer)"
    )
    reading.add_argument("--contains", metavar="TEXT", help="only chunks that contain this text")
    reading.add_argument("--follow", action="store_true", help="print it again whenever the pack or its code changes")
    showing = parser.add_argument_group("show")
    showing.add_argument("--html", action="store_true", help="print a page for a browser, with links into the code")
    writing = parser.add_argument_group("write")
    writing.add_argument(
        "--update", metavar="PACK", help="the pack to update, at the revision that you edited: pk_<id>@3"
    )
    writing.add_argument("--dry-run", action="store_true", help="check everything, store nothing")
    extending = parser.add_argument_group("extend")
    extending.add_argument(
        "--by", type=_minutes, metavar="TIME", help="90m, 36h or 7d (default: the life of a new pack, CTX_HANDOFF_TTL)"
    )
    exporting = parser.add_argument_group("export")
    exporting.add_argument("-o", "--output", metavar="FILE", help="the file to write, - for standard output")


def run(args: Namespace, output: CommandOutput) -> int:
    _check(args)
    if args.what == "list":
        from contextplane.cli.handoff.packs import list_packs

        return list_packs(args, output)
    if args.what == "read":
        from contextplane.cli.handoff.read import read_pack

        return read_pack(args, output)
    if args.what in ("write", "extend"):
        from contextplane.cli.handoff.write import extend, write_pack

        return write_pack(args, output) if args.what == "write" else extend(args, output)
    if args.what == "show":
        from contextplane.cli.handoff.show import show

        return show(args.ref, output, html=args.html)
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
        needed = "FILE" if args.what == "write" else "PACK"
        raise Usage("list takes no pack" if args.what == "list" else f"{args.what} needs a {needed}", hint=hint)
    for name in _OPTIONS:
        if getattr(args, name) not in (None, False) and name not in _TAKES[args.what]:
            raise Usage(f"argument --{name.replace('_', '-')}: not allowed with {args.what}", hint=hint)
    if args.all and args.limit:
        raise Usage("argument --all: not allowed with argument --limit", hint=hint)
    for name in ("follow", "html"):
        if getattr(args, name) and args.json:
            raise Usage(f"argument --{name}: not allowed with argument --json", hint=hint)
    if args.what == "export" and args.output is None:
        raise Usage("the following arguments are required: -o/--output", hint=hint)


def _minutes(text: str) -> int:
    from contextplane.app.settings import minutes_of

    minutes = minutes_of(text)
    if minutes is None:
        raise ArgumentTypeError(f"not a time: {text[:20]!r} (such as 90m, 36h or 7d, at most 1825d)")
    return minutes


def _offset(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    raise ArgumentTypeError(f"not a number: {text[:20]!r}")
