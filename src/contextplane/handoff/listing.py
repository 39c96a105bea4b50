"""The list of packs as markdown: one line for each."""

from collections.abc import Iterable

from contextplane.handoff.freshness import freshness
from contextplane.handoff.texts import one_line
from contextplane.model.timestamp import Timestamp
from contextplane.ports.handoff_index import HandoffRow

__all__ = ["listed"]


def listed(rows: Iterable[HandoffRow], now: Timestamp) -> str:
    """What `output list` shows."""
    lines = [_line(row, now) for row in rows]
    return "# Context packs\n\n" + "".join(lines) if lines else "No context packs found."


def _line(row: HandoffRow, now: Timestamp) -> str:
    fresh = freshness(row.expires, now)
    called = one_line(row.title or row.name or "") or "Untitled"
    warning = f" [warning: {fresh.warning}]" if fresh.warning else ""
    expires = str(row.expires).removesuffix("Z") + "+00:00"
    # What the reference server tells comes first and as it tells it, for whoever takes its lines apart.
    return (
        f"- `{row.id}` \u2014 {called} (revision `{row.revision}`, ttl `{fresh.human}`, freshness `{fresh.state}`)"
        f"{warning} (status `{row.status}`, expires_at `{expires}`)\n"
    )
