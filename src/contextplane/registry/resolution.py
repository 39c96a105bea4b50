"""The request and the result of a resolution, the snapshot that it reads, and a cache of results.

A snapshot is one state of a registry. It verifies the events that it returns (`reader.py`); `resolve.py` checks that
they are in the log.

The cache returns a resolution within the `ttl_seconds` of its pack. Within that time the caller has a choice:

- with `state`, only a resolution of exactly this state of registry and keyring is returned: a revocation, a new pin or
  a revoked key takes effect at once, at the cost of two look-ups (`state_number`);
- without it, nothing is read: later changes take effect when the time is over, at the latest.

A refusal is never cached, and removes the cached result. The bytes behind a name never change, so the TTL only decides
how soon a new state is seen. No resolution outlives the age that its checkpoint may have, so that a frozen registry is
refused with a cache as it is without one. If the same entries are signed again, the state stays the same, and the
resolution is made again when the old checkpoint is too old. The clock is an argument.
"""

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from contextplane.authoring.overlay.resolved_view import AppliedChange
from contextplane.model.artifact import ArtifactKind, Intent
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import Keyring
from contextplane.registry.cosignatures import Witnesses, count_witnesses
from contextplane.registry.log import event_entry
from contextplane.registry.merge import MergedPart
from contextplane.registry.name_state import NameState
from contextplane.registry.open import OpenRegistry
from contextplane.registry.streams import LOG, TREE, versions_of
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.version_state import Use
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring_stream import STREAM
from contextplane.trust.merkle import (
    CachedNodes,
    InclusionRefuted,
    StreamTree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from contextplane.trust.merkle_log import VerifiedCheckpoint, entry_body

__all__ = [
    "CatalogSnapshot",
    "EventProof",
    "Mark",
    "Proof",
    "RegistrySnapshot",
    "Resolution",
    "ResolutionCache",
    "ResolveRequest",
    "ResolvedDocument",
    "StateNumber",
    "prove_event",
    "state_number",
]

Mark = Literal[
    "deprecated, for replay only",
    "revoked, for replay only",
    "published by a key that is revoked",
    "approved by a key that is revoked",
    "signed by a key that is revoked",
    "signed by a key whose time was changed since",
    "signed by fewer keys than are needed now",
    "of an issuer that may not publish for this tenant now",
    "it does not pass the gates of this runtime",
    "its number does not cover its change",
]
"""What the user of a document must know about it. New traffic never gets a marked document."""


class ResolveRequest(Value, frozen=True):
    """The documents that a run needs, for a tenant in an environment, and the purpose.

    `refs` are one context pack and any catalogs. New traffic gets the overlays that are pinned in the environment; a
    replay names in `overlays` those that were applied then.
    """

    refs: tuple[PackRef, ...]
    tenant: str
    environment: str
    purpose: Use
    overlays: tuple[PackRef, ...] = ()


class ResolvedDocument(Value, frozen=True):
    """A document of a resolution: its bytes by digest, the keys that signed them, and marks for its user."""

    ref: PackRef
    kind: ArtifactKind
    digest: Digest
    signed_by: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


class EventProof(Value, frozen=True):
    """An event that the decision depends on: its place in its stream and log, and the path to the root.

    `previous`: the digest of the event before it in its stream, which its entry in the log names, too.
    """

    stream: str
    seq: int
    event: str
    previous: str | None
    entry: int
    path: tuple[bytes, ...]


class Proof(Value, frozen=True):
    """A checkpoint, its note as it was signed, and the proof of every event under it."""

    checkpoint: Checkpoint
    note: bytes
    events: tuple[EventProof, ...]


class Resolution(Value, frozen=True):
    """The verified documents of a request. `view`: the pack merged with its catalogs and overlays.

    `value`: the view as a plain document. `parts`: the origins of each decision, plan and intent. `applied`: the
    changes by overlays. `judged`: the keys of publications that were judged for it, for the client to remember.
    `fresh_until`: the first moment at which its checkpoint is too old for new traffic; None: no age is too high.
    """

    packs: tuple[ResolvedDocument, ...]
    overlays: tuple[ResolvedDocument, ...]
    view: ContextPack
    value: Json
    intents: tuple[Intent, ...]
    parts: tuple[MergedPart, ...]
    applied: tuple[AppliedChange, ...]
    proof: Proof
    judged: tuple[str, ...] = ()
    fresh_until: Timestamp | None = None

    @property
    def lineage(self) -> tuple[ResolvedDocument, ...]:
        """All documents in the order in which they apply: pack and catalogs, then overlays."""
        return (*self.packs, *self.overlays)

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(f"{document.ref}: {mark}" for document in self.lineage for mark in document.marks)

    @property
    def ttl_seconds(self) -> int:
        """How long a cached copy may be used. The version itself never changes."""
        return self.view.pack_meta.ttl_seconds


Path = tuple[bytes, ...]


class RegistrySnapshot(Protocol):
    """Reads one state of a registry."""

    def history(self, stream: str) -> Iterable[VerifiedEvent]:
        """Every event of a stream, verified: signed by an authorised key, and in its place."""
        ...

    def last(self, stream: str) -> VerifiedEvent | None:
        """The last event of a stream, verified likewise; None if there is none."""
        ...

    def versions(self, base_id: str) -> Iterable[PackRef]:
        """Every version of an id that has a stream, ordered by number. Not all need be published."""
        ...

    def name(self, base_id: str) -> NameState:
        """The owner of an id."""
        ...

    def object(self, digest: Digest) -> bytes:
        """The bytes of an object. Raises `ObjectNotFound` or `ObjectCorrupt`."""
        ...

    def past_keyring(self, seq: int) -> Keyring:
        """The keyring after `seq` changes."""
        ...

    def rotated_keys(self, key_id: str, seq: int) -> frozenset[str]:
        """All keys linked to a key by rotation after `seq` changes of the keyring, itself included."""
        ...

    def newest(self) -> VerifiedCheckpoint | None:
        """The newest checkpoint, verified; None while nothing was ever written."""
        ...

    def witnesses(self) -> Witnesses:
        """Who cosigned the newest checkpoint, and how many must have."""
        ...

    def inclusion(self, entry: int, size: int) -> Path:
        """The inclusion proof of an entry in the first `size` entries of the log."""
        ...

    def consistency(self, old: int, size: int) -> Path:
        """The consistency proof from the first `old` to the first `size` entries."""
        ...


def prove_event(verified: VerifiedEvent, checkpoint: Checkpoint, snapshot: RegistrySnapshot) -> EventProof:
    """Prove that the log of a checkpoint has an event at the entry that it names; otherwise refuse it."""
    event = verified.event
    try:
        path = snapshot.inclusion(event.entry, checkpoint.size) if event.entry < checkpoint.size else ()
        entry = event_entry(verified)
        leaf = leaf_hash(entry_body(entry))
        verify_inclusion(leaf, event.entry, checkpoint.size, root=checkpoint.root, proof=path)
    except InclusionRefuted as error:
        raise error.under(f"{event.subject}@{event.seq}") from None
    return EventProof(
        stream=entry.stream, seq=entry.seq, event=entry.event, previous=entry.previous, entry=event.entry, path=path
    )


class CatalogSnapshot:
    """A snapshot of an opened registry. It lives as long as the view that it was opened in.

    `fetch`: returns the bytes of an object.
    """

    def __init__(self, opened: OpenRegistry, fetch: Callable[[Digest], bytes]) -> None:
        self._reader = opened.reader
        self._newest = opened.newest
        self._fetch = fetch
        self._nodes = CachedNodes(StreamTree(opened.reader.streams, TREE))

    def history(self, stream: str) -> Iterable[VerifiedEvent]:
        return self._reader.history(stream)

    def last(self, stream: str) -> VerifiedEvent | None:
        return self._reader.last(stream)

    def versions(self, base_id: str) -> Iterable[PackRef]:
        return versions_of(self._reader, base_id)

    def name(self, base_id: str) -> NameState:
        return self._reader.name(base_id)

    def object(self, digest: Digest) -> bytes:
        return self._fetch(digest)

    def past_keyring(self, seq: int) -> Keyring:
        return self._reader.keyrings.at(seq)

    def rotated_keys(self, key_id: str, seq: int) -> frozenset[str]:
        return self._reader.keyrings.rotated_keys(key_id, seq)

    def newest(self) -> VerifiedCheckpoint | None:
        return self._newest

    def witnesses(self) -> Witnesses:
        keys, newest = self._reader.keyrings.now, self._newest
        if not keys.witnesses or newest is None:
            return Witnesses(required=keys.witnesses)
        return count_witnesses(self._reader.streams, newest, keys, self._reader.check)

    def inclusion(self, entry: int, size: int) -> Path:
        return inclusion_proof(self._nodes, entry, size)

    def consistency(self, old: int, size: int) -> Path:
        return consistency_proof(self._nodes, old, size)


_CAPACITY = 1024


class StateNumber(Value, frozen=True):
    """A state of the registry: the number of log entries and of keyring changes."""

    entries: int
    keyring: int


def state_number(streams: StreamsView) -> StateNumber:
    """The current state of a catalog. It costs two look-ups."""
    return StateNumber(entries=streams.head(LOG), keyring=streams.head(STREAM))


class _CacheEntry(Value, frozen=True):
    resolution: Resolution
    state: StateNumber
    since: Timestamp
    until: Timestamp


class ResolutionCache:
    """Caches at most `capacity` resolutions; the oldest is evicted first."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._entries: dict[ResolveRequest, _CacheEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, request: ResolveRequest, now: Timestamp, state: StateNumber | None = None) -> Resolution | None:
        """The cached resolution of a request, if it is fresh and, where a state is given, of that state."""
        entry = self._entries.get(request)
        # If the clock is before the time of the entry, its age is unknown.
        if entry is None or not entry.since <= now < entry.until or (state is not None and state != entry.state):
            return None
        return entry.resolution

    def get_or_resolve(
        self,
        request: ResolveRequest,
        now: Timestamp,
        resolve: Callable[[], tuple[Resolution, StateNumber]],
        state: StateNumber | None = None,
    ) -> Resolution:
        """Return the cached resolution, or call `resolve` and cache its result with the state it returns."""
        cached = self.get(request, now, state)
        if cached is not None:
            return cached
        self._entries.pop(request, None)
        fresh, of_state = resolve()
        until = Timestamp(seconds=now.seconds + fresh.ttl_seconds, nanos=now.nanos)
        until = until if fresh.fresh_until is None else min(until, fresh.fresh_until)
        while len(self._entries) >= self._capacity:
            self._entries.pop(next(iter(self._entries)), None)
        self._entries[request] = _CacheEntry(resolution=fresh, state=of_state, since=now, until=until)
        return fresh
