"""From what was typed to the revision of a handoff pack that it names: `pk_<id>`, `pk_<id>@<number>`, or a name."""

from contextplane.app.handoff import Desk
from contextplane.errors import ContextPlaneError
from contextplane.handoff.kept import Found
from contextplane.handoff.names import as_id
from contextplane.handoff.refusals import HandoffNotFound
from contextplane.model.handoff_events import HandoffHistory
from contextplane.model.ids import HandoffId
from contextplane.model.reference import HandoffRef, parse_reference

__all__ = ["found", "handoff_ref", "history_named"]


def handoff_ref(text: str) -> HandoffRef | None:
    """The reference that a text is; None when it is a name. A name cannot look like an id."""
    if as_id(text.partition("@")[0]) is None:
        return None
    named = parse_reference(text).named
    return named if isinstance(named, HandoffRef) else None


def found(text: str, desk: Desk) -> Found:
    """The revision that is meant. One that is named by its number is found as long as it is kept at all.

    Without a number it is the newest of a pack that can be had: neither deleted nor expired.
    """
    ref = handoff_ref(text.strip())
    if ref is None or ref.revision is None:
        try:
            return desk.reading.get(text)
        except HandoffNotFound as error:
            raise _told_more(error, ref, desk) from None
    return desk.reading.at(ref.id, ref.revision)


def history_named(text: str, desk: Desk) -> tuple[HandoffId, HandoffHistory]:
    """What happened to the pack that is meant; by its id also when it cannot be had any more."""
    ref = handoff_ref(text.strip())
    handoff_id = ref.id if ref is not None else desk.reading.get(text).pack.handoff_id
    return handoff_id, desk.reading.history(handoff_id)


def _told_more(error: HandoffNotFound, ref: HandoffRef | None, desk: Desk) -> HandoffNotFound:
    """Why a pack that was here cannot be had, and what can be read of it all the same."""
    if ref is None:
        return error
    try:
        history = desk.reading.history(ref.id)
    except ContextPlaneError:
        return error
    why = f"it was deleted at {history.deleted}" if history.deleted else "its time is over"
    kept = history.newest
    hint = f"its revisions can be read until they are collected: ctx show {ref.id}@{kept.revision}" if kept else None
    return HandoffNotFound(
        why if kept else f"{why}, and it was collected",
        at=str(ref.id),
        hint=hint or f"'ctx handoff log {ref.id}' tells what happened to it",
        details=error.details,
    )
