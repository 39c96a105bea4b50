"""List execution packs, newest first.

By when a run was created, then by when it was packed. A pack whose manifest was tampered with, or cannot
be read, is listed all the same, and marked. SINCE is a date (2026-05-04), a moment (2026-05-04T09:30:00Z)
or a time span back from now (36h, 14d).
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, clean, counted

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.model.timestamp import Timestamp
    from contextplane.ports.pack_index import PackFilter, PackRow

__all__ = ["add_arguments", "run"]

_DEFAULT, _MOST = 50, 1_000_000


def _limit(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < len(str(_MOST)) and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"not a number of lines: {text[:20]!r} (from 1 to {_MOST - 1})")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=_limit, default=_DEFAULT, metavar="N", help=f"at most N packs (default: {_DEFAULT})"
    )
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--since", metavar="SINCE", help="created at that time or later")
    parser.add_argument("--model", metavar="ID", help="of this model")
    parser.add_argument("--tool", metavar="NAME", help="with a step that used this tool")
    parser.add_argument("--parent", metavar="REF", help="forked from this pack")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.opening import opening

    with opening(screen) as platform:
        limit = _MOST if args.all else args.limit
        wanted = _filter(args, platform)
        with platform.catalog.read() as view:
            rows = view.packs.page(wanted, limit + 1)
        cut, rows = len(rows) > limit, rows[:limit]
        lines = [(row, _problem(row, platform)) for row in rows]
        for row, problem in lines:
            screen.say(_line(row, problem, screen))
    if not rows:
        screen.say("No execution packs.")
    if cut:
        screen.note(f"only the newest {counted(limit, 'pack')} of more; --limit N or --all shows them")
    screen.answer({"packs": [_told(row, problem) for row, problem in lines], "more": cut})
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
    from contextplane.model.timestamp import Timestamp

    try:
        return Timestamp.of(platform.clock.now() - duration(text))
    except ArgumentTypeError:
        return Timestamp.parse(text if "T" in text else f"{text}T00:00:00Z")


def _problem(row: "PackRow", platform: "Platform") -> str:
    """What is wrong with a pack's manifest now: it may have been tampered with since it was indexed."""
    condition = platform.objects.check(row.digest)
    return row.problem if condition.state == "whole" else f"{condition.state}: {condition.why}"


def _line(row: "PackRow", problem: str, screen: Screen) -> str:
    parent = f" (forked from {row.parent.hex[:12]})" if row.parent else ""
    created = str(row.created)[: len("2026-05-04T09:31:42")].replace("T", " ")
    told = f"{row.digest.hex[:12]}  {created}  {clean(row.model)}  {counted(row.steps, 'step')}"
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
