"""Full verification of a registry: every event, entry, node and checkpoint. It collects all problems.

    1  the keyring: every change signed by an owner, up to the one that is known       trust/keyring.py
    2  the log: every entry is well-formed, and its event is what the entry says       audit
    3  every event: signature, authority, transition, dependencies on other subjects   EventAudit
       every publication: what its publisher claims                                    claims.py
    4  nothing beside the log: no event without an entry, no unknown stream            audit
    5  the tree over the entries, node by node; the tree over the ends of streams      TreeAudit
    6  every checkpoint: signed, in order, of the log as it was then; the newest is    CheckpointAudit
       not older than a revocation
    7  the newest one covers the whole log, and continues what this client saw         open.py

It is pure over a view. Its cost grows with the size of the registry.
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
from contextplane.registry.artifact_state import ArtifactState, Stage, is_allowed, refuse_transition
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.claims import PublicationAudit
from contextplane.registry.events import (
    AliasSet,
    EventInvalid,
    Pinned,
    Promoted,
    Published,
    RolledBack,
    VerifiedEvent,
    kind_of,
)
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.open import check_continuity
from contextplane.registry.reader import RegistryReader, SubjectState, initial_state
from contextplane.registry.stream_heads import HeadsDamaged, MemoryHeadNodes, StreamCut, put_heads
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
from contextplane.store.event_stream import StreamHead
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
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten, follow_keyring
from contextplane.trust.merkle import EMPTY_ROOT, Frontier, TreeDamaged, leaf_hash, level_name, levels_of
from contextplane.trust.merkle_log import (
    CheckpointBeforeRevocation,
    CheckpointMissing,
    LogEntry,
    VerifiedCheckpoint,
    entry_body,
)

__all__ = [
    "AuditProblem",
    "AuditProblems",
    "AuditResult",
    "CheckpointAudit",
    "EventAudit",
    "Progress",
    "TreeAudit",
    "audit",
]


class AuditProblem(Value, frozen=True):
    """One problem: the code of the error that a reader would raise, the place, and a message.

    `ctx verify --registry --json` prints these fields.
    """

    code: str
    at: str
    message: str


class AuditProblems:
    """Collects problems, each once."""

    def __init__(self) -> None:
        self._problems: dict[AuditProblem, None] = {}

    @property
    def all(self) -> tuple[AuditProblem, ...]:
        return tuple(self._problems)

    def add(self, code: str, at: str, message: str) -> None:
        self._problems[AuditProblem(code=code, at=at, message=message)] = None

    @contextmanager
    def collect(self, at: str) -> Iterator[None]:
        """Record an error and continue. `at`: the place, unless the error has a more exact one."""
        try:
            yield
        except ContextPlaneError as error:
            place = error.at or ""
            self.add(error.code, place if place.startswith(at) else at, error.message)


class TreeAudit:
    """Rebuilds both trees entry by entry. `roots` has their roots at each of the requested sizes."""

    def __init__(self, sizes: Container[int]) -> None:
        self.levels: list[list[bytes]] = []
        self.heads = EMPTY_ROOT
        self.roots: dict[int, tuple[bytes, bytes]] = {}
        self._sizes = sizes
        self._frontier = Frontier()
        self._nodes = MemoryHeadNodes()
        self._record_roots()

    @property
    def size(self) -> int:
        return self._frontier.size

    def add(self, body: bytes, entry: LogEntry | None) -> None:
        """Add an entry of the log; None if it could not be read, which is reported elsewhere."""
        self._frontier, nodes = self._frontier.append(leaf_hash(body))
        for node in nodes:
            if node.level == len(self.levels):
                self.levels.append([])
            self.levels[node.level].append(node.hash)
        if entry is not None:
            self.heads = put_heads(
                self._nodes, self.heads, {entry.stream: StreamHead(seq=entry.seq, digest=entry.event)}
            )
        self._record_roots()

    def compare(self, view: View | Transaction, problems: AuditProblems) -> None:
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
        for name, text in self._nodes.texts.items():
            if view.marks.get(name) != text:
                problems.add(HeadsDamaged.code, name, "not what the ends of the streams give")

    def _record_roots(self) -> None:
        if self.size in self._sizes:
            self.roots[self.size] = (self._frontier.root, self.heads)


class CheckpointAudit:
    """Verifies each checkpoint against the one before it and the log.

    `sizes`: the log sizes that they are about. `as_of`: the latest time in them.
    """

    def __init__(
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        origin: str,
        problems: AuditProblems,
    ) -> None:
        self._keyrings = keyrings
        self._check = check
        self._origin = origin
        self._problems = problems
        self._checkpoints: list[tuple[int, VerifiedCheckpoint | None]] = []
        for event in streams.read(CHECKPOINTS):
            if event.seq != len(self._checkpoints) + 1:
                problems.add(CheckpointMissing.code, _place(event.seq), "a checkpoint before it is missing")
            self._checkpoints.append((event.seq, self._open_checkpoint(event)))
        self.as_of = max((verified.time for _, verified in self._checkpoints if verified is not None), default=NO_TIME)
        self.sizes = frozenset(verified.checkpoint.size for _, verified in self._checkpoints if verified is not None)

    def compare(self, trees: TreeAudit, times: Mapping[int, Timestamp]) -> tuple[VerifiedCheckpoint | None, bool]:
        """Compare all with the log. Returns the newest if it is trusted, and whether it is only doubtful.

        Doubtful: its signer is revoked from a time before it, or it is older than a revocation. A new checkpoint
        repairs that.
        """
        before: VerifiedCheckpoint | None = None
        for seq, checkpoint in self._checkpoints:
            if checkpoint is not None:
                with self._problems.collect(_place(seq)):
                    _check_order(before, checkpoint)
                    _check_log(checkpoint, trees, times)
                before = checkpoint
        seq, newest = self._checkpoints[-1] if self._checkpoints else (0, None)
        if newest is None:
            if not self._checkpoints and trees.size:
                self._problems.add(CheckpointMissing.code, CHECKPOINTS, "the log has entries and no checkpoint")
            return None, False
        if newest.checkpoint.size < trees.size:
            unsigned = trees.size - newest.checkpoint.size
            self._problems.add(LogRewritten.code, _place(seq), f"{unsigned} entries more than are signed")
        keys = self._keyrings.trusted_keys_at(newest.time)
        try:
            open_checkpoint(newest.note, origin=self._origin, keys=keys, check=self._check)
        except NoteUnsigned:
            self._problems.add(NoteUnsigned.code, _place(seq), "who signed the newest checkpoint is revoked since")
            return None, True
        try:
            REGISTRY_LOG.check_revocations(newest, self._keyrings.now)
        except CheckpointBeforeRevocation as error:
            self._problems.add(error.code, _place(seq), error.message)
            return newest, True
        return newest, False

    def _open_checkpoint(self, stored: StoredEvent) -> VerifiedCheckpoint | None:
        """Open a checkpoint with the keys that were valid then, later revocations ignored."""
        with self._problems.collect(_place(stored.seq)):
            if stored.kind != "checkpoint":
                raise CheckpointInvalid(f"of the kind {stored.kind[:40]!r}")
            note, claimed = REGISTRY_LOG.read_note(stored.body)
            keys = self._keyrings.trusted_keys_then(claimed)
            checkpoint = open_checkpoint(note, origin=self._origin, keys=keys, check=self._check)
            return VerifiedCheckpoint(checkpoint=checkpoint, note=note)
        return None


def _check_order(before: VerifiedCheckpoint | None, verified: VerifiedCheckpoint) -> None:
    if before is not None and verified.checkpoint.size < before.checkpoint.size:
        raise LogRolledBack(f"{verified.checkpoint.size} entries, after a checkpoint of {before.checkpoint.size}")
    if before is not None and verified.time < before.time:
        raise ClockWentBackwards(f"of {verified.time}, after one of {before.time}")


def _check_log(verified: VerifiedCheckpoint, trees: TreeAudit, times: Mapping[int, Timestamp]) -> None:
    size = verified.checkpoint.size
    if size not in trees.roots:
        raise LogTruncated(f"{trees.size} entries, and {size} are signed")
    if trees.roots[size] != (verified.checkpoint.root, verified.heads):
        raise LogRewritten(f"the first {size} entries are not those that were signed")
    last, after = times.get(size - 1), times.get(size)
    if (last is not None and verified.time < last) or (after is not None and after < verified.time):
        raise ClockWentBackwards(f"of {verified.time}, which is not the time between its last entry and the next one")


def _place(seq: int) -> str:
    return f"{CHECKPOINTS}@{seq}"


class EventAudit:
    """Folds the states of all subjects in the order of the log.

    A publication depends on a digest that was reviewed and signed before it, and follows the version before it; a pin
    depends on a published version. `times`: the time of every entry whose event could be read.
    """

    def __init__(  # noqa: PLR0913, PLR0917  the inputs of a verification
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        problems: AuditProblems,
        seen: Checkpoint | None,
        publications: PublicationAudit,
    ) -> None:
        self.states: dict[str, SubjectState | None] = {}
        self.times: dict[int, Timestamp] = {}
        self.by_revoked = 0
        self._streams = streams
        self._reader = RegistryReader(streams, keyrings, check, seen=seen)
        self._problems = problems
        self._numbers: dict[str, int] = {}
        self._latest: Timestamp | None = None
        self._publications = publications

    def follow(self, entry: LogEntry, index: int) -> None:
        """Check the event of one log entry: it exists, is the next of its stream, and may follow its state."""
        place = f"{entry.stream[:256]}@{entry.seq}"
        with self._problems.collect(place):
            if entry.stream not in self.states:
                self.states[entry.stream] = None
                self.states[entry.stream] = initial_state(entry.stream)
            self._numbers[entry.stream] = entry.seq
            self._check_event(entry, index)

    def refuse_beyond(self, stream: str) -> None:
        """Report events of a stream that are not in the log."""
        for stored in self._streams.read(stream, after=self._numbers.get(stream, 0)):
            self._problems.add(StreamCut.code, f"{stream}@{stored.seq}", "an event that is not in the log")

    def _check_event(self, entry: LogEntry, index: int) -> None:
        stored = next(iter(self._streams.read(entry.stream, after=entry.seq - 1)), None)
        if stored is None or stored.seq != entry.seq:
            self.states[entry.stream] = None
            raise StreamCut(f"entry {index} of the log names this event, and it is not there")
        if Digest.of(stored.body).hex != entry.event:
            self.states[entry.stream] = None
            raise LogRewritten(f"not the event that entry {index} of the log names")
        state = self.states[entry.stream]
        if state is None:
            return  # the problem before it is reported; its consequences are not
        self.states[entry.stream] = None
        verified = self._reader.check_event(stored, state)
        self._check_position(verified, index)
        self.by_revoked += verified.by.revoked
        self.states[entry.stream] = state.after_event(verified)
        self._check_dependencies(verified, at=str(entry.stream))

    def _check_position(self, verified: VerifiedEvent, index: int) -> None:
        if verified.event.entry != index:
            raise EventInvalid(f"it claims to be entry {verified.event.entry} of the log, and is entry {index}")
        self.times[index] = verified.at
        latest, self._latest = self._latest, verified.at
        if latest is not None and verified.at < latest:
            raise ClockWentBackwards(f"at {verified.at}, and the entry before it is of {latest}")

    def _check_dependencies(self, verified: VerifiedEvent, *, at: str) -> None:
        """Check what a change needs of another subject at its time."""
        change = verified.change
        match change:
            case Published():
                stage = self._artifact_stage(Digest.parse(change.digest), verified.event.keyring)
                for error in self._publications.check(PackRef.parse(at.removeprefix(VERSIONS)), change):
                    self._problems.add(error.code, f"{at}@{verified.event.seq}", error.message)
                self._check_stage(kind_of(change), stage, at)
            case Pinned() | RolledBack() | Promoted():
                self._check_stage(kind_of(change), self._version_stage(PackRef(change.id, change.version)), at)
            case AliasSet():
                ref = PackRef(at.rpartition("/")[2], change.version)
                self._check_stage(kind_of(change), self._version_stage(ref), at)
            case _:
                pass

    def _check_stage(self, kind: str, stage: Stage | None, at: str) -> None:
        if stage is not None:
            refuse_transition(kind, stage, at=at)

    def _artifact_stage(self, digest: Digest, keyring: int) -> Stage | None:
        """The stage of a digest at its publication; None if its stream is damaged.

        Later revocations are ignored: readers weigh those. An event that was allowed when it was written is in order.
        """
        state = self.states.get(artifact_stream(digest), ArtifactState(digest=digest))
        if not isinstance(state, ArtifactState):
            return None
        state = state.after_rotations(partial(self._reader.keyrings.rotated_keys, seq=keyring))
        return state.stage if is_allowed("published", state.stage) else state.ignoring_revocations.stage

    def _version_stage(self, ref: PackRef) -> Stage | None:
        """The stage of a version; None if its stream is damaged, which is reported there."""
        state = self.states.get(version_stream(ref), VersionState(ref=ref))
        return state.stage if isinstance(state, VersionState) else None


Progress = Callable[[int, int], None]
"""Called with the number of bytes and of events checked since the last call."""


class AuditResult(Value, frozen=True):
    """The result of an audit.

    `newest`: the newest checkpoint; None if there is none, or none that is trusted.
    `renewable`: the only problem is that the signer of the newest checkpoint is revoked from a time before it, or that
    it is older than a revocation; a new checkpoint by another key repairs that.
    `by_revoked`: the number of events by keys that are revoked now.
    `as_of`: the time of the newest checkpoint, trusted or not.
    """

    problems: tuple[AuditProblem, ...]
    entries: int = 0
    subjects: int = 0
    checkpoints: int = 0
    by_revoked: int = 0
    as_of: Timestamp = NO_TIME
    heads: bytes = EMPTY_ROOT
    newest: VerifiedCheckpoint | None = None
    renewable: bool = False

    @property
    def sound(self) -> bool:
        return not self.problems


def audit(  # noqa: PLR0913  the inputs of a verification
    view: View | Transaction,
    known: TrustedKeys,
    check: SignatureCheck,
    *,
    origin: str,
    seen: Checkpoint | None,
    publications: PublicationAudit | None = None,
    progress: Progress = lambda _size, _events: None,
) -> AuditResult:
    """Verify the registry of a view.

    `known`, `seen`: the keyring and the checkpoint that the client knew before. `publications`: judges what publishers
    claim; by default only what events say.
    """
    problems, streams = AuditProblems(), view.streams
    # (1) the keyring, from the known state and from its beginning
    keys = _verify_keyring(view, known, check, problems)
    if keys is None:
        return AuditResult(problems=problems.all)  # without a trusted key, everything else would be refused
    keyrings = KeyringHistory.of(streams, keys)
    checkpoints = CheckpointAudit(streams, keyrings, check, origin, problems)
    events, trees = (
        EventAudit(streams, keyrings, check, problems, seen, publications or PublicationAudit()),
        TreeAudit(checkpoints.sizes),
    )
    # (2) and (3), in the order of the log
    for stored in streams.read(LOG):
        progress(len(stored.body), 1)
        entry = _read_entry(stored, problems)
        trees.add(stored.body, entry)
        if entry is not None:
            events.follow(entry, stored.seq - 1)
    # (4) nothing beside it
    for name in chain.from_iterable(streams.names(prefix) for prefix in SUBJECTS):
        events.refuse_beyond(name)
    _refuse_strays(view, len(trees.levels), problems)
    # (5) both trees
    trees.compare(view, problems)
    # (6) the checkpoints, (7) and the newest of them
    newest, doubtful = checkpoints.compare(trees, events.times)
    with problems.collect(LOG):
        if newest is not None or not doubtful:
            check_continuity(streams, newest, seen)
    return AuditResult(
        problems=problems.all,
        entries=trees.size,
        subjects=len(events.states),
        checkpoints=streams.head(CHECKPOINTS),
        by_revoked=events.by_revoked,
        as_of=checkpoints.as_of,
        heads=trees.heads,
        newest=newest,
        renewable=doubtful and len(problems.all) == 1,
    )


def _verify_keyring(
    view: View | Transaction, known: TrustedKeys, check: SignatureCheck, problems: AuditProblems
) -> TrustedKeys | None:
    with problems.collect(STREAM):
        keys = follow_keyring(view.streams, known, check)
        if keys != follow_keyring(view.streams, TrustedKeys(), check):
            raise KeyringRewritten("its history does not match what is known")
        return keys
    return None


def _read_entry(stored: StoredEvent, problems: AuditProblems) -> LogEntry | None:
    with problems.collect(f"{LOG}@{stored.seq}"):
        try:
            entry = msgspec.convert(parse(stored.body).value, LogEntry)
        except (JsonRefused, msgspec.ValidationError) as error:
            raise LogRewritten(f"not an entry: {error}") from error
        if entry_body(entry) != stored.body or stored.kind != "entry":
            raise LogRewritten("not an entry as it is written")
        return entry
    return None


def _refuse_strays(view: View | Transaction, levels: int, problems: AuditProblems) -> None:
    """Report streams under the names of the registry that no check covers."""
    for name in view.streams.names(REGISTRY):
        if name not in {LOG, CHECKPOINTS} and not name.startswith(SUBJECTS):
            problems.add("registry_event_invalid", name, "not a stream of the registry")
    for name in levels_of(view.streams, "registry")[levels:]:
        problems.add("tree_damaged", name, "a level that the tree has not")
