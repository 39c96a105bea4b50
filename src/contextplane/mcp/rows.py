"""A pack as both tools list it, and how fresh it must be to be read."""

from contextplane.handoff.freshness import FreshnessState, freshness
from contextplane.handoff.refusals import HandoffStateMismatch
from contextplane.model.handoff import HandoffPack
from contextplane.model.timestamp import Timestamp
from contextplane.ports.handoff_index import HandoffRow

__all__ = ["refuse_other_state", "remaining", "row_told"]


def row_told(row: HandoffRow, now: Timestamp) -> dict[str, object]:
    """One pack of a list."""
    return {
        "id": row.id.text,
        "name": row.name,
        "title": row.title,
        "status": row.status,
        "revision": row.revision,
        "updated_at": str(row.updated),
        "expires_at": str(row.expires),
        **remaining(row.expires, now),
    }


def remaining(expires: Timestamp, now: Timestamp) -> dict[str, object]:
    """How long a pack is still good for."""
    state = freshness(expires, now)
    return {
        "ttl_remaining_seconds": state.seconds,
        "ttl_remaining_human": state.human,
        "ttl_remaining": state.human,
        "freshness_state": state.state,
    }


def refuse_other_state(pack: HandoffPack, wanted: FreshnessState | None, now: Timestamp) -> None:
    """Refuse a pack that is in another state than the one that was asked for."""
    state = freshness(pack.expires, now).state
    if wanted is not None and state != wanted:
        raise HandoffStateMismatch(
            f"the pack is {state}, and {wanted} was asked for",
            at=pack.id,
            details={"id": pack.id, "freshness_state": state, "requested_freshness": wanted},
        )
