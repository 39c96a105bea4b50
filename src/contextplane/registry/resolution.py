"""What is asked of a registry by whoever starts a run, and what it is given: documents that passed every step.

What a resolution reads of a registry, all of it of one state; and a shelf that is a view of a catalog.

Whoever hands out events has checked them (`reading.py`). Whether they are in the log is checked by whoever resolves.

Resolutions that are kept for a while, so that the next run of the same pack does not pay for one again.

A kept resolution is handed out while its pack's `ttl_seconds` last. Within that time a caller chooses what he needs:

- with `state`, the resolution is the one of exactly this state of registry and keyring: a revocation, a new pin, a
  revoked key are noticed at once, for the price of asking for two numbers (`state_number`);
- without it, nothing is asked: what happened since is noticed when the time is over, at the latest.

A refusal is never kept, and it drops what was kept before. The bytes behind a name never change, so a TTL is about how
soon a new state is seen, and about nothing else. The clock is handed in.
"""

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from contextplane.authoring.overlay.apply import Applied
from contextplane.model.artifact import ArtifactKind, Intent
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import Keyring
from contextplane.registry.events import Happened
from contextplane.registry.log import Standing
from contextplane.registry.merge import Part
from contextplane.registry.open import OpenRegistry
from contextplane.registry.streams import LOG, TREE
from contextplane.registry.version_state import Use
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring_stream import STREAM
from contextplane.trust.merkle import StreamTree, consistency_proof, inclusion_proof

__all__ = [
    "Asked",
    "CatalogShelf",
    "Mark",
    "Proof",
    "Proved",
    "ResolutionCache",
    "Resolved",
    "Shelf",
    "StateNumber",
    "Used",
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
]
"""What whoever uses a document must know. New traffic gets none of these."""


class Asked(Value, frozen=True):
    """Which documents, for whom, where, and what for.

    `refs` are one context pack and any catalogs. New traffic gets the overlays that are pinned in the environment; a
    replay names in `overlays` those that were applied then.
    """

    refs: tuple[PackRef, ...]
    tenant: str
    environment: str
    purpose: Use
    overlays: tuple[PackRef, ...] = ()


class Used(Value, frozen=True):
    """A document that took part: which bytes, who signed them, and what whoever uses them must know."""

    ref: PackRef
    kind: ArtifactKind
    digest: Digest
    signed_by: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


class Proved(Value, frozen=True):
    """An event that the decision stands on: where it is in its stream and in the log, and the way to the root."""

    stream: str
    seq: int
    event: str
    entry: int
    path: tuple[bytes, ...]


class Proof(Value, frozen=True):
    """A signed checkpoint, as it was signed, and every event under it."""

    checkpoint: Checkpoint
    note: bytes
    events: tuple[Proved, ...]


class Resolved(Value, frozen=True):
    """All of it, verified. `view` is the pack with its catalogs and overlays; `value` the same as a plain document.

    `parts` tells where each decision, plan and intent comes from, `applied` what the overlays changed.
    """

    packs: tuple[Used, ...]
    overlays: tuple[Used, ...]
    view: ContextPack
    value: Json
    intents: tuple[Intent, ...]
    parts: tuple[Part, ...]
    applied: tuple[Applied, ...]
    proof: Proof

    @property
    def lineage(self) -> tuple[Used, ...]:
        """Everything that took part, in the order in which it did: pack and catalogs, then overlays as applied."""
        return (*self.packs, *self.overlays)

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(f"{one.ref}: {mark}" for one in self.lineage for mark in one.marks)

    @property
    def ttl_seconds(self) -> int:
        """How long a copy is fresh. It says nothing of whether the version changes: none ever does."""
        return self.view.pack_meta.ttl_seconds


Path = tuple[bytes, ...]


