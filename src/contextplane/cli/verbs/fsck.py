"""Check the whole store: hash every object, resolve every reference, compare the index.

Problems are one of:
  missing       something refers to it, and it is not there
  corrupt       its bytes do not match its digest
  unreadable    the system cannot read it
  index         the index disagrees with the objects
  orphaned      intact, but unreferenced: left by an unfinished command, for example. 'ctx gc' removes it later, unless
                its kind is unknown.
  foreign       not a file of the store
  absent        the parent of a fork, which was imported without it

The first four end with status 1. Damaged objects are named by run and part if they are known, and the report ends with
how to repair them. Of the registry, the keyring, the log and the ends of streams are compared with what is signed;
'ctx verify --registry' checks every event.

Nothing is changed without --rebuild. --rebuild makes the index again, and the entries of packs that are not copies of
their manifests. A catalog that cannot be used is moved aside, and a new one is made with what can be recovered,
including handoff packs whose revisions are among the objects. Losses are listed, and end with status 1.

Examples:
  ctx fsck              check everything
  ctx fsck --rebuild    make the index again first
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from contextplane.cli.exit import FAILED, OK
from contextplane.cli.output import CommandOutput, clean, human_size, quantity
from contextplane.cli.terminal import Bar

if TYPE_CHECKING:
    from contextplane.app.maintenance import FsckFinding
    from contextplane.app.platform import Platform
    from contextplane.app.repair import RepairedStore
    from contextplane.errors import ContextPlaneError

__all__ = ["add_arguments", "run"]

_COLOR = {
    "missing": "red",
    "corrupt": "red",
    "index": "yellow",
    "orphaned": "dim",
    "foreign": "dim",
    "unreadable": "red",
    "absent": "dim",
}
_REBUILD = "'ctx fsck --rebuild' makes the index again."
_HEAL = "To restore changed or missing parts of a run, pack its log again, or import the run."
_RESTORE = "Restore objects that belong to no run from a copy of the store."
_READ = "For unreadable objects, check the file and its permissions."
_SELDOM = frozenset({"unreadable", "absent"})
_LABELS = {state: state for state in _COLOR} | {"index": "index mismatches"}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rebuild", action="store_true", help="make the index again from the objects first")


def run(args: Namespace, output: CommandOutput) -> int:
    if args.rebuild:
        return _rebuild(output)
    from contextplane.app.maintenance import CATALOG_ERRORS
    from contextplane.cli.store import open_store

    try:
        # The index does not catch up with the entries first: an entry that is not indexed, or is gone, is a finding.
        with open_store(output, following=False) as platform:
            return _check(platform, output, None)
    except CATALOG_ERRORS as error:
        return _check_objects(error, output)


def _rebuild(output: CommandOutput) -> int:
    from contextplane.app.repair import open_repaired
    from contextplane.app.settings import from_environment

    with open_repaired(from_environment()) as repaired:
        _print_rebuild(repaired, output)
        status = _check(repaired.platform, output, repaired)
        return FAILED if repaired.loss else status


def _check(platform: "Platform", output: CommandOutput, repaired: "RepairedStore | None") -> int:
    from contextplane.app.maintenance import check_store, expected_objects

    bar = Bar(output, expected_objects(platform))
    # Closed here, while the catalog is open, also if the reader of the output leaves half-way.
    with closing(check_store(platform, bar.step)) as findings:
        return _report(findings, bar, output, repaired)


def _check_objects(error: "ContextPlaneError", output: CommandOutput) -> int:
    """Check only the objects, because the catalog cannot be used."""
    from contextplane.app.maintenance import check_objects
    from contextplane.app.settings import from_environment

    bar = Bar(output)
    return _report(check_objects(from_environment(), error, bar.step), bar, output, None)


def _report(
    findings: Iterable["FsckFinding"], bar: Bar, output: CommandOutput, repaired: "RepairedStore | None"
) -> int:
    from contextplane.app.maintenance import DAMAGE

    counts: Counter[str] = Counter()
    listed, ways_out = [], set[str]()
    for finding in findings:
        bar.clear()
        counts[finding.state] += 1
        ways_out |= _ways_out(finding)
        if output.json:
            listed.append(finding)
        state = output.paint(_COLOR[finding.state], f"{finding.state:<9}")
        print_line = output.failure_line if finding.state in DAMAGE else output.line
        print_line(f"{state} {clean(finding.what)}  {clean(finding.why)}")
        for name in finding.needed_by:
            print_line(f"          needed by {clean(name)}")
    bar.clear()
    damage = any(counts[state] for state in DAMAGE)
    summary = ", ".join(
        f"{counts[state]:,} {_LABELS[state]}" for state in _COLOR if counts[state] or state not in _SELDOM
    )
    output.line(f"{quantity(bar.objects, 'object')}, {human_size(bar.bytes)} checked: {summary}")
    if counts["orphaned"] and not counts["index"]:
        output.line("Orphaned objects do no harm: 'ctx gc' removes those of a known kind once they are old enough.")
    output.line(_verdict(counts, output))
    for line in sorted(ways_out):
        output.line(line)
    output.answer(
        {
            "sound": not damage,
            "objects": bar.objects,
            "size": bar.bytes,
            "counts": {state: counts[state] for state in _COLOR},
            "findings": listed,
            "rebuilt": repaired.rebuilt if repaired else None,
            "lost": repaired.loss if repaired else None,
        }
    )
    return FAILED if damage else OK


def _ways_out(finding: "FsckFinding") -> set[str]:
    """Return how the damage can be healed, a sentence for each way."""
    if finding.state == "index":
        return {_REBUILD}
    if finding.state == "unreadable":
        return {_READ}
    if finding.state in {"missing", "corrupt"}:
        return {_HEAL} if finding.ref is not None else {_RESTORE} if finding.needed_by else set()
    return set()


def _verdict(counts: Counter[str], output: CommandOutput) -> str:
    if counts["missing"] or counts["corrupt"] or counts["index"]:
        return output.paint("red", "The store is damaged.")
    if counts["unreadable"]:
        return output.paint("red", "Not all of the store could be checked.")
    return output.paint("green", "The store is intact.")


def _print_rebuild(repaired: "RepairedStore", output: CommandOutput) -> None:
    loss = repaired.loss
    if loss is not None:
        output.failure_line(output.paint("yellow", f"The catalog could not be used: {clean(loss.why)}"))
        if loss.moved_to:
            output.line(f"It was moved to {clean(loss.moved_to)}")
        output.line(
            f"Recovered: {quantity(loss.saved_events, 'event')} of {quantity(len(loss.saved_streams), 'stream')}"
        )
        output.failure_line("Everything else in it is lost for ever. It held:")
        for line in loss.truth:
            output.failure_line(f"  {clean(line)}")
    rebuilt = repaired.rebuilt
    packs, objects = quantity(rebuilt.packs, "execution pack"), quantity(rebuilt.objects, "object")
    handoffs = f"{quantity(rebuilt.handoffs, 'handoff pack')}, " if rebuilt.handoffs else ""
    output.line(f"Index rebuilt: {packs}, {handoffs}{objects}")
    if rebuilt.entries:
        output.line(f"Entries in packs/ that did not match their manifests, written again: {rebuilt.entries:,}")
    for revision in rebuilt.adopted:
        output.line(f"adopted   {revision}  its events are lost; recovered from the objects")
    for pack in rebuilt.unclear:
        output.failure_line(f"not adopted  {pack}  its events are lost; several objects claim to be the same revision")
    if rebuilt.adopted:
        output.line("Deleted handoff packs may be among them: the deletions are no longer known.")
