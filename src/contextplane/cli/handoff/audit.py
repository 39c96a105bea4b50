"""`ctx diff pk_...@3 pk_...@5` and `ctx verify pk_...`: compares and verifies revisions."""

from collections.abc import Iterator

from msgspec import UNSET

from contextplane.app.handoff.audit import (
    HandoffChange,
    SelectedPack,
    diff_handoffs,
    select_pair,
    verify_revisions,
)
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.handoff.packs import handoff_session
from contextplane.cli.output import CommandOutput, clean, human_size, quantity, shorten
from contextplane.cli.render.execution import ANSWER_COLOR, STATUS_OF, diff_lines
from contextplane.model.json.canonical import SORTED
from contextplane.model.reference import HandoffRef

__all__ = ["diff", "verify"]

_INDENT = " " * 6


def diff(a: HandoffRef, b: HandoffRef, output: CommandOutput, *, exit_code: bool) -> int:
    with handoff_session(output) as session:
        ours, theirs = select_pair(session, a, b)
    changes = diff_handoffs(ours.pack, theirs.pack)
    _print_changes(changes, ours, theirs, output)
    output.answer(
        {
            "pack_a": _name(ours),
            "pack_b": _name(theirs),
            "digest_a": str(ours.digest),
            "digest_b": str(theirs.digest),
            "has_drift": bool(changes),
            "entries": changes,
        }
    )
    return DRIFT if exit_code and changes else OK


def _name(pack: SelectedPack) -> str:
    return f"{pack.pack.id}@{pack.pack.revision}"


def _print_changes(
    changes: tuple[HandoffChange, ...], ours: SelectedPack, theirs: SelectedPack, output: CommandOutput
) -> None:
    if not changes:
        same = ours.digest == theirs.digest
        why = "It is the same revision." if same else "The revisions differ only in their number and their times."
        output.line(f"No differences found. {why}")
        return
    output.line(f"Comparing {_name(ours)} vs {_name(theirs)}")
    output.line()
    output.line(f"{quantity(len(changes), 'difference')} found:")
    output.line()
    for number, change in enumerate(changes, 1):
        output.line(f"  {number}. {_line(change)}")
        for line in diff_lines(change.text, output) if change.text is not UNSET else ():
            output.line(_INDENT + line)


def _line(change: HandoffChange) -> str:
    line = f"[{change.type}] {shorten(clean(change.description))}"
    values = " -> ".join(_values(change)) if change.text is UNSET else ""
    return f"{line}: {values}" if values else line


def _values(change: HandoffChange) -> Iterator[str]:
    """Yield the values of both sides, as far as there are any."""
    for value in (change.a, change.b):
        if value is UNSET or value is None:
            continue
        yield shorten(clean(value if isinstance(value, str) else SORTED.encode(value).decode()))


def verify(ref: HandoffRef, output: CommandOutput) -> int:
    with handoff_session(output) as session:
        verdict = verify_revisions(session, ref)
    events, revisions = quantity(verdict.events, "event"), quantity(len(verdict.revisions), "revision")
    output.line(f"Handoff:   {ref}")
    output.line(f"Checked:   {events}, {revisions} whole, {human_size(verdict.size)}")
    output.line(f"Integrity: {output.paint(ANSWER_COLOR[verdict.answer], verdict.answer)}")
    for problem in verdict.problems:
        output.failure_line(f"  {problem.answer:<9} {clean(problem.what)}  {clean(problem.why)}")
    output.answer(
        {
            "answer": verdict.answer,
            "pack": str(ref),
            "events": verdict.events,
            "revisions": [
                {"revision": revision.revision, "digest": str(revision.digest)} for revision in verdict.revisions
            ],
            "size": verdict.size,
            "signature": None,
            "troubles": verdict.problems,
        }
    )
    return STATUS_OF[verdict.answer]
