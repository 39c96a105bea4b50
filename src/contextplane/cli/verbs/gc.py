"""Remove what nothing refers to and what is older than a grace time.

Only objects whose kind is recorded are looked at, along recorded references; an object of unknown kind is
never collected ('ctx fsck' lists it as orphaned), nor is a damaged one. While what a registered pack refers
to is unknown, nothing is collected at all. Do not run it while another program that knows no locks packs
into the same store. SPAN is a number and a unit: 90s, 30m, 24h, 14d, 2w.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import timedelta

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, counted, human_size

__all__ = ["add_arguments", "duration", "run"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DIGITS = 9
_LONGEST = 36_500 * 86_400


def duration(text: str) -> timedelta:
    """A time span as people write it: 90s, 30m, 24h, 14d, 2w."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and len(number) <= _DIGITS:
        seconds = int(number) * _UNITS[unit]
        if seconds <= _LONGEST:
            return timedelta(seconds=seconds)
    raise ArgumentTypeError(f"not a time span: {text[:20]!r} (write 90s, 30m, 24h, 14d or 2w)")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, remove nothing")
    parser.add_argument(
        "--grace",
        type=duration,
        default=timedelta(days=14),
        metavar="SPAN",
        help="keep what was put within this time (default: 14d)",
    )


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.opening import opening
    from contextplane.store.gc import gc

    with opening(screen) as platform:
        limit = platform.clock.now() - args.grace
        done = gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=args.dry_run)
    verb = "would remove" if args.dry_run else "removed"
    for digest in done.objects:
        screen.say(f"{verb}  {digest}")
    for name in done.leftovers:
        screen.say(f"{verb}  objects/{name}  left behind by an interrupted write")
    for digest in done.young:
        screen.say(f"kept  {digest}  put within the grace time")
    for digest in done.damaged:
        screen.say(f"kept  {digest}  it is damaged, and may be all that is left of something")
    screen.say(
        f"{verb} {counted(len(done.objects), 'object')}, {human_size(done.freed)},"
        f" and {counted(len(done.leftovers), 'leftover')};"
        f" kept {len(done.young):,} young, {len(done.damaged):,} damaged"
    )
    screen.answer(
        {
            "dry_run": args.dry_run,
            "removed": [str(digest) for digest in done.objects],
            "size": done.freed,
            "leftovers": done.leftovers,
            "kept_young": [str(digest) for digest in done.young],
            "kept_damaged": [str(digest) for digest in done.damaged],
        }
    )
    return OK
