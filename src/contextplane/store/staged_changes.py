"""A transaction that is prepared on a snapshot and committed later, if nothing moved meanwhile.

Signing may take seconds: a device asks for a touch, a service is far away. So what is signed is staged here, beside a
read view of the catalog, and no other writer waits for it. A reader of the staged streams sees the snapshot and what
was staged. `commit` appends everything in one transaction of the catalog: a stream that another process appended to
meanwhile is a `StreamConflict`, and nothing is written.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from contextplane.model.catalog import Event, IndexedObject, StoredEvent
from contextplane.model.ids import Digest
from contextplane.ports.catalog import Catalog, MarksView, StreamConflict, StreamsView, View
from contextplane.ports.indexes import ObjectIndexView

__all__ = [
    "StagedChanges",
    "StagedMarks",
    "StagedObjects",
    "StagedStreams",
    "StoreUser",
    "TurnTaker",
    "retry_conflicts",
]

A = TypeVar("A", bound="StoreUser")
P = ParamSpec("P")
R = TypeVar("R")

_TRIES = 32


class StagedStreams:
    """Streams of a snapshot with events that are staged behind them."""

    def __init__(self, base: StreamsView) -> None:
        self._base = base
        self.staged: dict[str, list[Event]] = {}
        self.ends: dict[str, int] = {}
        """The number of the last event in the snapshot, of every stream that something is staged for."""

    def head(self, stream: str) -> int:
        return self._base.head(stream) + len(self.staged.get(stream, ()))

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        yield from self._base.read(stream, after=after)
        staged = self.staged.get(stream)
        if staged:
            for seq, event in enumerate(staged, self._base.head(stream) + 1):
                if seq > after:
                    yield StoredEvent(stream=stream, seq=seq, kind=event.kind, body=event.body)

    def names(self, prefix: str = "") -> Iterator[str]:
        yield from sorted({*self._base.names(prefix), *(name for name in self.staged if name.startswith(prefix))})

    def append(self, stream: str, expected_seq: int, events: Sequence[Event]) -> int:
        head = self.head(stream)
        if expected_seq != head:
            raise StreamConflict(f"it ends with event {head}, not {expected_seq}", at=stream, hint="read it again")
        self.ends.setdefault(stream, head)
        self.staged.setdefault(stream, []).extend(events)
        return head + len(events)


class StagedMarks:
    """Marks of a snapshot with staged changes. None stands for a mark that was dropped."""

    def __init__(self, base: MarksView) -> None:
        self._base = base
        self.staged: dict[str, str | None] = {}

    def get(self, name: str) -> str | None:
        return self.staged[name] if name in self.staged else self._base.get(name)

    def put(self, name: str, value: str) -> None:
        self.staged[name] = value

    def drop(self, prefix: str) -> None:
        """Drop every mark that begins with `prefix`."""
        staged = [name for name in self.staged if name.startswith(prefix)]
        self.staged.update(dict.fromkeys([*self._base.names(prefix), *staged]))


class StagedObjects:
    """The index of objects with staged records and roots."""

    def __init__(self, base: ObjectIndexView) -> None:
        self._base = base
        self.recorded: dict[Digest, IndexedObject] = {}
        self.kept: dict[str, Digest] = {}

    def lookup(self, digest: Digest) -> IndexedObject | None:
        return self.recorded.get(digest) or self._base.lookup(digest)

    def record(self, recorded: IndexedObject) -> None:
        self.recorded[recorded.digest] = recorded

    def keep(self, name: str, target: Digest) -> None:
        self.kept[name] = target


class StagedChanges:
    """What one act appends and records, staged on a view.

    `unmoved`: streams that the act is decided by, whether or not it appends to them.
    """

    def __init__(self, view: View, unmoved: Iterable[str] = ()) -> None:
        self._unmoved = {stream: view.streams.head(stream) for stream in unmoved}
        self.streams = StagedStreams(view.streams)
        self.marks = StagedMarks(view.marks)
        self.objects = StagedObjects(view.objects)

    def commit(self, catalog: Catalog) -> None:
        """Write all of it, or nothing, in one transaction. The view may be closed by then."""
        if not self.streams.staged:
            return
        with catalog.write() as tx:
            for stream, end in self._unmoved.items():
                if tx.streams.head(stream) != end:
                    raise StreamConflict("another process wrote to it meanwhile", at=stream, hint="do it again")
            for stream, events in self.streams.staged.items():
                tx.streams.append(stream, self.streams.ends[stream], events)
            for name, value in self.marks.staged.items():
                if value is None:
                    tx.marks.drop(name)
                else:
                    tx.marks.put(name, value)
            for recorded in self.objects.recorded.values():
                tx.objects.record(recorded)
            for name, target in self.objects.kept.items():
                tx.objects.keep(name, target)


class TurnTaker(Protocol):
    """Where processes that act on one store take turns."""

    def take_turn(self) -> AbstractContextManager[None]:
        """Wait for a turn, for some time; within the block it is ours, or it did not come."""
        ...


class StoreUser(Protocol):
    """Acts on a store, one of several processes."""

    @property
    def platform(self) -> TurnTaker: ...


def retry_conflicts(act: Callable[Concatenate[A, P], R]) -> Callable[Concatenate[A, P], R]:
    """Let an act be done again when another process was faster: it decides anew, by what is there now.

    A process that was slower once takes turns with such others from then on: many at once are in each other's way.
    """

    @wraps(act)
    def try_again(user: A, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with suppress(StreamConflict):
            return act(user, *args, **kwargs)
        with user.platform.take_turn():
            for _ in range(_TRIES - 1):
                with suppress(StreamConflict):
                    return act(user, *args, **kwargs)
            return act(user, *args, **kwargs)

    return try_again
