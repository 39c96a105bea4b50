"""Freshness and deadlines of handoff packs. Pure: the current time is a parameter.

A pack is fresh, expires soon, or has expired. After its deadline it can still be read during the grace time.
"""

from typing import Literal

from contextplane.handoff.errors import HandoffInvalid
from contextplane.model.catalog import HandoffRow
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = [
    "DEFAULT_TTL_MINUTES",
    "MAX_TTL_MINUTES",
    "SOON",
    "FreshnessState",
    "PackFreshness",
    "deadline",
    "deadline_range",
    "freshness",
    "is_available",
    "lifetime_payload",
    "moved_deadline",
    "row_payload",
]

MAX_TTL_MINUTES = 5 * 365 * 24 * 60

DEFAULT_TTL_MINUTES = 7 * 24 * 60
"""The life of a new pack if neither its document nor a setting says otherwise."""

SOON = 900
"""With this many seconds left or fewer, a pack is about to expire."""

FreshnessState = Literal["fresh", "expiring_soon", "expired"]

_SECOND = 1_000_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_WARNINGS: dict[FreshnessState, str | None] = {
    "fresh": None,
    "expiring_soon": "expiring soon — refresh or extend ttl",
    "expired": "expired — treat as stale evidence",
}


class PackFreshness(Value, frozen=True):
    """The state of a pack at a moment. `seconds`: the whole seconds that are left, at least 0."""

    state: FreshnessState
    seconds: int
    human: str
    warning: str | None


def freshness(expires: Timestamp, now: Timestamp) -> PackFreshness:
    """The freshness of a pack, by whole seconds: in the last fraction of a second it has expired already."""
    seconds = max(0, (_nanos(expires) - _nanos(now)) // _SECOND)
    state: FreshnessState = "expired" if seconds == 0 else "expiring_soon" if seconds <= SOON else "fresh"
    return PackFreshness(state=state, seconds=seconds, human=_human(seconds), warning=_WARNINGS[state])


def is_available(expires: Timestamp, now: Timestamp, grace_seconds: int) -> bool:
    """Whether a pack can still be read: until the grace time after its deadline is over."""
    return _nanos(now) <= _nanos(expires) + grace_seconds * _SECOND


def deadline_range(
    state: FreshnessState | None, now: Timestamp, grace_seconds: int
) -> tuple[Timestamp | None, Timestamp | None]:
    """The deadlines of packs in a state, as (after, until): after < expires <= until.

    A state of None means all packs that have not expired.
    """
    expired_until = _moment(_nanos(now) + _SECOND - 1)
    soon_until = _moment(_nanos(now) + (SOON + 1) * _SECOND - 1)
    match state:
        case None:
            return expired_until, None
        case "fresh":
            return soon_until, None
        case "expiring_soon":
            return expired_until, soon_until
        case "expired":
            earliest = _nanos(now) - grace_seconds * _SECOND - 1
            return (_moment(earliest) if earliest >= 0 else None), expired_until


def _human(seconds: int) -> str:
    if seconds == 0:
        return "expired"
    if seconds < _MINUTE:
        return "<1m"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m"
    return f"{seconds // _HOUR}h" if seconds < _DAY else f"{seconds // _DAY}d"


def _nanos(moment: Timestamp) -> int:
    return moment.seconds * _SECOND + moment.nanos


def _moment(nanos: int) -> Timestamp:
    return Timestamp(seconds=nanos // _SECOND, nanos=nanos % _SECOND)


# --- deadlines --------------------------------------------------------------------------------------------------------

_LAST = Timestamp.parse("9999-12-31T23:59:59Z").seconds
_FIELDS = ["ttl_minutes", "extend_minutes"]


def deadline(start: Timestamp, minutes: int, *, field: str) -> Timestamp:
    """The deadline this many minutes after `start`.

    `HandoffInvalid` when the minutes are out of bounds or the deadline is beyond the year 9999.
    """
    if not 1 <= minutes <= MAX_TTL_MINUTES:
        raise HandoffInvalid(
            f"{field} must be between 1 and {MAX_TTL_MINUTES}",
            at=field,
            details={"field": field, "minimum": 1, "maximum": MAX_TTL_MINUTES, "provided": minutes},
        )
    seconds = start.seconds + minutes * 60
    if seconds > _LAST:
        most = max(0, (_LAST - start.seconds) // 60)
        raise HandoffInvalid(
            f"{field} would set the deadline beyond the year 9999",
            at=field,
            hint=f"at most {most} minutes are possible",
            details={"field": field, "maximum": most, "provided": minutes},
        )
    return Timestamp(seconds=seconds, nanos=start.nanos)


def moved_deadline(
    expires: Timestamp, now: Timestamp, *, ttl_minutes: int | None, extend_minutes: int | None
) -> Timestamp:
    """The new deadline: `ttl_minutes` from now, or `extend_minutes` after the current one.

    A deadline that has passed is extended from now. Exactly one of both must be given.
    """
    if ttl_minutes is not None and extend_minutes is None:
        return deadline(now, ttl_minutes, field="ttl_minutes")
    if extend_minutes is not None and ttl_minutes is None:
        return deadline(max(expires, now), extend_minutes, field="extend_minutes")
    provided = _FIELDS if ttl_minutes is not None else []
    raise HandoffInvalid(
        "ttl takes exactly one of ttl_minutes and extend_minutes",
        details={
            "action": "ttl",
            "required_fields": _FIELDS,
            "required_mode": "exactly_one_of",
            "provided_fields": provided,
        },
    )


def row_payload(row: HandoffRow, now: Timestamp) -> dict[str, object]:
    """Return the JSON of a pack in a list, as both tools and `ctx handoff list` print it."""
    return {
        "id": row.id.text,
        "name": row.name,
        "title": row.title,
        "status": row.status,
        "revision": row.revision,
        "updated_at": str(row.updated),
        "expires_at": str(row.expires),
        **lifetime_payload(row.expires, now),
    }


def lifetime_payload(expires: Timestamp, now: Timestamp) -> dict[str, object]:
    """Return the fields that say how long a pack is still fresh."""
    state = freshness(expires, now)
    return {
        "ttl_remaining_seconds": state.seconds,
        "ttl_remaining_human": state.human,
        "ttl_remaining": state.human,
        "freshness_state": state.state,
    }
