"""Summarizes a revision of a handoff pack: its history, its freshness, and which revision is frozen."""

from itertools import islice

from contextplane.app.handoff.select import select_revision
from contextplane.app.handoff.session import HandoffSession
from contextplane.errors import ContextPlaneError
from contextplane.handoff.finalize import verdict
from contextplane.handoff.freshness import PackFreshness, freshness
from contextplane.handoff.reader import SelectedPack
from contextplane.handoff.source import LocatedRef
from contextplane.model.handoff import HandoffHistory, HandoffPack, KeptRevision
from contextplane.model.value import Value

__all__ = ["LISTED", "HandoffSummary", "LocatedRef", "summarize", "verdict"]

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
