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
    8  every cosignature is by a trusted key, on a checkpoint of this log              audit_cosignatures
    9  every object that an event names has the bytes that its name promises           ObjectAudit

It is pure over a view. Its cost grows with the size of the registry.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed
from contextplane.registry.artifact_state import ArtifactState, Stage, is_allowed, refuse_transition
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.claims import ClaimsJudge, PublicationAudit
from contextplane.registry.continuity import check_continuity
from contextplane.registry.events import (
    AliasSet,
    DraftListed,
    EventInvalid,
    Pinned,
    Promoted,
    Published,
    RolledBack,
    VerifiedEvent,
    kind_of,
    objects_of,
)
from contextplane.registry.log_audit import AuditProblem, AuditProblems, CheckpointAudit, TreeAudit, audit_cosignatures
from contextplane.registry.open import RegistryView
from contextplane.registry.reader import RegistryReader, SubjectState, initial_state
from contextplane.registry.stream_heads import StreamCut
from contextplane.registry.streams import (
    CHECKPOINTS,
    COSIGNATURES,
    DRAFTS,
    LOG,
    REGISTRY,
    SUBJECTS,
    VERSIONS,
    artifact_stream,
    version_stream,
)
from contextplane.registry.version_state import VersionState
from contextplane.trust.checkpoint import (
    Checkpoint,
    LogRewritten,
)
from contextplane.trust.cosignature import CosignatureInvalid
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten, follow_keyring
from contextplane.trust.merkle import EMPTY_ROOT, levels_of
from contextplane.trust.merkle_log import (
    LogEntry,
    VerifiedCheckpoint,
    entry_body,
)

__all__ = [
    "AuditInputs",
    "AuditProblem",
    "AuditProblems",
    "AuditResult",
    "CheckpointAudit",
    "EventAudit",
    "ObjectAudit",
    "Progress",
    "TreeAudit",
    "audit",
    "read_log_entry",
    "verify_keyring",
]

_BESIDE_THE_LOG = {CosignatureInvalid.code, ObjectCorrupt.code, ObjectNotFound.code, ObjectObstructed.code}
"""The codes of problems of what no checkpoint signs."""


