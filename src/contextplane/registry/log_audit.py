"""The log under audit: rebuilds both trees, and compares every checkpoint with them.

An audit collects all problems instead of stopping at the first one.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import StoredEvent
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.continuity import follow_entry
from contextplane.registry.cosignatures import read_cosignature
from contextplane.registry.first_format import first_format_root
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.open import RegistryView
from contextplane.registry.stream_heads import HeadsDamaged, HeadTree, MemoryHeadNodes, StreamCut
from contextplane.registry.streams import (
    CHECKPOINTS,
    COSIGNATURES,
    TREE,
)
from contextplane.trust.checkpoint import (
    Checkpoint,
    CheckpointInvalid,
    KeyringPosition,
    LogRewritten,
    LogRolledBack,
    LogTruncated,
    NoteUnsigned,
    open_checkpoint,
)
from contextplane.trust.clock import LAST_MOMENT
from contextplane.trust.cosignature import CosignatureInvalid
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten, KeyringRolledBack
from contextplane.trust.merkle import Frontier, TreeDamaged, leaf_hash, level_name
from contextplane.trust.merkle_log import (
    CheckpointBeforeKeyring,
    CheckpointBeforeRevocation,
    CheckpointMissing,
    LogEntry,
    VerifiedCheckpoint,
    revoked_keys,
)

if TYPE_CHECKING:
    from contextplane.store.event_stream import StreamHead

__all__ = ["AuditProblem", "AuditProblems", "CheckpointAudit", "SignedRoots", "TreeAudit", "audit_cosignatures"]


_DAMAGE = (StreamCut, TreeDamaged, HeadsDamaged, LogRewritten, KeyringRewritten)
"""What is wrong with something else than an event that the log has: a copy may be without it."""


class AuditProblem(Value, frozen=True):
    """One problem: the code of the error that a reader would raise, the place, and a message.

    `logged`: the log has it for good. It counts for nothing, no copy is without it, and the log goes on.
    `ctx verify --registry --json` prints these fields.
    """

    code: str
    at: str
    message: str
    logged: bool = False


class AuditProblems:
    """Collects problems, each once."""

    def __init__(self) -> None:
        self._problems: dict[AuditProblem, None] = {}

    @property
    def all(self) -> tuple[AuditProblem, ...]:
        return tuple(self._problems)

    @property
    def damage(self) -> int:
        """The number of problems that the log does not have for good."""
        return sum(not problem.logged for problem in self._problems)

    def add(self, code: str, at: str, message: str, *, logged: bool = False) -> None:
        self._problems[AuditProblem(code=code, at=at, message=message, logged=logged)] = None

    @contextmanager
    def collect(self, at: str, *, logged: bool = False) -> Iterator[None]:
        """Record an error and continue. `at`: the place, unless the error has a more exact one."""
        try:
            yield
        except ContextPlaneError as error:
            place = error.at or ""
            is_logged = logged and not isinstance(error, _DAMAGE)
            self.add(error.code, place if place.startswith(at) else at, error.message, logged=is_logged)


class TreeAudit:
    """Rebuilds both trees entry by entry. `roots` has their roots at each of the requested sizes.

    `sealed`: how many entries have the first format; None: all.
    """

    def __init__(self, sizes: Container[int], sealed: int | None) -> None:
        self.levels: list[list[bytes]] = []
        self.ends: dict[str, StreamHead] = {}
        self.roots: dict[int, tuple[bytes, bytes | None]] = {}
        self._sizes = sizes
        self._sealed = sealed
        self._frontier = Frontier()
        self._nodes = MemoryHeadNodes()
        self._tree = HeadTree(self._nodes)
        self._record_roots()

    @property
    def size(self) -> int:
        return self._frontier.size

    @property
    def heads(self) -> bytes:
        """The root over the ends of all streams."""
        if self._sealed is None:
            return first_format_root(self.ends)
        return self._tree.save(self._nodes)

    def unsigned_checkpoint(self, keys: TrustedKeys, seen: Checkpoint | None) -> VerifiedCheckpoint:
        """What a checkpoint of this log would say under a keyring, at the time of what was seen."""
        checkpoint = Checkpoint(
            origin=keys.origin,
            size=self.size,
            root=self._frontier.root,
            time=None if seen is None else seen.time,
            heads=self.heads,
            keyring=None if self._sealed is None else KeyringPosition(seq=keys.seq, head=keys.head),
        )
        return VerifiedCheckpoint(checkpoint=checkpoint, note=b"")

    def add(self, body: bytes, entry: LogEntry | None) -> bool:
        """Add an entry of the log; None if it could not be read. Returns whether it counts."""
        self._frontier, nodes = self._frontier.append(leaf_hash(body))
        for node in nodes:
            if node.level == len(self.levels):
                self.levels.append([])
            self.levels[node.level].append(node.hash)
        counts = entry is not None and follow_entry(self.ends, entry)
        if counts and entry is not None:
            self._tree.put(entry.stream, self.ends[entry.stream])
        self._record_roots()
        return counts

    def compare(self, view: RegistryView, problems: AuditProblems) -> None:
        """Compare with the nodes in the catalog: none may differ, be missing or be added."""
        for level, hashes in enumerate(self.levels):
            name = level_name(TREE, level)
            stored = list(view.streams.read(name))
            for index, expected in enumerate(hashes):
                event = stored[index] if index < len(stored) else None
                whole = event is not None and (event.seq, event.kind) == (index + 1, "tree_node")
                if not whole or event is None or event.body != canonical(expected.hex()):
                    problems.add(TreeDamaged.code, f"{name}@{index + 1}", "not the hash of what is below it")
            for extra in stored[len(hashes) :]:
                problems.add(TreeDamaged.code, f"{name}@{extra.seq}", "a node that the tree has not")
        if self._sealed is None:
            return  # the nodes of the first format are made anew when it is sealed
        self._tree.save(self._nodes)
        for name, text in self._nodes.texts.items():
            if view.marks.get(name) != text:
                problems.add(HeadsDamaged.code, name, "not what the ends of the streams give")

    def _record_roots(self) -> None:
        if self.size in self._sizes:
            first = self._sealed is None or 0 < self.size <= self._sealed
            heads = first_format_root(self.ends) if first else self._tree.save(self._nodes)
            self.roots[self.size] = (self._frontier.root, heads)


class SignedRoots(Protocol):
    """The size of the log, and the roots of both trees at sizes that checkpoints are about.

    The root over the ends of streams is None where it is not known.
    """

    @property
    def size(self) -> int: ...

    @property
    def roots(self) -> Mapping[int, tuple[bytes, bytes | None]]: ...


class CheckpointAudit:
    """Verifies each checkpoint against the one before it and the log.

    `sizes`: the log sizes that they are about. `as_of`: the latest time in them. `kept`: the first one to verify, with
    its number; those before it are not looked at.

    A checkpoint whose signer is revoked from before its time is void: nothing in it is believed or compared. If it is
    the newest, another key must sign.
    """

    def __init__(  # noqa: PLR0913  the inputs of a verification
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        origin: str,
        problems: AuditProblems,
        *,
        kept: tuple[int, VerifiedCheckpoint] | None = None,
    ) -> None:
        self._keyrings = keyrings
        self._check = check
        self._origin = origin
        self._problems = problems
        self._checkpoints: list[tuple[int, VerifiedCheckpoint | None]] = []
        self._newest_is_void = False
        if kept is not None:
            self._add(*kept)
        number = 0 if kept is None else kept[0]
        for event in streams.read(CHECKPOINTS, after=number):
            number += 1
            if event.seq != number:
                problems.add(CheckpointMissing.code, _place(event.seq), "a checkpoint before it is missing")
            self._add(event.seq, self._open_checkpoint(event))
        self.as_of = max((verified.time for _, verified in self._checkpoints if verified is not None), default=NO_TIME)
        self.sizes = frozenset(verified.checkpoint.size for _, verified in self._checkpoints if verified is not None)

    def _add(self, seq: int, verified: VerifiedCheckpoint | None) -> None:
        """Take up a checkpoint; None if it cannot be read. A void one is stepped over."""
        self._newest_is_void = verified is not None and self._is_void(verified)
        if not self._newest_is_void:
            self._checkpoints.append((seq, verified))
        self._last = seq

    def _is_void(self, verified: VerifiedCheckpoint) -> bool:
        if not revoked_keys(self._keyrings.now, verified.time):
            return False
        keys = self._keyrings.trusted_keys_at(verified.time)
        try:
            open_checkpoint(verified.note, origin=self._origin, keys=keys, check=self._check)
        except NoteUnsigned:
            return True
        return False

    def newest_at(self, size: int) -> VerifiedCheckpoint | None:
        """The newest one, not compared with the log yet; None if it is not about this size."""
        newest = self._checkpoints[-1][1] if self._checkpoints and not self._newest_is_void else None
        return newest if newest is not None and newest.checkpoint.size == size else None

    def compare(self, trees: SignedRoots, times: Mapping[int, Timestamp]) -> tuple[VerifiedCheckpoint | None, bool]:
        """Compare all with the log. Returns the newest if it is trusted, and whether it is only doubtful.

        Doubtful: its signer is revoked from a time before it, or it is older than a revocation. A new checkpoint
        repairs that.
        """
        before: VerifiedCheckpoint | None = None
        for seq, checkpoint in self._checkpoints:
            if checkpoint is not None:
                with self._problems.collect(_place(seq)):
                    _refuse_copy(before, checkpoint)
                    _check_order(before, checkpoint)
                    _check_log(checkpoint, trees)
                    self._check_keyring(checkpoint)
                with self._problems.collect(_place(seq), logged=True):
                    _check_entry_times(checkpoint, times)
                before = checkpoint
        if self._newest_is_void:
            self._problems.add(
                NoteUnsigned.code, _place(self._last), "who signed the newest checkpoint is revoked since"
            )
            return None, True
        seq, newest = self._checkpoints[-1] if self._checkpoints else (0, None)
        if newest is None:
            if not self._checkpoints and trees.size:
                self._problems.add(CheckpointMissing.code, CHECKPOINTS, "the log has entries and no checkpoint")
            return None, False
        if newest.checkpoint.size < trees.size:
            unsigned = trees.size - newest.checkpoint.size
            self._problems.add(LogRewritten.code, _place(seq), f"{unsigned} entries more than are signed")
        try:
            REGISTRY_LOG.check_keyring(newest, self._keyrings.now)
        except (CheckpointBeforeRevocation, CheckpointBeforeKeyring) as error:
            self._problems.add(error.code, _place(seq), error.message)
            return newest, True
        except (KeyringRolledBack, KeyringRewritten) as error:
            self._problems.add(error.code, STREAM, error.message)
        return newest, False

    def _check_keyring(self, verified: VerifiedCheckpoint) -> None:
        """Refuse a checkpoint that names a keyring which was not the newest at its time."""
        position, sealed = verified.checkpoint.keyring, self._keyrings.now.sealed
        if position is None:
            if sealed is not None and verified.checkpoint.size > sealed:
                raise CheckpointInvalid("it names no keyring, and the store is sealed")
            return
        if position.seq > self._keyrings.now.seq:
            return  # the newest one says so: `MerkleLog.check_keyring`
        keys = self._keyrings.at(position.seq)
        if (keys.head, keys.as_of <= verified.time) != (position.head, True):
            raise KeyringRewritten(f"change {position.seq} of the keyring is not the one that it names")

    def _open_checkpoint(self, stored: StoredEvent) -> VerifiedCheckpoint | None:
        """Open a checkpoint with the keys that were valid then, or that are revoked from before its time."""
        with self._problems.collect(_place(stored.seq)):
            if stored.kind != "checkpoint":
                raise CheckpointInvalid(f"of the kind {stored.kind[:40]!r}")
            note, claimed = REGISTRY_LOG.read_note(stored.body)
            keys = (*self._keyrings.trusted_keys_then(claimed), *revoked_keys(self._keyrings.now, claimed))
            checkpoint = open_checkpoint(note, origin=self._origin, keys=keys, check=self._check)
            return VerifiedCheckpoint(checkpoint=checkpoint, note=note)
        return None


def audit_cosignatures(
    streams: StreamsView, keyrings: KeyringHistory, check: SignatureCheck, problems: AuditProblems, *, since: int = 0
) -> None:
    """Report every cosignature that no key of the keyring made for a checkpoint of this log.

    Witnesses cosign the newest checkpoint, so that cosignatures are in the order of the sizes that they name, each
    once. `since`: those of smaller sizes are not looked at.
    """
    keys = {key.key for issuer in keyrings.now.issuers for key in issuer.keys}
    texts: dict[int, set[str]] = {}
    earlier: set[bytes] = set()
    first = _first_of_size(streams, COSIGNATURES, since, lambda stored: read_cosignature(stored)[0])
    largest = since
    for number, stored in enumerate(streams.read(COSIGNATURES, after=first), first + 1):
        with problems.collect(f"{COSIGNATURES}@{stored.seq}"):
            if stored.seq != number:
                raise CosignatureInvalid("one before it is missing")
            size, cosignature = read_cosignature(stored)
            if size < largest or stored.body in earlier:
                raise CosignatureInvalid("a copy of an earlier one, or not in order")
            earlier.add(stored.body)
            texts = texts or _checkpoint_texts(streams, since)
            if not any(cosignature.holds(text, key, check) for text in texts.get(size, ()) for key in keys):
                raise CosignatureInvalid("no trusted key made it for a checkpoint of this log")
            largest = size


def _checkpoint_texts(streams: StreamsView, since: int) -> dict[int, set[str]]:
    """The texts of all checkpoints that can be read, by size, from a size on."""
    texts: dict[int, set[str]] = {}
    first = _first_of_size(streams, CHECKPOINTS, since, lambda stored: Checkpoint.parse(_checkpoint_text(stored)).size)
    for stored in streams.read(CHECKPOINTS, after=first):
        with suppress(ContextPlaneError):
            text = _checkpoint_text(stored)
            texts.setdefault(Checkpoint.parse(text).size, set()).add(text)
    return texts


def _checkpoint_text(stored: StoredEvent) -> str:
    note, _ = REGISTRY_LOG.read_note(stored.body)
    return note.decode().rpartition("\n\n")[0] + "\n"


def _first_of_size(streams: StreamsView, stream: str, size: int, size_of: Callable[[StoredEvent], int]) -> int:
    """How many events of a stream are before the first one about so many entries.

    It reads O(log n) of them. An event that cannot be read counts as a later one, so that it is reported.
    """

    def size_after(number: int) -> int:
        try:
            return size_of(next(iter(streams.read(stream, after=number))))
        except (ContextPlaneError, StopIteration):
            return size

    return bisect_left(range(streams.head(stream)), size, key=size_after) if size else 0


def _refuse_copy(before: VerifiedCheckpoint | None, verified: VerifiedCheckpoint) -> None:
    """Refuse a copy of the checkpoint before it: each is later than that one, except at the end of time."""
    if before is not None and verified.note == before.note and verified.time < LAST_MOMENT:
        raise CheckpointMissing("a copy of the one before it is in its place")


def _check_order(before: VerifiedCheckpoint | None, verified: VerifiedCheckpoint) -> None:
    if before is not None and verified.checkpoint.size < before.checkpoint.size:
        raise LogRolledBack(f"{verified.checkpoint.size} entries, after a checkpoint of {before.checkpoint.size}")
    if before is not None and verified.time < before.time:
        raise ClockWentBackwards(f"of {verified.time}, after one of {before.time}")


def _check_log(verified: VerifiedCheckpoint, trees: SignedRoots) -> None:
    size = verified.checkpoint.size
    if size not in trees.roots:
        raise LogTruncated(f"{trees.size} entries, and {size} are signed")
    root, heads = trees.roots[size]
    if root != verified.checkpoint.root or heads not in {None, verified.heads}:
        raise LogRewritten(f"the first {size} entries are not those that were signed")


def _check_entry_times(verified: VerifiedCheckpoint, times: Mapping[int, Timestamp]) -> None:
    """Refuse a checkpoint of another time than between its last entry and the next one."""
    last, after = times.get(verified.checkpoint.size - 1), times.get(verified.checkpoint.size)
    if (last is not None and verified.time < last) or (after is not None and after < verified.time):
        raise ClockWentBackwards(f"of {verified.time}, which is not the time between its last entry and the next one")


def _place(seq: int) -> str:
    return f"{CHECKPOINTS}@{seq}"
