"""Proofs that events are entries of a log: by their paths to the root, or by reading all of it.

An event names its entry, and its entry names the event before it. So nothing in a stream can be exchanged behind the
log. A change of the keyring names its entry, too: every event lies between the keyring that it was made under and the
next one. Therefore a key that lost a role cannot act as if it still had it, by writing an earlier time.
"""

from contextlib import suppress
from functools import cached_property

from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest
from contextplane.ports.catalog import StreamsView
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.continuity import entries_since, follow_entries
from contextplane.registry.events import EventInvalid
from contextplane.registry.log import event_entry
from contextplane.registry.streams import CHECKPOINTS, TREE
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.trust.checkpoint import Checkpoint, LogRewritten
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.merkle import (
    EMPTY_ROOT,
    CachedNodes,
    InclusionRefuted,
    StreamTree,
    TreeDamaged,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from contextplane.trust.merkle_log import CheckpointBeforeKeyring, LogEntry, entry_body

__all__ = ["LoggedEntries"]

_HINT = "the catalog was changed; see 'ctx verify --registry'"


class LoggedEntries:
    """Proves that events are entries of a log, each in its place. `log`: its verified checkpoint.

    `has_voids`: the log has void entries. One of them could be a copy of an entry that counts elsewhere, so that a path
    to the root proves no place: the whole log is read instead.
    """

    def __init__(self, streams: StreamsView, keyrings: KeyringHistory, log: Checkpoint, *, has_voids: bool) -> None:
        self._streams = streams
        self._keyrings = keyrings
        self._log = log
        self._has_voids = has_voids
        self._nodes = CachedNodes(StreamTree(streams, TREE))
        self._keyring_places: dict[int, int | None] = {}

    def check(self, verified: VerifiedEvent) -> None:
        """Refuse an event that is not the entry of the log that it claims to be.

        Or one that is not between the entries of the keyring that it names and of the next one.
        """
        event, size = verified.event, self._log.size
        place = f"{event.subject}@{event.seq}"
        if event.entry >= size:
            raise EventInvalid(f"it claims to be entry {event.entry} of a log of {size}", at=place, hint=_HINT)
        if not self._has(event_entry(verified), event.entry):
            self._refuse_damage(event_entry(verified), event.entry)
            raise EventInvalid(f"it claims to be entry {event.entry} of the log, and is not", at=place, hint=_HINT)
        since, until = self._keyring_place(event.keyring), self._keyring_place(event.keyring + 1)
        if (since is not None and event.entry <= since) or (until is not None and event.entry >= until):
            why = f"made under change {event.keyring} of the keyring, which was not the newest at entry {event.entry}"
            raise EventInvalid(why, at=place, hint=_HINT)

    def _refuse_damage(self, entry: LogEntry, index: int) -> None:
        """Refuse a tree that does not prove what the log has: that is damage, and no fault of the event."""
        with suppress(LogRewritten):  # the log is not all there, as in a bundle
            if self._by_event.get((entry.stream, entry.seq)) == (entry, index):
                raise TreeDamaged(f"it does not prove entry {index}", at=TREE, hint=_HINT)

    def find(self, stored: StoredEvent) -> LogEntry | None:
        """The entry of the log for exactly this event, which need not be readable; None if there is none.

        It reads the whole log.
        """
        with suppress(LogRewritten):  # the log is not all there, as in a bundle
            entry, _ = self._by_event.get((stored.stream, stored.seq), (None, 0))
            if entry is not None and entry.event == Digest.of(stored.body).hex:
                return entry
        return None

    def _keyring_place(self, seq: int) -> int | None:
        """The entry of a change of the keyring; None if the log cannot have it: too old, or not there yet."""
        if seq not in self._keyring_places:
            self._keyring_places[seq] = self._find_keyring_place(seq)
        return self._keyring_places[seq]

    def _find_keyring_place(self, seq: int) -> int | None:
        position, logged = self._log.keyring, self._keyrings.entry(seq)
        if logged is None or position is None or seq > position.seq:
            return None
        entry, claimed = logged
        if claimed is not None and claimed < self._log.size and self._has(entry, claimed):
            return claimed
        known, index = self._by_event.get((KEYRING_STREAM, seq), (None, 0))
        if known != entry:
            raise CheckpointBeforeKeyring(
                f"the log does not have change {seq} of the keyring",
                at=CHECKPOINTS,
                hint="'ctx verify --registry --sign --key KEY' checks all and signs a fresh one",
                details={"renewable": True},
            )
        return index

    def _has(self, entry: LogEntry, index: int) -> bool:
        """Whether the log has an entry at an index, where it counts."""
        if self._has_voids:
            return self._by_event.get((entry.stream, entry.seq)) == (entry, index)
        path = inclusion_proof(self._nodes, index, self._log.size)
        try:
            leaf = leaf_hash(entry_body(entry))
            verify_inclusion(leaf, index, self._log.size, root=self._log.root, proof=path)
        except InclusionRefuted:
            return False
        return True

    @cached_property
    def _by_event(self) -> dict[tuple[str, int], tuple[LogEntry, int]]:
        """All entries that count, with their places, by stream and number."""
        _, counting = follow_entries(entries_since(self._streams, 0, EMPTY_ROOT, self._log))
        return {(entry.stream, entry.seq): (entry, index) for index, entry in counting.items()}
