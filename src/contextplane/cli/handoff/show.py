"""`ctx handoff show` and `ctx handoff log`: a summary of a handoff pack with its refs, and its events.

`ctx show pk_...` and `ctx log pk_...` print the same.
"""

from collections.abc import Callable, Iterator

from msgspec import UNSET

from contextplane.app.handoff.revisions import (
    LISTED,
    HandoffSummary,
    LocatedRef,
    handoff_ref,
    history_named,
    summarize,
    verdict,
)
from contextplane.app.handoff.session import HandoffSession
from contextplane.cli.exit import OK
from contextplane.cli.handoff.packs import handoff_session
from contextplane.cli.output import CommandOutput, clean, format_second, quantity, shorten
from contextplane.cli.parser import Usage
from contextplane.cli.terminal import page
from contextplane.errors import ContextPlaneError
from contextplane.model.handoff import HandoffEvent, HandoffPack, HandoffProvenance, KeptRevision, Ref, Section
from contextplane.model.ids import HandoffId
from contextplane.model.value import Value

__all__ = ["log", "show"]

_COLOR = {"moved": "yellow", "changed": "red", "gone": "red", "unreadable": "red", "unanchored": "yellow"}
_DIGITS = 12


def show(text: str, output: CommandOutput, *, html: bool = False) -> int:
    """Print a summary of the revision that a text names; with `html` a page for a browser."""
    with handoff_session(output) as session:
        summary = summarize(session, text)
        pack, locate = summary.selected.pack, session.source_reader().locate
        if output.json:
            output.answer(_summary_json(summary, locate))
            return OK
        if html:
            from contextplane.cli.handoff.html_page import html_page

            output.out.write(html_page(summary, locate, session.source_root))
            return OK
        text = "\n".join([*_head(summary, output), *_section_lines(pack, locate, output)])
    output.entry(f"{pack.id}@{pack.revision}", text) if output.quiet else page(text, output)
    return OK


def _head(summary: HandoffSummary, output: CommandOutput) -> Iterator[str]:
    pack, history, fresh = summary.selected.pack, summary.history, summary.fresh
    yield f"Handoff:   {pack.id}@{pack.revision}   {summary.selected.digest}"
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
    if pack.provenance is not UNSET:
        yield f"Author:    {clean(pack.provenance.author_text)}"
        if pack.provenance.commit_text:
            yield f"Commit:    {clean(pack.provenance.commit_text)}"
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
    *most, last = [f"@{number}" for number in later[:LISTED]] + ["more"] * (len(later) > LISTED)
    named = f"{', '.join(most)} and {last}" if most else last
    return f"not up to this revision; {named} {'are' if most else 'is'}"


def _section_lines(pack: HandoffPack, locate: Callable[[Ref], LocatedRef], output: CommandOutput) -> Iterator[str]:
    yield from ("", f"Sections ({len(pack.sections)}):")
    for section in pack.sections:
        yield f"  [{section.key}] {shorten(clean(section.title))} ({_contents_text(section)})"
        for ref in section.refs:
            yield f"    {_ref_line(ref, locate(ref), output)}"
        for diagram in section.diagrams:
            yield f"    {diagram.key}  diagram: {shorten(clean(diagram.title))}"


def _contents_text(section: Section) -> str:
    parts = [quantity(len(section.refs), "ref")] if section.refs else []
    parts += [quantity(len(section.diagrams), "diagram")] if section.diagrams else []
    return ", ".join(parts) or ("text" if section.description else "empty")


def _ref_line(ref: Ref, located: LocatedRef, output: CommandOutput) -> str:
    lines = f"{located.lines.start}-{located.lines.end}" if located.lines and located.lines != ref.lines else ""
    if located.lines and located.path:
        lines = f"{clean(located.path)}:{located.lines.start}-{located.lines.end}"
    now = f", now {lines}" if lines else ""
    # The reason of lines that exist only repeats where they are.
    why = f": {clean(located.why)}" if located.why and not located.lines else ""
    state = f"{located.state}{now}{why}"
    shown = output.paint(_COLOR[located.state], state) if located.state in _COLOR else state
    return f"{ref.key}  {clean(ref.path)}:{ref.lines.start}-{ref.lines.end}  {shown}"


