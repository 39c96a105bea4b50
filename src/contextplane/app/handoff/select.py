"""Selects a revision of a handoff pack by what was typed: `pk_<id>`, `pk_<id>@<number>`, or a name."""

from contextplane.app.handoff.session import HandoffSession
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffNotFound
from contextplane.handoff.reader import SelectedPack, as_id
from contextplane.model.handoff import HandoffHistory
from contextplane.model.ids import HandoffId
from contextplane.model.reference import HandoffRef, parse_reference

__all__ = ["SelectedPack", "handoff_ref", "history_named", "select_revision"]


def handoff_ref(text: str) -> HandoffRef | None:
    """Return the reference that a text is; None if it is a name. A name cannot look like an id."""
    if as_id(text.partition("@")[0]) is None:
        return None
    target = parse_reference(text).target
    return target if isinstance(target, HandoffRef) else None


def select_revision(session: HandoffSession, text: str) -> SelectedPack:
    """Return the revision that a text names.

    A revision that is named by its number can be read as long as it is kept. Without a number it is the newest one of
    an available pack, which is neither deleted nor expired.
    """
    ref = handoff_ref(text.strip())
    if ref is None or ref.revision is None:
        try:
            return session.pack_reader.get(text)
        except HandoffNotFound as error:
            raise _explain_absence(error, ref, session) from None
    return session.pack_reader.get_revision(ref.id, ref.revision)


def history_named(session: HandoffSession, text: str) -> tuple[HandoffId, HandoffHistory]:
    """Return the id and the history of a pack; by its id also if the pack is no longer available."""
    ref = handoff_ref(text.strip())
    handoff_id = ref.id if ref is not None else session.pack_reader.get(text).pack.handoff_id
    return handoff_id, session.pack_reader.history(handoff_id)


def _explain_absence(error: HandoffNotFound, ref: HandoffRef | None, session: HandoffSession) -> HandoffNotFound:
    """Say why a pack that was here is not available, and what can still be read of it."""
    if ref is None:
        return error
    try:
        history = session.pack_reader.history(ref.id)
    except ContextPlaneError:
        return error
    why = f"it was deleted at {history.deleted}" if history.deleted else "its time is over"
    newest = history.newest
    hint = (
        f"its revisions can be read until they are collected: ctx show {ref.id}@{newest.revision}" if newest else None
    )
    return HandoffNotFound(
        why if newest else f"{why}, and it was collected",
        at=str(ref.id),
        hint=hint or f"'ctx handoff log {ref.id}' tells what happened to it",
        details=error.details,
    )
