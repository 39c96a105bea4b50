"""Deadlines: when a pack ends, and how that is moved. Pure."""

from contextplane.handoff.document import MAX_TTL_MINUTES
from contextplane.handoff.refusals import HandoffInvalid
from contextplane.model.timestamp import Timestamp

__all__ = ["DEFAULT_TTL_MINUTES", "deadline", "moved_deadline"]

DEFAULT_TTL_MINUTES = 24 * 60

_LAST = Timestamp.parse("9999-12-31T23:59:59Z").seconds
_FIELDS = ["ttl_minutes", "extend_minutes"]


def deadline(start: Timestamp, minutes: int, *, field: str) -> Timestamp:
    """So many minutes after `start`. What lies beyond the year 9999 is refused, and so is what is no span at all."""
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
    """From now, or from the deadline; from now as well when that has passed. Exactly one of both must be given."""
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