class EventAudit:
    """Folds the states of all subjects in the order of the log.

    A publication depends on a digest that was reviewed and signed before it, and follows the version before it; a pin
    depends on a published version. `times`: the time of every entry whose event could be read. `objects`: what the
    verified events name, each with the place of the first one. `state_before`: the state of a subject before the first
    entry that is followed; by default nothing was before.
    """

    def __init__(  # noqa: PLR0913, PLR0917  the inputs of a verification
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        problems: AuditProblems,
        seen: Checkpoint | None,
        publications: PublicationAudit,
        state_before: Callable[[str], SubjectState] = initial_state,
    ) -> None:
        self.states: dict[str, SubjectState | None] = {}
        self.times: dict[int, Timestamp] = {}
        self.objects: dict[Digest, str] = {}
        self.by_revoked = 0
        self._streams = streams
        self._reader = RegistryReader(streams, keyrings, check, seen=seen)
        self._problems = problems
        self._numbers: dict[str, int] = {}
        self._latest: Timestamp | None = None
        self._last: dict[str, tuple[int, str]] = {}
        self._publications = publications
        self._state_before = state_before

    def follow(self, entry: LogEntry, index: int) -> None:
        """Check the event of one log entry: it exists, is the next of its stream, and may follow its state."""
        place = f"{entry.stream[:256]}@{entry.seq}"
        with self._problems.collect(place):
            if entry.stream == STREAM:
                self._check_chain(entry)
                self._check_keyring_entry(entry, index)
                return
            if entry.stream not in self.states:
                self._begin(entry)
            self._numbers[entry.stream] = entry.seq
            self._check_chain(entry)
            self._check_event(entry, index)

    def _begin(self, entry: LogEntry) -> None:
        """Take up a stream before its first entry. Without a state, only that problem is reported of it."""
        self.states[entry.stream], self._numbers[entry.stream] = None, entry.seq
        self._last[entry.stream] = (entry.seq, entry.event)
        state = self._state_before(entry.stream)
        self._last[entry.stream] = (state.seq, state.head)
        self.states[entry.stream] = state

    def _state(self, stream: str) -> SubjectState | None:
        """The state of a subject by the entries so far; None if its stream is damaged."""
        return self.states[stream] if stream in self.states else self._state_before(stream)

    def _check_chain(self, entry: LogEntry) -> None:
        """Refuse an entry that does not follow the last one of its stream."""
        number, digest = self._last.get(entry.stream, (0, ""))
        self._last[entry.stream] = (entry.seq, entry.event)
        begins = entry.stream == STREAM and not number
        if not begins and (entry.seq != number + 1 or entry.previous not in {None, digest}):
            raise LogRewritten(f"it does not follow event {number} of its stream")

    def _check_keyring_entry(self, entry: LogEntry, index: int) -> None:
        """Check that the log has the change of the keyring that the stream has, at its time."""
        stored = next(iter(self._streams.read(STREAM, after=entry.seq - 1)), None)
        if stored is None or Digest.of(stored.body).hex != entry.event:
            raise KeyringRewritten(f"entry {index} of the log names another change")
        self._check_time(index, self._reader.keyrings.at(entry.seq).as_of)

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
        for _, digest in objects_of(entry.stream, verified.change):
            self.objects.setdefault(digest, f"{entry.stream}@{entry.seq}")
        self._check_position(verified, index)
        self.by_revoked += verified.by.revoked
        self.states[entry.stream] = state.after_event(verified)
        self._check_dependencies(verified, at=str(entry.stream))

    def _check_position(self, verified: VerifiedEvent, index: int) -> None:
        if verified.event.entry != index:
            raise EventInvalid(f"it claims to be entry {verified.event.entry} of the log, and is entry {index}")
        if not verified.by.revoked:  # its time is not believed
            self._check_time(index, verified.at)

    def _check_time(self, index: int, at: Timestamp) -> None:
        self.times[index] = at
        latest, self._latest = self._latest, at
        if latest is not None and at < latest:
            raise ClockWentBackwards(f"at {at}, and the entry before it is of {latest}")

    def _check_dependencies(self, verified: VerifiedEvent, *, at: str) -> None:
        """Check what a change needs of another subject at its time."""
        change = verified.change
        match change:
            case Published():
                stage = self._artifact_stage(Digest.parse(change.digest), verified.event.keyring)
                for error in self._publications.check(PackRef.parse(at.removeprefix(VERSIONS)), change):
                    self._problems.add(error.code, f"{at}@{verified.event.seq}", error.message)
                self._check_stage(kind_of(change), stage, at)
            case DraftListed():
                digest, ref = Digest.parse(change.digest), PackRef.parse(at.removeprefix(DRAFTS))
                state = self._state(artifact_stream(digest))
                if isinstance(state, ArtifactState) and state.ref != ref:
                    raise EventInvalid(f"{digest} is listed as a draft of {ref}, and was recorded as {state.ref}")
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
        state = self._state(artifact_stream(digest))
        if not isinstance(state, ArtifactState):
            return None
        state = state.after_rotations(partial(self._reader.keyrings.rotated_keys, seq=keyring))
        return state.stage if is_allowed("published", state.stage) else state.ignoring_revocations.stage

    def _version_stage(self, ref: PackRef) -> Stage | None:
        """The stage of a version; None if its stream is damaged, which is reported there."""
        state = self._state(version_stream(ref))
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
    `since`: the checkpoint after which it begins; the numbers are of what came after it. None: everything was verified.
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
    is_first_format: bool = False
    since: Checkpoint | None = None

    @property
    def sound(self) -> bool:
        return not self.problems

    @property
    def signable(self) -> bool:
        """Whether a new checkpoint may be signed.

        It signs the log and the ends of streams. So a false cosignature does not stop it, nor a lost object: everybody
        who can write to the store can do that, and lost bytes may be lost for ever.
        """
        return self.renewable or all(problem.code in _BESIDE_THE_LOG for problem in self.problems)


class ObjectAudit:
    """Reads objects for an audit, each of which is verified by that, and remembers which ones it has read.

    `fetch`: returns the bytes of an object, or refuses if they are not those of its name; None: no object is read.
    """

    def __init__(self, fetch: Callable[[Digest], bytes] | None) -> None:
        self._fetch = fetch
        self._whole: set[Digest] = set()

    @property
    def reader(self) -> Callable[[Digest], bytes] | None:
        return None if self._fetch is None else partial(self._read, self._fetch)

    def check(self, objects: Mapping[Digest, str], problems: AuditProblems) -> None:
        """Report every object that cannot be read. `objects`: each with the place of the event that names it."""
        for digest, place in objects.items():
            try:
                if self._fetch is not None and digest not in self._whole:
                    self._read(self._fetch, digest)
            except ContextPlaneError as error:
                problems.add(error.code, place, f"{digest}: {error.message}")

    def _read(self, fetch: Callable[[Digest], bytes], digest: Digest) -> bytes:
        data = fetch(digest)
        self._whole.add(digest)
        return data


