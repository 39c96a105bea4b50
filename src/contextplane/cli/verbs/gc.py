"""Remove what nothing refers to and what is older than a grace time.

Only objects whose kind is recorded are looked at, along recorded references; an object of unknown kind is
never collected ('ctx fsck' lists it as orphaned). While a registered pack cannot be read, nothing is
collected at all. Do not run it while another program that knows no locks packs into the same store.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import timedelta

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, human_size

__all__ = ["add_arguments", "duration", "run"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DIGITS = 9
_LONGEST = 36_500


def duration(text: str) -> timedelta:
    """A time span as people write it: 90s, 30m, 24h, 14d, 2w."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and len(number) <= _DIGITS:
        span = timedelta(**{_UNITS[unit]: int(number)})
        if span.days <= _LONGEST:
            return span
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
    from contextplane.app.platform import opened
    from contextplane.app.settings import from_environment
    from contextplane.store.gc import gc

    with opened(from_environment()) as platform:
        limit = platform.clock.now() - args.grace
        done = gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=args.dry_run)
    verb = "would remove" if args.dry_run else "removed"
    for digest in done.objects:
        screen.say(f"{verb}  {digest}")
    for name in done.leftovers:
        screen.say(f"{verb}  objects/{name}  left behind by an interrupted write")
    for digest in done.kept:
        screen.say(f"kept  {digest}  put within the grace time")
    screen.say(
        f"{verb} {len(done.objects):,} objects, {human_size(done.freed)}, and {len(done.leftovers):,} leftovers;"
        f" kept {len(done.kept):,} within the grace time"
    )
    screen.answer(
        {
            "dry_run": args.dry_run,
            "removed": [str(digest) for digest in done.objects],
            "freed": done.freed,
            "leftovers": done.leftovers,
            "kept": [str(digest) for digest in done.kept],
        }
    )
    return OK
