"""Re-hash every object, resolve every reference, compare the index.

The report tells apart: missing (referred to, not there), corrupt (there, and not what it says), index (the
index says otherwise than the objects), orphaned (whole, and nothing refers to it), foreign (not ours).
The first three are damage and end with status 1. Nothing is repaired or removed, except that --rebuild
makes the index anew; a catalog that cannot be opened is then moved aside, and what is lost is named.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import TYPE_CHECKING

from contextplane.cli.exit import FAILED, OK
from contextplane.cli.progress import Bar
from contextplane.cli.screen import Screen, clean, human_size

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.app.repair import Repaired

__all__ = ["add_arguments", "run"]

_COLOR = {"missing": "red", "corrupt": "red", "index": "yellow", "orphaned": "dim", "foreign": "dim"}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rebuild", action="store_true", help="make the index anew from the objects first")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.platform import opened
    from contextplane.app.repair import repaired
    from contextplane.app.settings import from_environment

    if args.rebuild:
        with repaired(from_environment()) as done:
            _tell_rebuild(done, screen)
            return _check(done.platform, screen, done)
    with opened(from_environment()) as platform:
        return _check(platform, screen, None)


def _check(platform: "Platform", screen: Screen, done: "Repaired | None") -> int:
    from contextplane.store.fsck import DAMAGE, fsck
    from contextplane.store.status import contents

    bar = Bar(screen, contents(platform.catalog).objects)
    counts: Counter[str] = Counter()
    findings = []
    for finding in fsck(platform.catalog, platform.entries, platform.objects, bar.step):
        bar.clear()
        counts[finding.state] += 1
        if screen.json:
            findings.append(finding)
        screen.say(
            f"{screen.paint(_COLOR[finding.state], f'{finding.state:<9}')} {clean(finding.what)}  {clean(finding.why)}"
        )
        for name in finding.needed_by:
            screen.say(f"          needed by {clean(name)}")
    bar.clear()
    damage = sum(counts[state] for state in DAMAGE)
    told = ", ".join(f"{counts[state]} {state}" for state in _COLOR)
    screen.say(f"{bar.objects:,} objects, {human_size(bar.bytes)} checked: {told}")
    screen.say(screen.paint("red", "The store is damaged.") if damage else screen.paint("green", "The store is sound."))
    screen.answer(
        {
            "sound": not damage,
            "objects": bar.objects,
            "bytes": bar.bytes,
            "counts": {state: counts[state] for state in _COLOR},
            "findings": findings,
            "rebuilt": done.rebuilt if done else None,
            "lost": done.loss if done else None,
        }
    )
    return FAILED if damage else OK


def _tell_rebuild(done: "Repaired", screen: Screen) -> None:
    loss = done.loss
    if loss is not None:
        screen.say(screen.paint("yellow", f"The catalog could not be used: {clean(loss.why)}"))
        if loss.moved_to:
            screen.say(f"It was moved to {clean(loss.moved_to)}")
        screen.say(f"Saved from it: {loss.saved_events:,} events of {len(loss.saved_streams):,} streams")
        screen.say("Lost for ever is every other event that it held:")
        for line in loss.truth:
            screen.say(f"  {line}")
    screen.say(f"Index made anew: {done.rebuilt.packs:,} execution packs, {done.rebuilt.objects:,} objects")