class AuditInputs(Value, frozen=True):
    """What an audit takes.

    `known`, `seen`: the keyring and the checkpoint that the client knew before. `fetch`: returns the bytes of an
    object. `judge`: judges what publishers claim. Without them, objects are not read, and only what events say is
    judged.
    """

    view: RegistryView
    known: TrustedKeys
    check: SignatureCheck
    seen: Checkpoint | None = None
    fetch: Callable[[Digest], bytes] | None = None
    judge: ClaimsJudge | None = None
    progress: Progress = lambda _size, _events: None

    @property
    def streams(self) -> StreamsView:
        return self.view.streams


def audit(inputs: AuditInputs) -> AuditResult:
    """Verify the registry of a view."""
    problems, view, streams, check = AuditProblems(), inputs.view, inputs.streams, inputs.check
    # (1) the keyring, from the known state and from its beginning
    keys = verify_keyring(inputs, problems)
    if keys is None:
        return AuditResult(problems=problems.all)  # without a trusted key, everything else would be refused
    keyrings = KeyringHistory.of(streams, keys)
    checkpoints = CheckpointAudit(streams, keyrings, check, inputs.known.origin, problems)
    objects = ObjectAudit(inputs.fetch)
    publications = PublicationAudit(objects.reader, inputs.judge)
    events = EventAudit(streams, keyrings, check, problems, inputs.seen, publications)
    trees = TreeAudit(checkpoints.sizes, keys.sealed)
    # (2) and (3), in the order of the log
    for stored in streams.read(LOG):
        inputs.progress(len(stored.body), 1)
        entry = read_log_entry(stored, problems)
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
        # Without a trusted one it is the log as it is that must continue what was seen: a new checkpoint would sign it.
        unsigned = trees.unsigned_checkpoint(keys, inputs.seen) if newest is None and doubtful else None
        check_continuity(streams, view.marks, newest or unsigned, inputs.seen)
    renewable = doubtful and len(problems.all) == 1
    # (8) the cosignatures, (9) and the objects
    audit_cosignatures(streams, keyrings, check, problems)
    objects.check(events.objects, problems)
    return AuditResult(
        problems=problems.all,
        entries=trees.size,
        subjects=len(events.states),
        checkpoints=streams.head(CHECKPOINTS),
        by_revoked=events.by_revoked,
        as_of=checkpoints.as_of,
        heads=trees.heads,
        newest=newest,
        renewable=renewable,
        is_first_format=keys.sealed is None,
    )


def verify_keyring(inputs: AuditInputs, problems: AuditProblems) -> TrustedKeys | None:
    """Verify every change of the keyring; None if one is refused."""
    with problems.collect(STREAM):
        keys = follow_keyring(inputs.streams, inputs.known, inputs.check)
        if keys != follow_keyring(inputs.streams, TrustedKeys(origin=inputs.known.origin), inputs.check):
            raise KeyringRewritten("its history does not match what is known")
        return keys
    return None


def read_log_entry(stored: StoredEvent, problems: AuditProblems) -> LogEntry | None:
    """Parse an entry of the log; None if it is not one as it is written."""
    with problems.collect(f"{LOG}@{stored.seq}"):
        try:
            entry = msgspec.convert(parse(stored.body).value, LogEntry)
        except (JsonRefused, msgspec.ValidationError) as error:
            raise LogRewritten(f"not an entry: {error}") from error
        if entry_body(entry) != stored.body or stored.kind != "entry":
            raise LogRewritten("not an entry as it is written")
        return entry
    return None


def _refuse_strays(view: RegistryView, levels: int, problems: AuditProblems) -> None:
    """Report streams under the names of the registry that no check covers."""
    for name in view.streams.names(REGISTRY):
        if name not in {LOG, CHECKPOINTS, COSIGNATURES} and not name.startswith(SUBJECTS):
            problems.add("registry_event_invalid", name, "not a stream of the registry")
    for name in levels_of(view.streams, "registry")[levels:]:
        problems.add("tree_damaged", name, "a level that the tree has not")
