"""List execution packs, newest first.

By when a run was created, then by when it was packed. A pack whose manifest was tampered with, or cannot be
read, is listed all the same, and marked. SINCE is a date (2026-05-04), a moment (2026-05-04T09:30:00Z) or a
time span back from now (36h, 14d); a run that tells no time is older than any. --unfinished lists
recordings that did not become a pack yet, the newest first: 'ctx finalize' makes a pack of one. With REF, a
handoff pack, it is the history of that: every revision, also when it was deleted or is expired; with a
version in the registry, id@X.Y.Z or id@NAME, everything that happened to it, who did it and why.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.parsing import LIMIT, NO_LIMIT, limit_of
from contextplane.cli.screen import Screen, clean, counted

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.model.timestamp import Timestamp
    from contextplane.ports.pack_index import PackFilter, PackRow

__all__ = ["add_arguments", "run"]

_WIDEST = 40


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", nargs="?", help="the history of pk_<id> or id@X.Y.Z instead")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--limit", type=limit_of, metavar="N", help=f"at most N packs (default: {LIMIT})")
    how_many.add_argument("--all", action="store_true", help="all of them")
    how_many.add_argument("--unfinished", action="store_true", help="recordings that are no packs yet, all of them")
    parser.add_argument("--since", metavar="SINCE", help="created at that time or later")
    parser.add_argument("--model", metavar="ID", help="of this model")
    parser.add_argument("--tool", metavar="NAME", help="with a step that used this tool")
    parser.add_argument("--parent", metavar="REF", help="forked from this pack")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.opening import opening

    if args.ref is not None:
        return _history(args, screen)
    if args.unfinished:
        return _unfinished(args, screen)
    with opening(screen) as platform:
        limit = NO_LIMIT if args.all else args.limit or LIMIT
        wanted = _filter(args, platform)
        with platform.catalog.read() as view:
            rows = view.packs.page(wanted, limit + 1)
        cut, rows = len(rows) > limit, rows[:limit]
        lines = [(row, _problem(row, platform)) for row in rows]
        widest = min(max((len(clean(row.model)) for row in rows), default=0), _WIDEST)
        for row, problem in lines:
            screen.entry(f"ctx://{row.digest.hex}", _line(row, problem, screen, widest))
    if not rows:
        screen.say("No execution packs.")
    if cut:
        screen.warn(f"only the newest {counted(limit, 'pack')} of more; --limit N or --all shows them")
    screen.answer({"packs": [_told(row, problem) for row, problem in lines], "more": cut})
    return OK


def _history(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.naming import named_handoff
    from contextplane.cli.parser import Usage
    from contextplane.cli.registry.naming import names_version

    for option in ("limit", "all", "unfinished", "since", "model", "tool", "parent"):
        if getattr(args, option):
            raise Usage(f"argument --{option}: not allowed with argument REF", hint="see 'ctx log --help'")
    if names_version(args.ref):
        from contextplane.cli.registry.events import log

        return log(args, screen)
    handoff = named_handoff(args.ref)
    if handoff is None:
        raise Usage(
            "only handoff packs and versions have a history",
            at=args.ref[:80],
            hint="write pk_<id> or id@X.Y.Z; 'ctx show' tells what a run is a fork of",
        )
    from contextplane.cli.handoffs.history import log as handoff_log

    return handoff_log(str(handoff), screen)


def _unfinished(args: Namespace, screen: Screen) -> int:
    from contextplane.app.recording import desk_of
    from contextplane.cli.moments import second
    from contextplane.cli.opening import opening
    from contextplane.cli.parser import Usage
    from contextplane.record.unfinished import unfinished

    for option in ("since", "model", "tool", "parent"):
        if getattr(args, option) is not None:
            raise Usage(f"argument --unfinished: not allowed with argument --{option}", hint="see 'ctx log --help'")
    with opening(screen, following=False) as platform:
        found = unfinished(desk_of(platform))
    for one in found:
        told = f"{one.id}  {second(one.begun)}  {clean(one.model)}  {counted(one.steps, 'step')}"
        problem = screen.paint("red", f"  [{clean(one.problem)}]") if one.problem else ""
        screen.entry(str(one.id), told + problem)
    if not found:
        screen.say("No unfinished recordings.")
    screen.answer(
        {
            "recordings": [
                {
                    "id": str(one.id),
                    "begun": str(one.begun),
                    "model": one.model,
                    "steps": one.steps,
                    "problem": one.problem or None,
                }
                for one in found
            ]
        }
    )
    return OK


def _filter(args: Namespace, platform: "Platform") -> "PackFilter":
    from contextplane.cli.naming import named_pack
    from contextplane.ports.pack_index import PackFilter

    return PackFilter(
        since=_since(args.since, platform) if args.since else None,
        model=args.model,
        tool=args.tool,
        parent=named_pack(args.parent, platform) if args.parent else None,
    )


def _since(text: str, platform: "Platform") -> "Timestamp":
    from contextplane.cli.verbs.gc import duration
    from contextplane.model.timestamp import InvalidTimestamp, Timestamp

    try:
        return Timestamp.of(platform.clock.now() - duration(text))
    except ArgumentTypeError:
        pass
    try:
        return Timestamp.parse(text if "T" in text else f"{text}T00:00:00Z")
    except InvalidTimestamp:
        from contextplane.cli.parser import Usage

        raise Usage(
            f"argument --since: not a time: {text[:40]!r}", hint="2026-05-04, 2026-05-04T09:30:00Z, 36h or 14d"
        ) from None


def _problem(row: "PackRow", platform: "Platform") -> str:
    """What is wrong with a pack's manifest now: it may have been tampered with since it was indexed."""
    condition = platform.objects.check(row.digest)
    if condition.state == "whole":
        return row.problem
    return condition.why if condition.state == "unreadable" else f"{condition.state}: {condition.why}"


def _line(row: "PackRow", problem: str, screen: Screen, widest: int) -> str:
    from contextplane.cli.moments import second

    parent = f" (forked from {row.parent.hex[:12]})" if row.parent else ""
    told = f"{row.digest.hex[:12]}  {second(row.created)}  {clean(row.model):<{widest}}  {counted(row.steps, 'step')}"
    return f"{told}{parent}" + (screen.paint("red", f"  [{clean(problem)}]") if problem else "")


def _told(row: "PackRow", problem: str) -> dict[str, object]:
    return {
        "ref": f"ctx://{row.digest.hex}",
        "created": str(row.created),
        "model": row.model,
        "steps": row.steps,
        "tools": row.tools,
        "parent": f"ctx://{row.parent.hex}" if row.parent else None,
        "problem": problem or None,
    }
