"""Verifying all of a registry: every event, every entry, every node, every checkpoint. It stops at nothing it finds.

    1  the keyring: every change signed by an owner, up to the one that is known          trust/keyring.py
    2  the log: every entry is one, and its event is what the entry says                  here
    3  every event: signature, authority, transition, also against other subjects         audit_events.py
    4  nothing beside the log: no event without an entry, no stream that is none of ours  here
    5  the tree over the entries, node by node; the tree over the ends of streams         audit_trees.py
    6  every checkpoint: signed, in order, of the log as it was then; none before a       audit_checkpoints.py
       revocation is the newest
    7  the newest one covers the whole log, and goes on from what this client saw         opening.py

It is pure over a view. What it costs grows with the registry; that is what it is for.

Every checkpoint of the registry, compared with the one before it and with the log.

It is signed by a key that was good then. It is never of fewer entries or of an earlier time than the one before it, and
says of the log what the log was at that size. The newest is not older than a revocation.

Every event of the registry, in the order of the log: what a reader checks of a stream, and what takes several.

A publication stands on a digest that was reviewed and signed before it, and follows the version before it; a pin stands
on a version that was published. Whoever wrote them checked that; here it is checked again.

Both trees of the registry, over entries and over the ends of streams, made again from the log and compared.

What a verification of the registry finds, gathered: a check goes on after each of them.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView, Transaction, View
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.artifact_state import ArtifactState, Stage, allowed, refuse_transition
from contextplane.registry.authority import Keyrings
from contextplane.registry.events import (
    AliasSet,
    EventInvalid,
    Happened,
    Pinned,
    Promoted,
    Published,
    RolledBack,
    kind_of,
)
from contextplane.registry.log import (
    CheckpointBeforeRevocation,
    CheckpointMissing,
    Entry,
    Standing,
    check_revocations,
    entry_body,
    read_note,
)
from contextplane.registry.open import check_continuity
from contextplane.registry.reader import Reader, State, beginning_of
from contextplane.registry.stream_heads import Head, HeadsDamaged, KeptNodes, StreamCut, put_heads
from contextplane.registry.streams import (
    CHECKPOINTS,
    LOG,
    REGISTRY,
    SUBJECTS,
    TREE,
    VERSIONS,
    artifact_stream,
    version_stream,
)
from contextplane.registry.version_state import VersionState
from contextplane.trust.checkpoint import (
    Checkpoint,
    CheckpointInvalid,
    LogRewritten,
    LogRolledBack,
    LogTruncated,
    NoteUnsigned,
    open_checkpoint,
)
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten, followed
from contextplane.trust.merkle import EMPTY_ROOT, Frontier, TreeDamaged, leaf_hash, level_name, levels_of

__all__ = ["Audit", "CheckpointAudit", "EventAudit", "Progress", "TreeAudit", "Trouble", "Troubles", "audit"]


class Trouble(Value, frozen=True):
    """One thing that is wrong: the code that a reader would refuse it with, the place, and in words."""

    code: str
    at: str
    message: str


class Troubles:
    """All that was found so far, each once."""

    def __init__(self) -> None:
        self._found: dict[Trouble, None] = {}

    @property
    def found(self) -> tuple[Trouble, ...]:
        return tuple(self._found)

    def add(self, code: str, at: str, message: str) -> None:
        self._found[Trouble(code=code, at=at, message=message)] = None

    @contextmanager
    def collected(self, at: str) -> Iterator[None]:
        """Go on after a refusal, with a note of it. `at`: where, unless the refusal is more exact."""
        try:
            yield
        except ContextPlaneError as error:
            place = error.at or ""
            self.add(error.code, place if place.startswith(at) else at, error.message)


class TreeAudit:
    """The trees as the log goes on. `roots` has both at each of the sizes that are asked for."""

    def __init__(self, sizes: Container[int]) -> None:
        self.levels: list[list[bytes]] = []
        self.heads = EMPTY_ROOT
        self.roots: dict[int, tuple[bytes, bytes]] = {}
        self._sizes = sizes
        self._frontier = Frontier()
        self._nodes = KeptNodes()
        self._note()

    @property
    def size(self) -> int:
        return self._frontier.size

    def add(self, body: bytes, entry: Entry | None) -> None:
        """One more entry of the log; None when it could not be read, which is told of elsewhere."""
        self._frontier, nodes = self._frontier.append(leaf_hash(body))
        for node in nodes:
            if node.level == len(self.levels):
                self.levels.append([])
            self.levels[node.level].append(node.hash)
        if entry is not None:
            self.heads = put_heads(self._nodes, self.heads, {entry.stream: Head(seq=entry.seq, digest=entry.event)})
        self._note()

    def compare(self, view: View | Transaction, troubles: Troubles) -> None:
        """The nodes in the catalog are these, all of them and no others."""
        for level, hashes in enumerate(self.levels):
            name = level_name(TREE, level)
            stored = list(view.streams.read(name))
            for index, expected in enumerate(hashes):
                event = stored[index] if index < len(stored) else None
                whole = event is not None and (event.seq, event.kind) == (index + 1, "tree_node")
                if not whole or event is None or event.body != canonical(expected.hex()):
                    troubles.add(TreeDamaged.code, f"{name}@{index + 1}", "not the hash of what is below it")
            for extra in stored[len(hashes) :]:
                troubles.add(TreeDamaged.code, f"{name}@{extra.seq}", "a node that the tree has not")
        for name, text in self._nodes.texts.items():
            if view.marks.get(name) != text:
                troubles.add(HeadsDamaged.code, name, "not what the ends of the streams give")

    def _note(self) -> None:
        if self.size in self._sizes:
            self.roots[self.size] = (self._frontier.root, self.heads)


class CheckpointAudit:
    """The checkpoints of a registry, opened. `sizes`: of which they speak; `as_of`: the latest time in them."""

    def __init__(
        self, streams: StreamsView, keyrings: Keyrings, check: SignatureCheck, origin: str, troubles: Troubles
    ) -> None:
        self._keyrings = keyrings
        self._check = check
        self._origin = origin
        self._troubles = troubles
        self._opened: list[tuple[int, Standing | None]] = []
        for event in streams.read(CHECKPOINTS):
            if event.seq != len(self._opened) + 1:
                troubles.add(CheckpointMissing.code, _place(event.seq), "a checkpoint before it is missing")
            self._opened.append((event.seq, self._open(event)))
        self.as_of = max((status.time for _, status in self._opened if status is not None), default=NO_TIME)
        self.sizes = frozenset(status.checkpoint.size for _, status in self._opened if status is not None)

    def compare(self, trees: TreeAudit, times: Mapping[int, Timestamp]) -> tuple[Standing | None, bool]:
        """Compare all with the log. The newest is handed out if it is believed; and whether it is only doubtful.

        Doubtful: its signer is revoked from before then on, or it is older than a revocation. A fresh one mends that.
        """
        before: Standing | None = None
        for seq, status in self._opened:
            if status is not None:
                with self._troubles.collected(_place(seq)):
                    _follows(before, status)
                    _covers(status, trees, times)
                before = status
        seq, newest = self._opened[-1] if self._opened else (0, None)
        if newest is None:
            if not self._opened and trees.size:
                self._troubles.add(CheckpointMissing.code, CHECKPOINTS, "the log has entries and no checkpoint")
            return None, False
        if newest.checkpoint.size < trees.size:
            unsigned = trees.size - newest.checkpoint.size
            self._troubles.add(LogRewritten.code, _place(seq), f"{unsigned} entries more than are signed")
        keys = self._keyrings.good_at(newest.time)
        try:
            open_checkpoint(newest.note, origin=self._origin, keys=keys, check=self._check)
        except NoteUnsigned:
            self._troubles.add(NoteUnsigned.code, _place(seq), "who signed the newest checkpoint is revoked since")
            return None, True
        try:
            check_revocations(newest, self._keyrings.now)
        except CheckpointBeforeRevocation as error:
            self._troubles.add(error.code, _place(seq), error.message)
            return newest, True
        return newest, False

    def _open(self, stored: StoredEvent) -> Standing | None:
        """A checkpoint by a key that was good then, whatever became of it since."""
        with self._troubles.collected(_place(stored.seq)):
            if stored.kind != "checkpoint":
                raise CheckpointInvalid(f"of the kind {stored.kind[:40]!r}")
            note, claimed = read_note(stored.body)
            keys = self._keyrings.good_then(claimed)
            checkpoint = open_checkpoint(note, origin=self._origin, keys=keys, check=self._check)
            return Standing(checkpoint=checkpoint, note=note)
        return None


def _follows(before: Standing | None, status: Standing) -> None:
    if before is not None and status.checkpoint.size < before.checkpoint.size:
        raise LogRolledBack(f"{status.checkpoint.size} entries, after a checkpoint of {before.checkpoint.size}")
    if before is not None and status.time < before.time:
        raise ClockWentBackwards(f"of {status.time}, after one of {before.time}")


def _covers(status: Standing, trees: TreeAudit, times: Mapping[int, Timestamp]) -> None:
    size = status.checkpoint.size
    if size not in trees.roots:
        raise LogTruncated(f"{trees.size} entries, and {size} are signed")
    if trees.roots[size] != (status.checkpoint.root, status.heads):
        raise LogRewritten(f"the first {size} entries are not those that were signed")
    last, after = times.get(size - 1), times.get(size)
    if (last is not None and status.time < last) or (after is not None and after < status.time):
        raise ClockWentBackwards(f"of {status.time}, which is not the time between its last entry and the next one")


def _place(seq: int) -> str:
    return f"{CHECKPOINTS}@{seq}"


class EventAudit:
    """The states of all subjects as the log goes on. `times` has the time of every entry whose event could be read."""

    def __init__(
        self,
        streams: StreamsView,
        keyrings: Keyrings,
        check: SignatureCheck,
        troubles: Troubles,
        seen: Checkpoint | None,
    ) -> None:
        self.states: dict[str, State | None] = {}
        self.times: dict[int, Timestamp] = {}
        self.by_revoked = 0
        self._streams = streams
        self._reader = Reader(streams, keyrings, check, seen=seen)
        self._troubles = troubles
        self._numbers: dict[str, int] = {}
        self._latest: Timestamp | None = None
        self._published: dict[str, list[PackRef]] = {}

    def follow(self, entry: Entry, index: int) -> None:
        """One entry of the log: its event is the next of its stream, is there, and may follow what was before it."""
        place = f"{entry.stream[:256]}@{entry.seq}"
        with self._troubles.collected(place):
            if entry.stream not in self.states:
                self.states[entry.stream] = None
                self.states[entry.stream] = beginning_of(entry.stream)
            self._numbers[entry.stream] = entry.seq
            self._event(entry, index)

    def refuse_beyond(self, stream: str) -> None:
        """No event of a stream is missing from the log."""
        for stored in self._streams.read(stream, after=self._numbers.get(stream, 0)):
            self._troubles.add(StreamCut.code, f"{stream}@{stored.seq}", "an event that is not in the log")

    def _event(self, entry: Entry, index: int) -> None:
        stored = next(iter(self._streams.read(entry.stream, after=entry.seq - 1)), None)
        if stored is None or stored.seq != entry.seq:
            self.states[entry.stream] = None
            raise StreamCut(f"entry {index} of the log names this event, and it is not there")
        if Digest.of(stored.body).hex != entry.event:
            self.states[entry.stream] = None
            raise LogRewritten(f"not the event that entry {index} of the log names")
        state = self.states[entry.stream]
        if state is None:
            return  # what was wrong before it is told of; what follows from that is not
        self.states[entry.stream] = None
        happened = self._reader.checked(stored, state)
        self._in_order(happened, index)
        self.by_revoked += happened.by.revoked
        self.states[entry.stream] = state.after_event(happened)
        self._stands_on(happened, at=str(entry.stream))

    def _in_order(self, happened: Happened, index: int) -> None:
        if happened.event.entry != index:
            raise EventInvalid(f"it says that it is entry {happened.event.entry} of the log, and is entry {index}")
        self.times[index] = happened.at
        latest, self._latest = self._latest, happened.at
        if latest is not None and happened.at < latest:
            raise ClockWentBackwards(f"at {happened.at}, and the entry before it is of {latest}")

    def _stands_on(self, happened: Happened, *, at: str) -> None:
        """What a change needs of another subject at its time."""
        change = happened.change
        match change:
            case Published():
                stage = self._artifact_stage(Digest.parse(change.digest), happened.event.keyring)
                self._needs(kind_of(change), stage, at)
                self._follows(change, PackRef.parse(at.removeprefix(VERSIONS)))
            case Pinned() | RolledBack() | Promoted():
                self._needs(kind_of(change), self._version_stage(PackRef(change.id, change.version)), at)
            case AliasSet():
                ref = PackRef(at.rpartition("/")[2], change.version)
                self._needs(kind_of(change), self._version_stage(ref), at)
            case _:
                pass

    def _follows(self, change: Published, ref: PackRef) -> None:
        """It was compared with the version before it, which says how large the step is and who must review it."""
        others = self._published.setdefault(ref.pack_id, [])
        before = max((other for other in others if other.release < ref.release), default=None)
        others.append(ref)
        if change.after != ("" if before is None else before.version):
            raise EventInvalid(f"compared with {change.after or 'nothing'}, and {before or 'nothing'} was before it")

    def _needs(self, kind: str, stage: Stage | None, at: str) -> None:
        if stage is not None:
            refuse_transition(kind, stage, at=at)

    def _artifact_stage(self, digest: Digest, keyring: int) -> Stage | None:
        """Whether a key was revoked since is for readers to weigh. What was right when it was written is in order."""
        state = self.states.get(artifact_stream(digest), ArtifactState(digest=digest))
        if not isinstance(state, ArtifactState):
            return None
        state = state.as_known(partial(self._reader.keyrings.kin, seq=keyring))
        return state.stage if allowed("published", state.stage) else state.as_it_was.stage

    def _version_stage(self, ref: PackRef) -> Stage | None:
        """None when its stream is damaged, which is told of there."""
        state = self.states.get(version_stream(ref), VersionState(ref=ref))
        return state.stage if isinstance(state, VersionState) else None


Progress = Callable[[int, int], None]
"""Called with the bytes and the events checked since the last call."""


class Audit(Value, frozen=True):
    """What was found. `standing` is the newest checkpoint, None when there is none, or none that can be believed.

    `renewable`: nothing is wrong but that the key which signed the newest checkpoint is revoked from before then on, or
    that one is older than a revocation; a fresh checkpoint of another key mends that. `by_revoked`: so many events are
    by keys that are revoked now.
    `as_of` is the time of the newest checkpoint, believed or not.
    """

    troubles: tuple[Trouble, ...]
    entries: int = 0
    subjects: int = 0
    checkpoints: int = 0
    by_revoked: int = 0
    as_of: Timestamp = NO_TIME
    heads: bytes = EMPTY_ROOT
    standing: Standing | None = None
    renewable: bool = False

    @property
    def sound(self) -> bool:
        return not self.troubles


def audit(  # noqa: PLR0913  what a verification stands on
    view: View | Transaction,
    known: TrustedKeys,
    check: SignatureCheck,
    *,
    origin: str,
    seen: Checkpoint | None,
    progress: Progress = lambda _size, _events: None,
) -> Audit:
    """Verify the registry of a view. `known`, `seen`: what the client knew of the keyring and the log before."""
    troubles, streams = Troubles(), view.streams
    # (1) the keyring, from what was known and from its beginning
    keys = _keyring(view, known, check, troubles)
    if keys is None:
        return Audit(troubles=troubles.found)  # nobody is trusted, so that all the rest would be refused for this
    keyrings = Keyrings.of(streams, keys)
    checkpoints = CheckpointAudit(streams, keyrings, check, origin, troubles)
    events, trees = EventAudit(streams, keyrings, check, troubles, seen), TreeAudit(checkpoints.sizes)
    # (2) and (3), in the order of the log
    for stored in streams.read(LOG):
        progress(len(stored.body), 1)
        entry = _entry(stored, troubles)
        trees.add(stored.body, entry)
        if entry is not None:
            events.follow(entry, stored.seq - 1)
    # (4) nothing beside it
    for name in chain.from_iterable(streams.names(prefix) for prefix in SUBJECTS):
        events.refuse_beyond(name)
    _refuse_strays(view, len(trees.levels), troubles)
    # (5) both trees
    trees.compare(view, troubles)
    # (6) the checkpoints, (7) and the newest of them
    newest, doubtful = checkpoints.compare(trees, events.times)
    with troubles.collected(LOG):
        if newest is not None or not doubtful:
            check_continuity(streams, newest, seen)
    found = troubles.found
    return Audit(
        troubles=found,
        entries=trees.size,
        subjects=len(events.states),
        checkpoints=streams.head(CHECKPOINTS),
        by_revoked=events.by_revoked,
        as_of=checkpoints.as_of,
        heads=trees.heads,
        standing=newest,
        renewable=doubtful and len(found) == 1,
    )


def _keyring(
    view: View | Transaction, known: TrustedKeys, check: SignatureCheck, troubles: Troubles
) -> TrustedKeys | None:
    with troubles.collected(STREAM):
        keys = followed(view.streams, known, check)
        if keys != followed(view.streams, TrustedKeys(), check):
            raise KeyringRewritten("from its beginning it does not lead to what is known")
        return keys
    return None


def _entry(stored: StoredEvent, troubles: Troubles) -> Entry | None:
    with troubles.collected(f"{LOG}@{stored.seq}"):
        try:
            entry = msgspec.convert(parse(stored.body).value, Entry)
        except (JsonRefused, msgspec.ValidationError) as error:
            raise LogRewritten(f"not an entry: {error}") from error
        if entry_body(entry) != stored.body or stored.kind != "entry":
            raise LogRewritten("not an entry as it is written")
        return entry
    return None


def _refuse_strays(view: View | Transaction, levels: int, troubles: Troubles) -> None:
    """Every stream of these names is one that somebody checks here."""
    for name in view.streams.names(REGISTRY):
        if name not in {LOG, CHECKPOINTS} and not name.startswith(SUBJECTS):
            troubles.add("registry_event_invalid", name, "not a stream of the registry")
    for name in levels_of(view.streams, "registry")[levels:]:
        troubles.add("tree_damaged", name, "a level that the tree has not")
