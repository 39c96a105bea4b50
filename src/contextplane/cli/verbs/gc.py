"""Remove unreferenced objects that are older than a grace time.

Only objects of a recorded kind are considered, by recorded references. Objects that are of unknown kind, damaged or
unreadable are never removed; 'ctx fsck' lists them. If the references of a registered pack are unknown, or the index
lacks something that must be kept, nothing is removed. The command waits up to ten seconds for other processes that
write. Do not run it while a program without locks packs into the same store.

A handoff pack is removed if it was deleted, or expired beyond use, longer than SPAN ago. The longest time counts for
which a server of this store was set to serve expired packs. Each removed pack is named.

SPAN is a number and a unit: 90s, 30m, 24h, 14d, 2w.

Examples:
  ctx gc --dry-run     list what would be removed
  ctx gc --grace 2w    keep the last two weeks
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import timedelta

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, human_size, quantity

__all__ = ["add_arguments", "duration", "run"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DIGITS = 9
_LONGEST = 36_500 * 86_400


def duration(text: str) -> timedelta:
    """Parse a time span: 90s, 30m, 24h, 14d, 2w."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and len(number) <= _DIGITS:
        seconds = int(number) * _UNITS[unit]
        if seconds <= _LONGEST:
            return timedelta(seconds=seconds)
    raise ArgumentTypeError(f"not a time span: {text[:20]!r} (write 90s, 30m, 24h, 14d or 2w)")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="list what would be removed, and remove nothing")
    parser.add_argument(
        "--grace",
        type=duration,
        default=timedelta(days=14),
        metavar="SPAN",
        help="keep objects stored within this time (default: 14d)",
    )


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.maintenance import collect_garbage
    from contextplane.app.settings import from_environment
    from contextplane.cli.store import open_store

    with open_store(output) as platform:
        result = collect_garbage(platform, from_environment(), grace=args.grace, dry_run=args.dry_run)
    verb = "would remove" if args.dry_run else "removed"
    for digest in result.objects:
        output.entry(str(digest), f"{verb}  {digest}")
    for pack in result.handoffs:
        revisions = quantity(len(pack.revisions), "revision")
        output.entry(str(pack.id), f"{verb}  {pack.id}  a handoff pack with {revisions}, {pack.why}")
    for name in result.leftovers:
        output.line(f"{verb}  objects/{name}  left behind by an interrupted write")
    for digest in result.young:
        output.line(f"kept  {digest}  stored within the grace time")
    for name in result.unfinished:
        output.line(f"kept  objects/{name}  an unfinished write that is too young, or still in progress")
    for digest in result.damaged:
        output.failure_line(f"kept  {digest}  damaged or unreadable; it may be the only copy")
    handoffs = f" {quantity(len(result.handoffs), 'handoff pack')}" if result.handoffs else ""
    output.line(
        f"{verb} {quantity(len(result.objects), 'object')}, {human_size(result.freed)},"
        f"{handoffs} and {quantity(len(result.leftovers), 'leftover')};"
        f" kept {len(result.young):,} young, {len(result.damaged):,} damaged"
    )
    output.answer(
        {
            "dry_run": args.dry_run,
            "removed": [str(digest) for digest in result.objects],
            "handoffs": [
                {"id": pack.id.text, "why": pack.why, "revisions": pack.revisions} for pack in result.handoffs
            ],
            "size": result.freed,
            "leftovers": result.leftovers,
            "kept_young": [str(digest) for digest in result.young],
            "kept_damaged": [str(digest) for digest in result.damaged],
            "kept_unfinished": result.unfinished,
        }
    )
    return OK