def _summary_json(summary: HandoffSummary, locate: Callable[[Ref], LocatedRef]) -> dict[str, object]:
    pack, history = summary.selected.pack, summary.history
    return {
        "id": pack.id,
        "revision": pack.revision,
        "digest": str(summary.selected.digest),
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
        "provenance": None if pack.provenance is UNSET else pack.provenance,
        "deleted_at": str(history.deleted) if history.deleted else None,
        "revisions": [
            {"revision": revision.revision, "digest": str(revision.digest)} for revision in history.revisions
        ],
        "frozen": {"revision": summary.frozen.revision, "digest": str(summary.frozen.digest)}
        if summary.frozen
        else None,
        "signature": None,
        "sections": [_section_json(section, locate) for section in pack.sections],
    }


def _section_json(section: Section, locate: Callable[[Ref], LocatedRef]) -> dict[str, object]:
    refs = []
    for ref in section.refs:
        located = locate(ref)
        refs.append(
            {
                "key": ref.key,
                "path": ref.path,
                "lines": ref.lines,
                "state": located.state,
                "now_lines": located.lines,
                "now_path": located.path,
                "reason": located.why or None,
            }
        )
    diagrams = [{"key": diagram.key, "title": diagram.title} for diagram in section.diagrams]
    return {"key": section.key, "title": section.title, "refs": refs, "diagrams": diagrams}


class _EventLine(Value, frozen=True):
    """An event, and the revision that it made; None if it made none, or one that cannot be read."""

    event: HandoffEvent
    pack: HandoffPack | None = None
    problem: str = ""

    @property
    def status(self) -> str | None:
        return self.pack.status if self.pack else None

    @property
    def provenance(self) -> HandoffProvenance | None:
        return self.pack.provenance if self.pack and self.pack.provenance is not UNSET else None


def log(text: str, output: CommandOutput) -> int:
    """Print the events of a pack, also of one that is no longer available."""
    ref = handoff_ref(text)
    if ref is not None and ref.revision is not None:
        raise Usage("a history covers the whole pack", hint=f"ctx log {ref.id}")
    with handoff_session(output) as session:
        handoff_id, history = history_named(session, text)
        kept = {revision.revision: revision for revision in history.revisions}
        lines = [_read_event(event, kept.get(event.revision), handoff_id, session) for event in history.events]
    if output.quiet:
        for revision in (f"{handoff_id}@{line.event.revision}" for line in lines if line.status is not None):
            output.entry(revision, revision)
    else:
        page("\n".join(_format_event(line, output) for line in lines), output)
    output.answer(
        {
            "id": handoff_id.text,
            "deleted_at": str(history.deleted) if history.deleted else None,
            "collected": history.collected,
            "events": [_event_json(line) for line in lines],
        }
    )
    return OK


def _read_event(
    event: HandoffEvent, kept: KeptRevision | None, handoff_id: HandoffId, session: HandoffSession
) -> _EventLine:
    if event.digest is None:
        return _EventLine(event=event)
    if kept is None:
        return _EventLine(event=event, problem="collected")
    try:
        return _EventLine(event=event, pack=session.pack_reader.read_kept(handoff_id, kept))
    except ContextPlaneError as error:
        return _EventLine(event=event, problem=error.message)


def _format_event(line: _EventLine, output: CommandOutput) -> str:
    event = line.event
    number = f"@{event.revision}" if event.digest else ""
    head = f"{number:<5} {format_second(event.at)}  {event.kind:<9}"
    if event.digest is None:
        return head.rstrip() + f" at revision {event.revision}"
    frozen = output.paint("green", "  frozen") if line.status == "finalized" else ""
    problem = output.paint("red", f"  [{clean(line.problem)}]") if line.problem else ""
    by = ", ".join(filter(None, (line.provenance.author_text, line.provenance.commit_text))) if line.provenance else ""
    author = f"  {shorten(clean(by))}" if by else ""
    return f"{head}  {line.status or '?':<9}  {event.digest.hex[:_DIGITS]}{frozen}{problem}{author}"


def _event_json(line: _EventLine) -> dict[str, object]:
    event = line.event
    return {
        "kind": event.kind,
        "revision": event.revision,
        "at": str(event.at),
        "digest": str(event.digest) if event.digest else None,
        "status": line.status,
        "frozen": line.status == "finalized",
        "problem": line.problem or None,
        "provenance": line.provenance,
    }
