"""`ctx handoff show` and `ctx show pk_...`: what a handoff pack is, and what became of the code that it is about.

`ctx handoff log` and `ctx log pk_...`: everything that happened to a handoff pack.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from contextplane.app.handoff.session import HandoffSession
from contextplane.cli.exit import OK
from contextplane.cli.handoff.read import find_pack, handoff_ref, find_history, handoff_session
from contextplane.cli.output import CommandOutput, clean, quantity, format_second, shorten
from contextplane.cli.pager import page
from contextplane.cli.parser import Usage
from contextplane.errors import ContextPlaneError
from contextplane.handoff.finalize import verdict
from contextplane.handoff.freshness import PackFreshness, freshness
from contextplane.handoff.reader import SelectedPack
from contextplane.handoff.source import LocatedRef
from contextplane.model.handoff import HandoffEvent, HandoffHistory, HandoffPack, KeptRevision, Ref, Section
from contextplane.model.ids import HandoffId
from contextplane.model.value import Value

__all__ = ["log", "show"]

_LISTED = 3
_COLOR = {"moved": "yellow", "changed": "red", "gone": "red", "unreadable": "red", "unanchored": "yellow"}


class _Summary(Value, frozen=True):
    """A revision and what there is to say of it.

    `frozen`: the newest finalized one up to it; where there is none, `later`: the first ones behind it.
    """

    found: SelectedPack
    history: HandoffHistory
    fresh: PackFreshness
    frozen: KeptRevision | None
    later: tuple[int, ...]


def show(text: str, output: CommandOutput) -> int:
    with handoff_session(output) as session:
        pack = find_pack(text, session)
        history = session.pack_reader.history(pack.pack.handoff_id)
        frozen = _newest_finalized(pack.pack, history, session)
        summary = _Summary(
            found=pack,
            history=history,
            fresh=freshness(pack.pack.expires, session.now()),
            frozen=frozen,
            later=() if frozen else _later(pack.pack, history, session),
        )
        look = session.source_reader().locate
        if output.json:
            output.answer(_summary_answer(summary, look))
            return OK
        text = "\n".join([*_head(summary, output), *_sections(pack.pack, look, output)])
    output.entry(f"{pack.pack.id}@{pack.pack.revision}", text) if output.quiet else page(text, output)
    return OK


def _newest_finalized(pack: HandoffPack, history: HandoffHistory, session: HandoffSession) -> KeptRevision | None:
    for kept in reversed(history.revisions):
        if kept.revision <= pack.revision and _is_finalized(pack, kept, session):
            return kept
    return None


def _later(pack: HandoffPack, history: HandoffHistory, session: HandoffSession) -> tuple[int, ...]:
    behind = (kept for kept in history.revisions if kept.revision > pack.revision and _is_finalized(pack, kept, session))
    return tuple(kept.revision for kept in islice(behind, _LISTED + 1))


def _is_finalized(pack: HandoffPack, kept: KeptRevision, session: HandoffSession) -> bool:
    try:
        return session.pack_reader.read_kept(pack.handoff_id, kept).status == "finalized"
    except ContextPlaneError:
        return False  # damaged: 'ctx verify' says so


def _head(summary: _Summary, output: CommandOutput) -> Iterator[str]:
    pack, history, fresh = summary.found.pack, summary.history, summary.fresh
    yield f"Handoff:   {pack.id}@{pack.revision}   {summary.found.digest}"
    yield f"Title:     {shorten(clean(pack.heading))}"
    if pack.name:
        yield f"Name:      {clean(pack.name)}"
    if pack.brief:
        yield f"Brief:     {shorten(clean(pack.brief))}"
    if pack.tags:
        yield f"Tags:      {shorten(clean(', '.join(pack.tags)))}"
    yield f"Status:    {pack.status}"
    yield f"Verdict:   {clean(verdict(pack) or 'none')}"
    yield f"Created:   {clean(pack.created_at)}"
    yield f"Updated:   {clean(pack.updated_at)}"
    if history.deleted:
        yield "Deleted:   " + output.paint("red", str(history.deleted))
    left = fresh.state if not fresh.seconds else f"{fresh.state}, {fresh.human} left"
    yield f"Expires:   {clean(pack.expires_at)} ({left})"
    kept = [revision.revision for revision in history.revisions]
    older = f", the newest is @{kept[-1]}" if kept[-1] != pack.revision else ""
    yield f"Revisions: {len(kept)} kept, @{kept[0]} to @{kept[-1]}{older}; 'ctx handoff log {pack.id}' lists them"
    frozen = summary.frozen
    yield f"Frozen:    {f'@{frozen.revision}   {frozen.digest}' if frozen else _not_frozen(summary.later)}"
    yield "Signature: none"


def _not_frozen(later: tuple[int, ...]) -> str:
    if not later:
        return "no revision is finalized"
    *most, last = [f"@{number}" for number in later[:_LISTED]] + ["more"] * (len(later) > _LISTED)
    named = f"{', '.join(most)} and {last}" if most else last
    return f"not up to this revision; {named} {'are' if most else 'is'}"


def _sections(pack: HandoffPack, look: Callable[[Ref], LocatedRef], output: CommandOutput) -> Iterator[str]:
    yield from ("", f"Sections ({len(pack.sections)}):")
    for section in pack.sections:
        yield f"  [{section.key}] {shorten(clean(section.title))} ({_holds(section)})"
        for ref in section.refs:
            yield f"    {_ref(ref, look(ref), output)}"
        for diagram in section.diagrams:
            yield f"    {diagram.key}  diagram: {shorten(clean(diagram.title))}"


def _holds(section: Section) -> str:
    parts = [quantity(len(section.refs), "ref")] if section.refs else []
    parts += [quantity(len(section.diagrams), "diagram")] if section.diagrams else []
    return ", ".join(parts) or ("text" if section.description else "empty")


def _ref(ref: Ref, looked: LocatedRef, output: CommandOutput) -> str:
    now = f", now {looked.lines.start}-{looked.lines.end}" if looked.lines and looked.lines != ref.lines else ""
    # Of lines that are found the reason says only once more where they are.
    why = f": {clean(looked.why)}" if looked.why and not looked.lines else ""
    state = f"{looked.state}{now}{why}"
    shown = output.paint(_COLOR[looked.state], state) if looked.state in _COLOR else state
    return f"{ref.key}  {clean(ref.path)}:{ref.lines.start}-{ref.lines.end}  {shown}"


def _summary_answer(summary: _Summary, look: Callable[[Ref], LocatedRef]) -> dict[str, object]:
    pack, history = summary.found.pack, summary.history
    return {
        "id": pack.id,
        "revision": pack.revision,
        "digest": str(summary.found.digest),
        "name": pack.name,
        "title": pack.title,
        "brief": pack.brief,
        "tags": pack.tags,
        "status": pack.status,
        "verdict": verdict(pack),
        "created_at": pack.created_at,
        "updated_at": pack.updated_at,
        "expires_at": pack.expires_at,
        "freshness_state": summary.fresh.state,
        "ttl_remaining": summary.fresh.human,
        "deleted_at": str(history.deleted) if history.deleted else None,
        "revisions": [
            {"revision": revision.revision, "digest": str(revision.digest)} for revision in history.revisions
        ],
        "frozen": {"revision": summary.frozen.revision, "digest": str(summary.frozen.digest)}
        if summary.frozen
        else None,
        "signature": None,
        "sections": [_section_answer(section, look) for section in pack.sections],
    }


def _section_answer(section: Section, look: Callable[[Ref], LocatedRef]) -> dict[str, object]:
    refs = []
    for ref in section.refs:
        looked = look(ref)
        refs.append(
            {
                "key": ref.key,
                "path": ref.path,
                "lines": ref.lines,
                "state": looked.state,
                "now_lines": looked.lines,
                "reason": looked.why or None,
            }
        )
    diagrams = [{"key": diagram.key, "title": diagram.title} for diagram in section.diagrams]
    return {"key": section.key, "title": section.title, "refs": refs, "diagrams": diagrams}


_DIGITS = 12


class _Line(Value, frozen=True):
    """One event. `status`: that of the revision it made, None when it made none, or one that is gone or unreadable."""

    happened: HandoffEvent
    status: str | None
    problem: str


def log(text: str, output: CommandOutput) -> int:
    """Tell it, also of a pack that cannot be had any more."""
    ref = handoff_ref(text)
    if ref is not None and ref.revision is not None:
        raise Usage("a history is that of the whole pack", hint=f"ctx log {ref.id}")
    with handoff_session(output) as session:
        handoff_id, history = find_history(text, session)
        kept = {revision.revision: revision for revision in history.revisions}
        lines = [_line(event, kept.get(event.revision), handoff_id, session) for event in history.events]
    if output.quiet:
        for revision in (f"{handoff_id}@{line.happened.revision}" for line in lines if line.status is not None):
            output.entry(revision, revision)
    else:
        page("\n".join(_format_event(line, output) for line in lines), output)
    output.answer(
        {
            "id": handoff_id.text,
            "deleted_at": str(history.deleted) if history.deleted else None,
            "collected": history.collected,
            "events": [_event_answer(line) for line in lines],
        }
    )
    return OK


def _line(event: HandoffEvent, kept: KeptRevision | None, handoff_id: HandoffId, session: HandoffSession) -> _Line:
    if event.digest is None:
        return _Line(happened=event, status=None, problem="")
    if kept is None:
        return _Line(happened=event, status=None, problem="collected")
    try:
        return _Line(happened=event, status=session.pack_reader.read_kept(handoff_id, kept).status, problem="")
    except ContextPlaneError as error:
        return _Line(happened=event, status=None, problem=error.message)


def _format_event(line: _Line, output: CommandOutput) -> str:
    event = line.happened
    number = f"@{event.revision}" if event.digest else ""
    told = f"{number:<5} {format_second(event.at)}  {event.kind:<9}"
    if event.digest is None:
        return told.rstrip() + f" at revision {event.revision}"
    frozen = output.paint("green", "  frozen") if line.status == "finalized" else ""
    problem = output.paint("red", f"  [{clean(line.problem)}]") if line.problem else ""
    return f"{told}  {line.status or '?':<9}  {event.digest.hex[:_DIGITS]}{frozen}{problem}"


def _event_answer(line: _Line) -> dict[str, object]:
    event = line.happened
    return {
        "kind": event.kind,
        "revision": event.revision,
        "at": str(event.at),
        "digest": str(event.digest) if event.digest else None,
        "status": line.status,
        "frozen": line.status == "finalized",
        "problem": line.problem or None,
    }
