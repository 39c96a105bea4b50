"""Selects and summarizes revisions of handoff packs: by `pk_<id>`, `pk_<id>@<number>` or a name."""

from itertools import islice

from contextplane.app.handoff.session import HandoffSession
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffExpired, HandoffNotFound
from contextplane.handoff.finalize import verdict
from contextplane.handoff.freshness import PackFreshness, freshness
from contextplane.handoff.reader import SelectedPack, WriteResult, as_id
from contextplane.handoff.source import LocatedRef
from contextplane.model.handoff import HandoffHistory, HandoffPack, KeptRevision
from contextplane.model.ids import HandoffId
from contextplane.model.reference import HandoffRef, parse_reference
from contextplane.model.value import Value

__all__ = [
    "LISTED",
    "HandoffSummary",
    "LocatedRef",
    "SelectedPack",
    "extend_pack",
    "handoff_ref",
    "history_named",
    "select_revision",
    "summarize",
    "verdict",
]


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


def extend_pack(session: HandoffSession, text: str, minutes: int | None) -> WriteResult:
    """Extend the life of the pack that a text names, also of one that has expired."""
    ref = handoff_ref(text.strip())
    try:
        return session.repository.extend(text, extend_minutes=minutes)
    except HandoffNotFound as error:
        raise _explain_absence(error, ref, session) from None


def history_named(session: HandoffSession, text: str) -> tuple[HandoffId, HandoffHistory]:
    """Return the id and the history of a pack; by its id also if the pack is no longer available."""
    ref = handoff_ref(text.strip())
    handoff_id = ref.id if ref is not None else session.pack_reader.get(text).pack.handoff_id
    return handoff_id, session.pack_reader.history(handoff_id)


def _explain_absence(error: HandoffNotFound, ref: HandoffRef | None, session: HandoffSession) -> HandoffNotFound:
    """Say why a pack that was here is not available, and what can still be read of it."""
    if ref is None or isinstance(error, HandoffExpired):
        return error
    try:
        history = session.pack_reader.history(ref.id)
    except ContextPlaneError:
        return error
    why = f"it was deleted at {history.deleted}" if history.deleted else "it has expired"
    newest = history.newest
    hint = (
        f"its revisions can be read until they are collected: ctx show {ref.id}@{newest.revision}" if newest else None
    )
    return HandoffNotFound(
        why if newest else f"{why}, and it was collected",
        at=str(ref.id),
        hint=hint or f"'ctx handoff log {ref.id}' lists what happened to it",
        details=error.details,
    )


LISTED = 3
"""How many later finalized revisions are looked for."""


class HandoffSummary(Value, frozen=True):
    """A revision, with the history and the freshness of its pack.

    `frozen`: the newest finalized revision up to this one. If there is none, `later` has the numbers of those after it:
    the first few, and one more if there are more.
    """

    selected: SelectedPack
    history: HandoffHistory
    fresh: PackFreshness
    frozen: KeptRevision | None
    later: tuple[int, ...]


def summarize(session: HandoffSession, text: str) -> HandoffSummary:
    """Summarize the revision that a text names."""
    selected = select_revision(session, text)
    pack = selected.pack
    history = session.pack_reader.history(pack.handoff_id)
    frozen = _newest_finalized(session, pack, history)
    return HandoffSummary(
        selected=selected,
        history=history,
        fresh=freshness(pack.expires, session.now()),
        frozen=frozen,
        later=() if frozen else _later_finalized(session, pack, history),
    )


def _newest_finalized(session: HandoffSession, pack: HandoffPack, history: HandoffHistory) -> KeptRevision | None:
    for kept in reversed(history.revisions):
        if kept.revision <= pack.revision and _is_finalized(session, pack, kept):
            return kept
    return None


def _later_finalized(session: HandoffSession, pack: HandoffPack, history: HandoffHistory) -> tuple[int, ...]:
    later = (kept for kept in history.revisions if kept.revision > pack.revision)
    finalized = (kept.revision for kept in later if _is_finalized(session, pack, kept))
    return tuple(islice(finalized, LISTED + 1))


def _is_finalized(session: HandoffSession, pack: HandoffPack, kept: KeptRevision) -> bool:
    try:
        return session.pack_reader.read_kept(pack.handoff_id, kept).status == "finalized"
    except ContextPlaneError:
        return False  # damaged: 'ctx verify' says so
