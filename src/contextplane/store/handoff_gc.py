"""Which handoff packs are over for good, so that nothing keeps their revisions any more."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from contextplane.model.handoff_events import HandoffHistory, deleted_body, root_name
from contextplane.model.handoff_grace import GRACE_STREAM, longest_grace
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction, View
from contextplane.ports.handoff_index import HandoffRow
from contextplane.ports.streams import Event
from contextplane.store.handoffs import handoff_streams

__all__ = ["HandoffOver", "Over", "release_over", "unkept_revisions", "would_release"]


class HandoffOver(Value, frozen=True):
    """A pack that is over, why it is, and the revisions that nothing keeps any more."""

    id: HandoffId
    why: Literal["deleted", "expired"]
    revisions: tuple[int, ...]


class Over(Value, frozen=True):
    """A pack is over when it was deleted, or its grace time ended, before `older_than`.

    The longest grace time counts that anybody ever told the store: whoever said so may still be serving the pack.
    """

    older_than: Timestamp
    grace_seconds: int

    @classmethod
    def before(cls, older_than: datetime, grace_seconds: int, view: View | Transaction) -> "Over":
        told = longest_grace(event.body for event in view.streams.read(GRACE_STREAM))
        return cls(older_than=Timestamp.of(older_than), grace_seconds=max(grace_seconds, told))

    def holds(self, history: HandoffHistory, row: HandoffRow | None) -> bool:
        if not history.revisions:
            return False
        if history.deleted is not None:
            return history.deleted < self.older_than
        if row is None:
            return False  # its deadline cannot be read
        ended = Timestamp(seconds=row.expires.seconds + self.grace_seconds, nanos=row.expires.nanos)
        return ended < self.older_than


def release_over(tx: Transaction, over: Over) -> tuple[HandoffOver, ...]:
    """Write down of each pack that is over that it was collected, and keep its revisions no more."""
    released = list(_over(tx, over))
    for stream, handoff_id, history in released:
        # The moment before which it was over: what is collected does not depend on when somebody came to do it.
        body = deleted_body(history.last, over.older_than)
        tx.streams.append(stream, tx.streams.head(stream), [Event(kind="collected", body=body)])
        for one in history.revisions:
            tx.objects.release(root_name(handoff_id, one.revision))
        tx.handoffs.remove(handoff_id)
    return tuple(_told(handoff_id, history) for _, handoff_id, history in released)


def would_release(view: View, over: Over) -> tuple[tuple[HandoffOver, ...], list[Digest]]:
    """The packs that are over, and the objects that nothing else keeps, ascending within each pack by revision."""
    packs: list[HandoffOver] = []
    objects: list[Digest] = []
    for _, handoff_id, history in _over(view, over):
        packs.append(_told(handoff_id, history))
        objects += [
            one.digest
            for one in history.revisions
            if view.objects.referrers(one.digest) == (root_name(handoff_id, one.revision),)
        ]
    return tuple(packs), objects


def unkept_revisions(view: View) -> Iterator[str]:
    """The names of the roots that should keep a revision and do not."""
    for stream in handoff_streams(view):
        if stream.id is None or stream.history is None:
            continue
        roots = dict(view.objects.roots(f"{stream.name}/"))
        for one in stream.history.revisions:
            name = root_name(stream.id, one.revision)
            if roots.get(name) != one.digest:
                yield name


def _told(handoff_id: HandoffId, history: HandoffHistory) -> HandoffOver:
    return HandoffOver(
        id=handoff_id,
        why="expired" if history.deleted is None else "deleted",
        revisions=tuple(one.revision for one in history.revisions),
    )


def _over(view: View | Transaction, over: Over) -> Iterator[tuple[str, HandoffId, HandoffHistory]]:
    for stream in handoff_streams(view):
        if stream.id is None or stream.history is None:
            continue
        if over.holds(stream.history, view.handoffs.row(stream.id)):
            yield stream.name, stream.id, stream.history
