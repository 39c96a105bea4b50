"""Full verification of a registry: every event, entry, node and checkpoint. It collects all problems.

    1  the keyring: every change signed by enough owners, and the known one in it      trust/keyring.py
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

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed
from contextplane.registry.artifact_state import ArtifactState, Stage, is_allowed, refuse_transition
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.claims import ClaimsJudge, PublicationAudit
from contextplane.registry.continuity import check_continuity, is_logged, parse_entry
from contextplane.registry.events import (
    AliasSet,
    DraftListed,
    EventInvalid,
    Pinned,
    Promoted,
    Published,
    RolledBack,
    kind_of,
    objects_of,
    read_event,
)
from contextplane.registry.log import event_entry
from contextplane.registry.log_audit import AuditProblem, AuditProblems, CheckpointAudit, TreeAudit, audit_cosignatures
from contextplane.registry.name_state import NameState
from contextplane.registry.open import RegistryView
from contextplane.registry.pin_state import PinState
from contextplane.registry.reader import RegistryReader
from contextplane.registry.stream_heads import StreamCut
from contextplane.registry.stream_reader import SubjectState
from contextplane.registry.streams import (
    CHECKPOINTS,
    COSIGNATURES,
    DRAFTS,
    LOG,
    REGISTRY,
    SUBJECTS,
    VERSIONS,
    artifact_stream,
    is_subject,
    names_stream,
    version_stream,
)
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.version_state import VersionState
from contextplane.store.event_stream import StreamHead
from contextplane.trust.checkpoint import (
    Checkpoint,
    LogRewritten,
)
from contextplane.trust.cosignature import CosignatureInvalid
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten, follow_keyring
from contextplane.trust.merkle import EMPTY_ROOT, levels_of
from contextplane.trust.merkle_log import CheckpointBeforeKeyring, LogEntry, VerifiedCheckpoint

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
    "report_unlogged_keyring",
    "report_void_entry",
    "verify_keyring",
]

_BESIDE_THE_LOG = {CosignatureInvalid.code, ObjectCorrupt.code, ObjectNotFound.code, ObjectObstructed.code}
"""The codes of problems of what no checkpoint signs."""
_SHOWN = 80


class EventAudit:
    """Folds the states of all subjects in the order of the log.

    A publication depends on a digest that was reviewed and signed before it, and follows the version before it; a pin
    depends on a published version. `times`: the time of every entry whose event could be read. `objects`: what the
    verified events name, each with the place of the first one. `state_before`: the state of a subject before the first
    entry that is followed; by default nothing was before. `keyring`: the number of changes of the keyring before that.

    What the log has and the rules do not allow is void. It is reported, and the states go on without it.
    """

    def __init__(  # noqa: PLR0913, PLR0917  the inputs of a verification
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        problems: AuditProblems,
        publications: PublicationAudit,
        state_before: Callable[[str], SubjectState] | None = None,
        keyring: int | None = None,
    ) -> None:
        self.states: dict[str, SubjectState | None] = {}
        self.times: dict[int, Timestamp] = {}
        self.objects: dict[Digest, str] = {}
        self.by_revoked = 0
        self._streams = streams
        self._reader = RegistryReader(streams, keyrings, check)
        self._problems = problems
        self._numbers: dict[str, int] = {}
        self._latest: Timestamp | None = None
        self._publications = publications
        self._state_before = state_before or self._reader.initial
        self._keyring = keyring

    def follow(self, entry: LogEntry, index: int) -> None:
        """Check the event of a log entry that counts: it exists, and may follow the state of its subject."""
        place = f"{entry.stream[:256]}@{entry.seq}"
        with self._problems.collect(place):
            if entry.stream == STREAM:
                self._check_keyring_entry(entry, index)
                return
            if entry.stream not in self.states:
                # Without a state, only that problem is reported of it.
                self.states[entry.stream], self._numbers[entry.stream] = None, entry.seq
                self.states[entry.stream] = self._state_before(entry.stream)
            self._numbers[entry.stream] = entry.seq
            self._check_event(entry, index)

    def _state(self, stream: str) -> SubjectState | None:
        """The state of a subject by the entries so far; None if its stream is damaged."""
        return self.states[stream] if stream in self.states else self._state_before(stream)

    def _name(self, base_id: str) -> NameState:
        """The owner of an id by the entries so far; none if its stream is damaged, which is reported there."""
        state = self._state(names_stream(base_id))
        return state if isinstance(state, NameState) else NameState(base_id=base_id)

    def _check_keyring_entry(self, entry: LogEntry, index: int) -> None:
        """Check that the log has the change of the keyring that the stream has, at its time."""
        self._keyring = entry.seq
        stored = next(iter(self._streams.read(STREAM, after=entry.seq - 1)), None)
        if stored is None or Digest.of(stored.body).hex != entry.event:
            raise KeyringRewritten(f"entry {index} of the log names another change")
        with self._problems.collect(f"{STREAM}@{entry.seq}", logged=True):
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
        place = f"{entry.stream}@{entry.seq}"
        _check_row_kind(stored)
        # From here on the log has the event as it is: if it is not allowed, it is void.
        self.states[entry.stream] = replace(state, seq=entry.seq, head=entry.event)
        with self._problems.collect(place, logged=True):
            verified = self._reader.check_event(stored, state, self._name)
            self._check_position(verified, entry, index)
            self.states[entry.stream] = state.after_event(verified)
            for _, digest in objects_of(entry.stream, verified.change):
                self.objects.setdefault(digest, place)
            self.by_revoked += verified.by.revoked
            self._check_dependencies(verified, at=str(entry.stream))
            if isinstance(state, PinState):
                state.check_carried(verified)
            if not verified.by.revoked:  # else its time is not believed
                self._check_time(index, verified.at)

    def _check_position(self, verified: VerifiedEvent, entry: LogEntry, index: int) -> None:
        """Refuse an event that is elsewhere in the log than it says, or not under the keyring of that place."""
        event = verified.event
        if event.entry != index:
            raise EventInvalid(f"it claims to be entry {event.entry} of the log, and is entry {index}")
        if event_entry(verified) != entry:
            raise EventInvalid(f"entry {index} of the log names another event before it")
        if event.origin and event.keyring != self._keyring:
            raise EventInvalid(f"made under change {event.keyring} of the keyring, and {self._keyring} was the newest")

    def _check_time(self, index: int, at: Timestamp) -> None:
        """Report a time that goes back. The places in the log decide, so that the event counts."""
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
                ref = PackRef.parse(at.removeprefix(VERSIONS))
                name, entry = self._name(ref.pack_id), verified.event.entry
                for error in self._publications.check(ref, change, name, entry):
                    self._problems.add(error.code, f"{at}@{verified.event.seq}", error.message, logged=True)
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


def _check_row_kind(stored: StoredEvent) -> None:
    """Refuse an event that the catalog has under another kind: the log has no kinds, so that is damage."""
    try:
        kind = kind_of(read_event(stored.body)[1].change)
    except ContextPlaneError:
        return  # it is no event, and so void
    if kind != stored.kind:
        raise EventInvalid(f"it is {kind}, and the catalog has it as {stored.kind[:40]!r}")


Progress = Callable[[int, int], None]
"""Called with the number of bytes and of events checked since the last call."""


class AuditResult(Value, frozen=True):
    """The result of an audit.

    `newest`: the newest checkpoint; None if there is none, or none that is trusted.
    `renewable`: beside what the log has for good, the only problem is that the signer of the newest checkpoint is
    revoked from a time before it, or that it is older than a change of the keyring; a new checkpoint repairs that.
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
    def damage(self) -> tuple[AuditProblem, ...]:
        """The problems that the log does not have for good."""
        return tuple(problem for problem in self.problems if not problem.logged)

    @property
    def signable(self) -> bool:
        """Whether a new checkpoint may be signed.

        It signs the log and the ends of streams. So a false cosignature does not stop it, nor a lost object: everybody
        who can write to the store can do that, and lost bytes may be lost for ever. Nor does what the log has for good.
        """
        return self.renewable or all(problem.logged or problem.code in _BESIDE_THE_LOG for problem in self.problems)


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
    events = EventAudit(streams, keyrings, check, problems, publications)
    trees = TreeAudit(checkpoints.sizes, keys.sealed)
    # (2) and (3), in the order of the log
    for stored in streams.read(LOG):
        inputs.progress(len(stored.body), 1)
        entry = read_log_entry(stored, problems)
        if trees.add(stored.body, entry) and entry is not None:
            events.follow(entry, stored.seq - 1)
        elif entry is not None:
            report_void_entry(entry, stored.seq - 1, problems)
    # (4) nothing beside it
    for name in chain.from_iterable(streams.names(prefix) for prefix in SUBJECTS):
        if is_subject(name):
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
        doubtful = doubtful or report_unlogged_keyring(trees.ends.get(STREAM), newest, keys, problems)
    renewable = doubtful and problems.damage == 1
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
    """Parse an entry of the log; None if it is void by itself, which is reported."""
    place = f"{LOG}@{stored.seq}"
    if stored.kind != "entry":
        problems.add(LogRewritten.code, place, f"of the kind {stored.kind[:40]!r}")
    entry = parse_entry(stored.body)
    if entry is None:
        problems.add(LogRewritten.code, place, "not an entry as it is written", logged=True)
    elif not is_logged(entry.stream):
        why = f"an entry of {entry.stream[:_SHOWN]!r}, which is no stream of the registry"
        problems.add(LogRewritten.code, place, why, logged=True)
        return None
    return entry


