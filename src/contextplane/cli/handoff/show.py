"""`ctx handoff show` and `ctx show pk_...`: what a handoff pack is, and what became of the code that it is about.

`ctx handoff log` and `ctx log pk_...`: everything that happened to a handoff pack.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from contextplane.app.handoff.store import Desk
from contextplane.cli.exit import OK
from contextplane.cli.handoff.read import found, handoff_ref, history_named, opening_desk
from contextplane.cli.output import Screen, clean, counted, second, shortened
from contextplane.cli.pager import page
from contextplane.cli.parser import Usage
from contextplane.errors import ContextPlaneError
from contextplane.handoff.finalize import verdict
from contextplane.handoff.freshness import Freshness, freshness
from contextplane.handoff.reader import Found
from contextplane.handoff.source import Looked
from contextplane.model.handoff import HandoffHistory, HandoffPack, Happened, Kept, Ref, Section
from contextplane.model.ids import HandoffId
from contextplane.model.value import Value

__all__ = ["log", "show"]

_LISTED = 3
_COLOR = {"moved": "yellow", "changed": "red", "gone": "red", "unreadable": "red", "unanchored": "yellow"}


class _Summary(Value, frozen=True):
    """A revision and what there is to say of it.

    `frozen`: the newest finalized one up to it; where there is none, `later`: the first ones behind it.
    """

    found: Found
    history: HandoffHistory
    fresh: Freshness
    frozen: Kept | None
    later: tuple[int, ...]


def show(text: str, screen: Screen) -> int:
    with opening_desk(screen) as desk:
        pack = found(text, desk)
        history = desk.reading.history(pack.pack.handoff_id)
        frozen = _frozen(pack.pack, history, desk)
        summary = _Summary(
            found=pack,
            history=history,
            fresh=freshness(pack.pack.expires, desk.now()),
            frozen=frozen,
            later=() if frozen else _later(pack.pack, history, desk),
        )
        look = desk.reader().look
        if screen.json:
            screen.answer(_summary_answer(summary, look))
            return OK
        text = "\n".join([*_head(summary, screen), *_sections(pack.pack, look, screen)])
    screen.entry(f"{pack.pack.id}@{pack.pack.revision}", text) if screen.quiet else page(text, screen)
    return OK


def _frozen(pack: HandoffPack, history: HandoffHistory, desk: Desk) -> Kept | None:
    for kept in reversed(history.revisions):
        if kept.revision <= pack.revision and _is_finalized(pack, kept, desk):
            return kept
    return None


def _later(pack: HandoffPack, history: HandoffHistory, desk: Desk) -> tuple[int, ...]:
    behind = (kept for kept in history.revisions if kept.revision > pack.revision and _is_finalized(pack, kept, desk))
    return tuple(kept.revision for kept in islice(behind, _LISTED + 1))


def _is_finalized(pack: HandoffPack, kept: Kept, desk: Desk) -> bool:
    try:
        return desk.reading.kept(pack.handoff_id, kept).status == "finalized"
    except ContextPlaneError:
        return False  # damaged: 'ctx verify' says so


def _head(summary: _Summary, screen: Screen) -> Iterator[str]:
    pack, history, fresh = summary.found.pack, summary.history, summary.fresh
    yield f"Handoff:   {pack.id}@{pack.revision}   {summary.found.digest}"
    yield f"Title:     {shortened(clean(pack.heading))}"
    if pack.name:
        yield f"Name:      {clean(pack.name)}"
    if pack.brief:
        yield f"Brief:     {shortened(clean(pack.brief))}"
    if pack.tags:
        yield f"Tags:      {shortened(clean(', '.join(pack.tags)))}"
    yield f"Status:    {pack.status}"
    yield f"Verdict:   {clean(verdict(pack) or 'none')}"
    yield f"Created:   {clean(pack.created_at)}"
    yield f"Updated:   {clean(pack.updated_at)}"
    if history.deleted:
        yield "Deleted:   " + screen.paint("red", str(history.deleted))
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


def _sections(pack: HandoffPack, look: Callable[[Ref], Looked], screen: Screen) -> Iterator[str]:
    yield from ("", f"Sections ({len(pack.sections)}):")
    for section in pack.sections:
        yield f"  [{section.key}] {shortened(clean(section.title))} ({_holds(section)})"
        for ref in section.refs:
            yield f"    {_ref(ref, look(ref), screen)}"
        for diagram in section.diagrams:
            yield f"    {diagram.key}  diagram: {shortened(clean(diagram.title))}"


def _holds(section: Section) -> str:
    parts = [counted(len(section.refs), "ref")] if section.refs else []
    parts += [counted(len(section.diagrams), "diagram")] if section.diagrams else []
    return ", ".join(parts) or ("text" if section.description else "empty")


def _ref(ref: Ref, looked: Looked, screen: Screen) -> str:
    now = f", now {looked.lines.start}-{looked.lines.end}" if looked.lines and looked.lines != ref.lines else ""
    # Of lines that are found the reason says only once more where they are.
    why = f": {clean(looked.why)}" if looked.why and not looked.lines else ""
    state = f"{looked.state}{now}{why}"
    shown = screen.paint(_COLOR[looked.state], state) if looked.state in _COLOR else state
    return f"{ref.key}  {clean(ref.path)}:{ref.lines.start}-{ref.lines.end}  {shown}"


def _summary_answer(summary: _Summary, look: Callable[[Ref], Looked]) -> dict[str, object]:
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


def _section_answer(section: Section, look: Callable[[Ref], Looked]) -> dict[str, object]:
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

    happened: Happened
    status: str | None
    problem: str


def log(text: str, screen: Screen) -> int:
    """Tell it, also of a pack that cannot be had any more."""
    ref = handoff_ref(text)
    if ref is not None and ref.revision is not None:
        raise Usage("a history is that of the whole pack", hint=f"ctx log {ref.id}")
    with opening_desk(screen) as desk:
        handoff_id, history = history_named(text, desk)
        kept = {revision.revision: revision for revision in history.revisions}
        lines = [_line(event, kept.get(event.revision), handoff_id, desk) for event in history.happened]
    if screen.quiet:
        for revision in (f"{handoff_id}@{line.happened.revision}" for line in lines if line.status is not None):
            screen.entry(revision, revision)
    else:
        page("\n".join(_told(line, screen) for line in lines), screen)
    screen.answer(
        {
            "id": handoff_id.text,
            "deleted_at": str(history.deleted) if history.deleted else None,
            "collected": history.collected,
            "events": [_event_answer(line) for line in lines],
        }
    )
    return OK


def _line(event: Happened, kept: Kept | None, handoff_id: HandoffId, desk: Desk) -> _Line:
    if event.digest is None:
        return _Line(happened=event, status=None, problem="")
    if kept is None:
        return _Line(happened=event, status=None, problem="collected")
    try:
        return _Line(happened=event, status=desk.reading.kept(handoff_id, kept).status, problem="")
    except ContextPlaneError as error:
        return _Line(happened=event, status=None, problem=error.message)


def _told(line: _Line, screen: Screen) -> str:
    event = line.happened
    number = f"@{event.revision}" if event.digest else ""
    told = f"{number:<5} {second(event.at)}  {event.kind:<9}"
    if event.digest is None:
        return told.rstrip() + f" at revision {event.revision}"
    frozen = screen.paint("green", "  frozen") if line.status == "finalized" else ""
    problem = screen.paint("red", f"  [{clean(line.problem)}]") if line.problem else ""
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