class Shelf(Protocol):
    """One state of a registry, to be read."""

    def history(self, stream: str) -> Iterable[Happened]:
        """Every event of a stream, each signed by somebody who was allowed to, in its place."""
        ...

    def last(self, stream: str) -> Happened | None:
        """The last event of a stream, likewise; None when there is none."""
        ...

    def object(self, digest: Digest) -> bytes:
        """The bytes of an object. An `ObjectNotFound` or `ObjectCorrupt` says why they cannot be had."""
        ...

    def keyring(self, seq: int) -> Keyring:
        """The keyring as it was after so many changes."""
        ...

    def kin(self, key_id: str, seq: int) -> frozenset[str]:
        """The keys of whoever had this key after so many changes of the keyring."""
        ...

    def standing(self) -> Standing | None:
        """The newest checkpoint, signed by a key that was good then; None while nothing was ever written."""
        ...

    def inclusion(self, entry: int, size: int) -> Path:
        """The hashes that lead from an entry of the log to the root of its first `size` entries."""
        ...

    def consistency(self, old: int, size: int) -> Path:
        """The hashes that show that the first `old` of `size` entries are what they were."""
        ...


class CatalogShelf:
    """An opened registry as a shelf. It lives as long as the view that it was opened in. `fetch` gets an object."""

    def __init__(self, opened: OpenRegistry, fetch: Callable[[Digest], bytes]) -> None:
        self._reader = opened.reader
        self._standing = opened.standing
        self._fetch = fetch
        self._nodes = _Nodes(StreamTree(opened.reader.streams, TREE))

    def history(self, stream: str) -> Iterable[Happened]:
        return self._reader.history(stream)

    def last(self, stream: str) -> Happened | None:
        return self._reader.last(stream)

    def object(self, digest: Digest) -> bytes:
        return self._fetch(digest)

    def keyring(self, seq: int) -> Keyring:
        return self._reader.keyrings.at(seq)

    def kin(self, key_id: str, seq: int) -> frozenset[str]:
        return self._reader.keyrings.kin(key_id, seq)

    def standing(self) -> Standing | None:
        return self._standing

    def inclusion(self, entry: int, size: int) -> Path:
        return inclusion_proof(self._nodes, entry, size)

    def consistency(self, old: int, size: int) -> Path:
        return consistency_proof(self._nodes, old, size)


class _Nodes:
    """The nodes of a tree, each read once: proofs under one root share most of them."""

    def __init__(self, tree: StreamTree) -> None:
        self._tree = tree
        self._known: dict[tuple[int, int], bytes] = {}

    def node(self, level: int, index: int) -> bytes:
        data = self._known.get((level, index))
        if data is None:
            data = self._known[level, index] = self._tree.node(level, index)
        return data


_MOST = 1024


class StateNumber(Value, frozen=True):
    """Which state something was resolved in: how many entries the log had, and how many changes the keyring."""

    entries: int
    keyring: int


def state_number(streams: StreamsView) -> StateNumber:
    """Which state a catalog is in: two look-ups, whatever its size."""
    return StateNumber(entries=streams.head(LOG), keyring=streams.head(STREAM))


class _Kept(Value, frozen=True):
    resolved: Resolved
    state: StateNumber
    since: Timestamp
    until: Timestamp


class ResolutionCache:
    """At most `most` resolutions; of more, the one that was resolved first goes."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[Asked, _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, asked: Asked, now: Timestamp, state: StateNumber | None = None) -> Resolved | None:
        """What was resolved for this question, if it is still fresh, and of this state where one is given."""
        kept = self._kept.get(asked)
        # A clock that shows an earlier time than when it was resolved says nothing of how old it is.
        if kept is None or not kept.since <= now < kept.until or (state is not None and state != kept.state):
            return None
        return kept.resolved

    def resolved(
        self,
        asked: Asked,
        now: Timestamp,
        resolve: Callable[[], tuple[Resolved, StateNumber]],
        state: StateNumber | None = None,
    ) -> Resolved:
        """The same, and where there is none, what `resolve` says with the state in which it says so."""
        found = self.get(asked, now, state)
        if found is not None:
            return found
        self._kept.pop(asked, None)
        fresh, of_state = resolve()
        until = Timestamp(seconds=now.seconds + fresh.ttl_seconds, nanos=now.nanos)
        while len(self._kept) >= self._most:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[asked] = _Kept(resolved=fresh, state=of_state, since=now, until=until)
        return fresh