def report_void_entry(entry: LogEntry, index: int, problems: AuditProblems) -> None:
    """Report an entry that does not follow the last one of its stream."""
    why = f"entry {index} of the log does not follow the last event of its stream"
    problems.add(LogRewritten.code, f"{entry.stream[:256]}@{entry.seq}", why, logged=True)


def report_unlogged_keyring(
    end: StreamHead | None, newest: VerifiedCheckpoint | None, keys: TrustedKeys, problems: AuditProblems
) -> bool:
    """Report whether the log lacks a change of the keyring, which a new checkpoint repairs."""
    is_old = newest is None or newest.is_first_format
    if is_old or end == StreamHead(seq=keys.seq, digest=keys.head):
        return False
    problems.add(CheckpointBeforeKeyring.code, CHECKPOINTS, f"the log does not have change {keys.seq} of the keyring")
    return True


def _refuse_strays(view: RegistryView, levels: int, problems: AuditProblems) -> None:
    """Report streams under the names of the registry that no check covers.

    Those that an entry of the log names are reported there: the entry is void.
    """
    own = {LOG, CHECKPOINTS, COSIGNATURES}
    strays = [name for name in view.streams.names(REGISTRY) if name not in own and not is_subject(name)]
    entries = map(parse_entry, (stored.body for stored in view.streams.read(LOG))) if strays else ()
    logged = {entry.stream for entry in entries if entry is not None}
    for name in strays:
        if name not in logged:
            problems.add("registry_event_invalid", name, "not a stream of the registry")
    for name in levels_of(view.streams, "registry")[levels:]:
        problems.add("tree_damaged", name, "a level that the tree has not")
