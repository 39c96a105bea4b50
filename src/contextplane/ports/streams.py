"""Event streams, the truth of a store: what happened, in order, never changed and without gaps."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = ["MAX_INLINE", "BodyTooLarge", "Event", "StoredEvent", "StreamConflict", "Streams", "StreamsView"]

MAX_INLINE = 64 * 1024
"""No larger value is ever stored in the database; it is an object, and the database holds its digest."""


class StreamConflict(ContextPlaneError):
    """Another writer appended to this stream first: `expected_seq` is not its last sequence number."""

    code: ClassVar[str] = "stream_conflict"
    family: ClassVar[Family] = "conflict"


class BodyTooLarge(ContextPlaneError):
    """A value over 64 KiB was about to be stored in the database instead of in the object store."""

    code: ClassVar[str] = "event_body_too_large"
    family: ClassVar[Family] = "refused"


class Event(Value, frozen=True):
    """Something that happened: its kind, and its canonical JSON body of at most 64 KiB."""

    kind: str
    body: bytes


class StoredEvent(Value, frozen=True):
    """An event at its place. Sequence numbers of a stream start at 1 and have no gaps."""

    stream: str
    seq: int
    kind: str
    body: bytes


class StreamsView(Protocol):
    """Reading event streams."""

    def head(self, stream: str) -> int:
        """Return the last sequence number, 0 for a stream that does not exist."""
        ...

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        """Events with a sequence number above `after`, in order."""
        ...

    def names(self, prefix: str = "") -> Iterator[str]:
        """Names of all streams that begin with `prefix`, in code-point order."""
        ...


class Streams(StreamsView, Protocol):
    """Append-only truth. Nothing here changes or removes an event."""

    def append(self, stream: str, expected_seq: int, events: Sequence[Event]) -> int:
        """Append all events or none, and return the new last sequence number.

        `StreamConflict` when `expected_seq` is not the last one: this is how two writers never both win.
        """
        ...
