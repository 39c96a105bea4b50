"""Moments as RFC 3339 writes them. It reads no clock."""

import re
from datetime import UTC, date, datetime
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = ["NO_TIME", "InvalidTimestamp", "Timestamp"]

_FORM = (
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]{1,64}))?(?P<zone>Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_NANO_DIGITS = 9
_UNIX_EPOCH = 62_135_596_800
"""The seconds from 0001-01-01T00:00:00Z to 1970-01-01T00:00:00Z."""

_SHOWN = 60


class InvalidTimestamp(ContextPlaneError):
    """A text that is not a moment in the form of RFC 3339, with its zone."""

    code: ClassVar[str] = "timestamp_invalid"
    family: ClassVar[Family] = "refused"


class Timestamp(Value, frozen=True, order=True):
    """A moment, in UTC, to the nanosecond; it sorts by time. Finer digits are cut off."""

    seconds: int
    nanos: int

    @classmethod
    def parse(cls, text: str) -> "Timestamp":
        match = re.fullmatch(_FORM, text)
        if match is None:
            raise _invalid_timestamp(text)
        try:
            moment = datetime.fromisoformat(match["date"] + match["zone"].replace("Z", "+00:00")).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise _invalid_timestamp(text, str(error)) from error
        nanos = int((match["fraction"] or "0")[:_NANO_DIGITS].ljust(_NANO_DIGITS, "0"))
        return cls(seconds=_since_year_one(moment), nanos=nanos)

    @classmethod
    def of(cls, moment: datetime) -> "Timestamp":
        """The timestamp of an aware datetime, as a clock returns it."""
        utc = moment.astimezone(UTC)
        return cls(seconds=_since_year_one(utc), nanos=utc.microsecond * 1000)

    def __str__(self) -> str:
        """The one form that we write: UTC, `Z`, no trailing zeros."""
        fraction = f".{self.nanos:09d}".rstrip("0") if self.nanos else ""
        day = date.fromordinal(1 + self.seconds // 86_400)
        minutes, seconds = divmod(self.seconds % 86_400, 60)
        return f"{day.isoformat()}T{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}Z"

    @property
    def unix_seconds(self) -> int:
        """The whole seconds since 1970-01-01T00:00:00Z, as claims and tokens count them."""
        return self.seconds - _UNIX_EPOCH

    @property
    def date(self) -> datetime:
        """The moment without its fraction, in UTC."""
        return datetime.fromordinal(1 + self.seconds // 86_400).replace(
            hour=self.seconds % 86_400 // 3600, minute=self.seconds % 3600 // 60, second=self.seconds % 60, tzinfo=UTC
        )


def _since_year_one(moment: datetime) -> int:
    """Seconds since 0001-01-01T00:00:00Z, so that the moment of a log without any time is 0."""
    return (moment.toordinal() - 1) * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second


def _invalid_timestamp(text: str, why: str = "") -> InvalidTimestamp:
    shown = repr(text[:_SHOWN])
    message = f"not a moment: {shown}" + (f" ({why})" if why else "")
    return InvalidTimestamp(message, hint="write it as 2026-05-04T09:31:42Z, with a zone")


NO_TIME = Timestamp(seconds=0, nanos=0)
"""The time that the reference program writes where there is none: 0001-01-01T00:00:00Z."""
