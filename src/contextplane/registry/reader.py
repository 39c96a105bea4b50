"""Reading streams of the registry: every event is verified, in its place, then folded into a state.

    1  an envelope with an event in it                          events.py
    2  signed by one key, its actor                             events.py
    3  the event of this stream and number, of this store, after the one before it
    4  the actor's key was valid at that time, under the keyring that it names, and signed exactly this
    5  the actor had the right                                  authority.py, name_state.py
    6  the state of the subject allows it                       artifact_state.py, version_state.py, pin_state.py
    7  the stream ends where the newest checkpoint says         stream_heads.py
    8  the log has it at the entry that it names, and has the keyring before it, the next one after it
                                                                logged_entries.py

An event that the log has is void if it fails one of the steps 1 to 6 or 8: readers pass over it (`VoidEvent`). If the
log does not have it, someone changed the catalog, and it is refused.

An event whose key was revoked later, from a time before the event, is still read and marked (`Actor.revoked`): each
fold decides what it is still good for.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.ports.catalog import Streams, StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.artifact_state import ArtifactState, DraftsState
from contextplane.registry.authority import KeyringHistory, authorise
from contextplane.registry.errors import ActorNotAllowed, RegistryUntrusted
from contextplane.registry.events import (
    Change,
    EventInvalid,
    Published,
    RegistryEvent,
    read_event,
)
from contextplane.registry.logged_entries import LoggedEntries
from contextplane.registry.name_state import NameState
from contextplane.registry.pin_state import AliasState, EnvironmentState, PinState
from contextplane.registry.stream_heads import StreamHeads
from contextplane.registry.streams import (
    ALIASES,
    ARTIFACTS,
    DRAFTS,
    ENVIRONMENTS,
    NAMES,
    PINS,
    VERSIONS,
    aliases_stream,
    artifact_stream,
    digests_of,
    drafts_stream,
    environment_stream,
    names_stream,
    pins_stream,
    version_stream,
    versions_of,
)
from contextplane.registry.verified_event import Scope, VerifiedEvent, VoidEvent
from contextplane.registry.version_state import VersionState
from contextplane.store.event_stream import Chain, EventStream, Folded, StreamHead, stream_head
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import EventOfOtherStore, TrustedKeys
from contextplane.trust.keyring_stream import KeyringRewritten
from contextplane.trust.merkle import TreeDamaged
from contextplane.trust.merkle_log import CheckpointBeforeKeyring

if TYPE_CHECKING:
    from contextplane.model.value import Value

__all__ = ["RegistryReader", "SubjectState", "initial_state"]

_HINT = "the catalog was changed; see 'ctx verify --registry'"
S = TypeVar("S", bound="StreamState")

SubjectState = ArtifactState | DraftsState | NameState | VersionState | PinState | AliasState | EnvironmentState


class StreamState(Protocol):
    """The fold of a stream. `head` is the digest of its last event, "" before the first."""

    @property
    def seq(self) -> int: ...

    @property
    def head(self) -> str: ...

    def scope_of(self, change: Change) -> Scope: ...

    def after_event(self, verified: VerifiedEvent) -> Self: ...


def initial_state(stream: str) -> SubjectState:  # noqa: PLR0911  one for each kind of subject
    """The state of a subject before its first event, by the name of its stream."""
    if stream.startswith(ARTIFACTS):
        return ArtifactState(digest=Digest(stream.removeprefix(ARTIFACTS)))
    if stream.startswith(DRAFTS):
        return DraftsState(ref=PackRef.parse(stream.removeprefix(DRAFTS)))
    if stream.startswith(NAMES):
        return NameState(base_id=stream.removeprefix(NAMES))
    if stream.startswith(VERSIONS):
        return VersionState(ref=PackRef.parse(stream.removeprefix(VERSIONS)))
    if stream.startswith(PINS):
        environment, _, base_id = stream.removeprefix(PINS).partition("/")
        return PinState(environment=environment, base_id=base_id)
    if stream.startswith(ALIASES):
        return AliasState(base_id=stream.removeprefix(ALIASES))
    if stream.startswith(ENVIRONMENTS):
        return EnvironmentState(environment=stream.removeprefix(ENVIRONMENTS))
    raise EventInvalid("not a stream of the registry", at=stream)


class RegistryReader:
    """Reads the registry of a catalog by a verified keyring. It lives as long as the view that it reads.

    `heads`: where streams end, by a verified checkpoint. Without them step 7 is skipped, for callers that check it
    themselves. `log`: the verified checkpoint of the log that has the events; without it step 8 is skipped, and no
    event is void: whatever fails is refused.
    """

    def __init__(
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        heads: StreamHeads | None = None,
        *,
        log: Checkpoint | None = None,
    ) -> None:
        self.streams = streams
        self.keyrings = keyrings
        self.check = check
        self.heads = heads
        self._logged = None if log is None else LoggedEntries(streams, keyrings, log)
        self._names: dict[str, NameState] = {}

    def advance(self, heads: StreamHeads, log: Checkpoint) -> None:
        """Go on with the ends of streams and the log after an act of the writer."""
        self.heads, self._logged = heads, LoggedEntries(self.streams, self.keyrings, log)

    def names(self, prefix: str = "") -> Iterator[str]:
        """The names of all streams that begin with `prefix`, from the proved tree: none can be hidden."""
        return self.streams.names(prefix) if self.heads is None else self.heads.names(prefix)

    def drafts(self, ref: PackRef) -> tuple[Digest, ...]:
        """The digests that were listed as drafts of a version."""
        return self._fold(drafts_stream(ref), DraftsState(ref=ref)).digests

    def candidates(self, ref: PackRef) -> tuple[Digest, ...]:
        """The digests of all drafts of a version that were not withdrawn, from signed events alone."""
        listed = self.drafts(ref)
        if self._has_first_format:
            # Drafts of the first format are in no list: every history is looked at.
            listed = tuple(dict.fromkeys((*listed, *digests_of(self))))
        states = map(self.artifact, listed)
        return tuple(state.digest for state in states if state.ref == ref and state.stage != "withdrawn")

    def artifact(self, digest: Digest) -> ArtifactState:
        """The state of a digest, with all rotations of keys applied."""
        state = self._fold(artifact_stream(digest), ArtifactState(digest=digest))
        return state.after_rotations(partial(self.keyrings.rotated_keys, seq=self.keyrings.now.seq))

    def name(self, base_id: str) -> NameState:
        """The owner of an id. It is read once."""
        if base_id not in self._names:
            self._names[base_id] = self._fold(names_stream(base_id), self._initial_name(base_id))
        return self._names[base_id]

    def initial(self, stream: str) -> SubjectState:
        """The state of a subject before its first event."""
        state = initial_state(stream)
        return self._initial_name(state.base_id) if isinstance(state, NameState) else state

    def _initial_name(self, base_id: str) -> NameState:
        """The state of an id before its first claim. In the first format, who published it first owns it."""
        name = NameState(base_id=base_id)
        if not self._has_first_format:
            return name
        firsts = (self._first_publication(version_stream(ref)) for ref in versions_of(self, base_id))
        published = [(event.event.entry, event.change) for event in firsts if event is not None]
        for entry, change in sorted(published, key=lambda publication: publication[0])[:1]:
            if isinstance(change, Published):
                return name.claimed_by(change.issuer, change.kind, change.operated_by, entry)
        return name

    def _first_publication(self, stream: str) -> VerifiedEvent | None:
        """The event of the first format that published a version; None if there is none."""
        self._end(stream)
        for stored in list(self.streams.read(stream))[:1]:
            event = self._read_event(stored)
            if isinstance(event, VerifiedEvent) and event.is_first_format and isinstance(event.change, Published):
                with suppress(ActorNotAllowed):
                    authorise(event, Scope(issuer=event.change.issuer))
                    return event
        return None

    def version(self, ref: PackRef) -> VersionState:
        """The state of a version; without a publication if it was never published."""
        return self._fold(version_stream(ref), VersionState(ref=ref))

    def aliases(self, base_id: str) -> AliasState:
        return self._fold(aliases_stream(base_id), AliasState(base_id=base_id))

    def environment(self, name: str) -> EnvironmentState:
        return self._fold(environment_stream(name), EnvironmentState(environment=name))

    def pins(self, environment: str, base_id: str) -> PinState:
        """What is pinned now. Only the last event is read, so the cost does not grow with the history."""
        stream, state = pins_stream(environment, base_id), PinState(environment=environment, base_id=base_id)
        end, last = self._end(stream), self.last(stream)
        if last is not None:
            state = state.at_event(last)
        return state if end is None else replace(state, seq=end.seq, head=end.digest)

    def state(self, stream: str) -> SubjectState:
        """The state of any subject, folded from its whole stream."""
        return self._fold(stream, self.initial(stream))

    def state_after(self, stream: str, seq: int) -> SubjectState:
        """The state of a subject after its first `seq` events. Where the stream ends is not checked."""
        initial = self.initial(stream)
        stored = islice(self.streams.read(stream), seq)
        return self._describe(stream, initial).advance(_end_of(initial), stored).state

    def history(self, stream: str) -> Iterator[VerifiedEvent]:
        """Every event of a stream that counts, verified and folded while iterating."""
        state = self.initial(stream)
        events = self._describe(stream, state).follow(_end_of(state), self.streams.read(stream))
        for event, after in self._steps(state, events):
            state = after
            if isinstance(event, VerifiedEvent):
                yield event
        self._check_end(stream, StreamHead(seq=state.seq, digest=state.head) if state.seq else None)

    def last(self, stream: str) -> VerifiedEvent | None:
        """The last event of a stream that counts, verified except for its predecessors; None if there is none."""
        return next(self.history_reversed(stream), None)

    def history_reversed(self, stream: str) -> Iterator[VerifiedEvent]:
        """The events of a stream that count, from last to first, each verified except for its predecessors."""
        end, state = self._end(stream), self.initial(stream)
        seq, digest = (0, None) if end is None else (end.seq, end.digest)
        while seq:
            stored = next(iter(self.streams.read(stream, after=seq - 1)), None)
            if stored is None or stored.seq != seq or digest not in {None, Digest.of(stored.body).hex}:
                raise EventInvalid(f"event {seq} is not the one that is named", at=f"{stream}@{seq}", hint=_HINT)
            event = self._judge_event(state, self._read_event(stored))
            if isinstance(event, VerifiedEvent) and isinstance(state, PinState):
                try:
                    state.at_event(event)
                except EventInvalid as error:
                    event = self._void(event, error)
            if isinstance(event, VerifiedEvent):
                yield event
            seq, digest = event.seq - 1, event.previous

    def check_event(
        self, stored: StoredEvent, state: StreamState, name_of: Callable[[str], NameState]
    ) -> VerifiedEvent:
        """Verify steps 1 to 5 for an event that follows a state of its stream. `name_of`: the owner of an id."""
        (verified,) = self._describe_strictly(stored.stream, state).follow(_end_of(state), [stored])
        scope = state.scope_of(verified.change)
        authorise(verified, scope, name_of(scope.name) if scope.name else None)
        return verified

    def append(self, streams: Streams, stream: str, state: S, event: Event) -> tuple[VerifiedEvent, S]:
        """Append an event that passes steps 1 to 6; return it verified, and the state after it.

        It is in no log yet.
        """
        (verified,), end = self._describe_strictly(stream, state).append(streams, _end_of(state), [event])
        if isinstance(end.state, NameState):
            self._names[end.state.base_id] = end.state
        return verified, end.state

    @property
    def _has_first_format(self) -> bool:
        return self.keyrings.now.sealed != 0

    def _describe(self, stream: str, initial: S) -> EventStream[VerifiedEvent | VoidEvent, S]:
        return EventStream(name=stream, initial=initial, decode=self._read_event, evolve=self._evolve, chain=_CHAIN)

    def _describe_strictly(self, stream: str, initial: S) -> EventStream[VerifiedEvent, S]:
        """The stream for an event that no log has yet, or whose place there the caller checks: nothing is void."""
        return EventStream(
            name=stream,
            initial=initial,
            decode=self._verify_signed,
            evolve=self._evolve_strictly,
            chain=_STRICT_CHAIN,
        )

    def _fold(self, stream: str, initial: S) -> S:
        end = self._describe(stream, initial).fold(self.streams)
        self._check_end(stream, StreamHead(seq=end.seq, digest=end.digest) if end.seq else None)
        return end.state

    def _evolve(self, state: S, events: Iterable[VerifiedEvent | VoidEvent]) -> S:
        for _, after in self._steps(state, events):
            state = after
        return state

    def _evolve_strictly(self, state: S, events: Iterable[VerifiedEvent]) -> S:
        for verified in events:
            self._authorise(verified, state)
            state = state.after_event(verified)
        return state

    def _steps(
        self, state: S, events: Iterable[VerifiedEvent | VoidEvent]
    ) -> Iterator[tuple[VerifiedEvent | VoidEvent, S]]:
        for decoded in events:
            event, after = self._judge_event(state, decoded), None
            if isinstance(event, VerifiedEvent):
                try:
                    after = state.after_event(event)
                except ContextPlaneError as error:
                    event = self._void(event, error)
            state = _passed_over(state, event) if after is None else after
            yield event, state

    def _judge_event(self, state: StreamState, event: VerifiedEvent | VoidEvent) -> VerifiedEvent | VoidEvent:
        """Return an event if its actor had the right, otherwise a void one."""
        if isinstance(event, VoidEvent):
            return event
        scope = state.scope_of(event.change)
        # Read before the event is judged: damage of the name is no fault of the event.
        name = self._name_in(scope, event)
        try:
            authorise(event, scope, name)
        except ContextPlaneError as error:
            return self._void(event, error)
        return event

    def _void(self, verified: VerifiedEvent, problem: ContextPlaneError) -> VoidEvent:
        """The void event in the place of one that the log has. Without a log, the problem is raised."""
        if self._logged is None:
            raise problem
        return VoidEvent(seq=verified.seq, digest=verified.digest, previous=verified.previous, problem=problem)

    def _authorise(self, verified: VerifiedEvent, state: StreamState) -> None:
        scope = state.scope_of(verified.change)
        authorise(verified, scope, self._name_in(scope, verified))

    def _name_in(self, scope: Scope, verified: VerifiedEvent) -> NameState | None:
        return self.name(scope.name) if scope.name and not verified.is_first_format else None

    def _end(self, stream: str) -> StreamHead | None:
        """The end of a stream, which must be the signed one."""
        end = stream_head(self.streams, stream)
        self._check_end(stream, end)
        return end

    def _check_end(self, stream: str, head: StreamHead | None) -> None:
        # (7) it ends where the checkpoint says
        if self.heads is not None:
            self.heads.check(stream, head)

    def _read_event(self, stored: StoredEvent) -> VerifiedEvent | VoidEvent:
        """Verify an event and its place in the log. One that the log has, and that is not valid, is void."""
        try:
            verified = self._verify_body(stored)
            # (8) in the log, at the entry that it names
            if self._logged is not None:
                self._logged.check(verified)
        except (CheckpointBeforeKeyring, KeyringRewritten, TreeDamaged):
            raise  # damage of something else is no fault of the event
        except ContextPlaneError as error:
            entry = None if self._logged is None else self._logged.find(stored)
            if entry is None:
                raise
            return VoidEvent(seq=stored.seq, digest=entry.event, previous=entry.previous, problem=error)
        _check_kind(verified, stored)
        return verified

    def _verify_signed(self, stored: StoredEvent) -> VerifiedEvent:
        verified = self._verify_body(stored)
        _check_kind(verified, stored)
        return verified

    def _verify_body(self, stored: StoredEvent) -> VerifiedEvent:
        # (1) an envelope with an event, (2) one signature
        envelope, event = read_event(stored.body)
        # (3) in its place
        if (event.subject, event.seq) != (stored.stream, stored.seq):
            raise _misplaced_error(stored, f"it is event {event.seq} of {event.subject[:120]}")
        _check_origin(self.keyrings.now, event, stored)
        try:
            at = Timestamp.parse(event.at)
        except InvalidTimestamp as error:
            raise _misplaced_error(stored, error.message) from error
        # (4) by a key that was valid then
        signature = envelope.signatures[0]
        key = self.keyrings.public_key(signature.key_id)
        actor = self.keyrings.actor(signature.key_id, event.keyring, at) if key is not None else None
        if key is None or actor is None or not (actor.revoked or self.keyrings.is_newest_for(event, at)):
            raise RegistryUntrusted(
                f"no key that was trusted then signed it (it names {signature.key_id[:16]!r})",
                at=_place(stored),
                hint=_HINT,
            )
        if not self.check.holds(key, signature.value, envelope.pae):
            raise RegistryUntrusted(f"key {signature.key_id[:16]} did not sign this", at=_place(stored), hint=_HINT)
        return VerifiedEvent(event=event, at=at, by=actor, digest=Digest.of(stored.body).hex)


def _check_kind(verified: VerifiedEvent, stored: StoredEvent) -> None:
    """Refuse an event that the catalog has under another kind. The kind is in no entry of the log: it is an index."""
    if verified.kind != stored.kind:
        raise _misplaced_error(stored, f"it is {verified.kind}, and not {stored.kind[:40]!r}")


def _check_origin(now: TrustedKeys, event: RegistryEvent, stored: StoredEvent) -> None:
    """Refuse an event of another store. `now`: the newest keyring."""
    is_old = not event.origin and (now.sealed is None or event.entry < now.sealed)
    if not is_old and event.origin != now.origin:
        raise EventOfOtherStore(
            f"it was made for {event.origin[:120] or 'no store'}, not for {now.origin}", at=_place(stored), hint=_HINT
        )


def _place(stored: StoredEvent) -> str:
    return f"{stored.stream}@{stored.seq}"


def _misplaced_error(stored: StoredEvent, why: str) -> EventInvalid:
    return EventInvalid(f"not the event that belongs there: {why}", at=_place(stored), hint=_HINT)


_CHAIN: Chain[VerifiedEvent | VoidEvent] = Chain(previous=lambda event: event.previous, misplaced=_misplaced_error)
_STRICT_CHAIN: Chain[VerifiedEvent] = Chain(previous=lambda event: event.previous, misplaced=_misplaced_error)


def _passed_over(state: S, event: VerifiedEvent | VoidEvent) -> S:
    """The same state, after an event that counts for nothing."""
    return cast("S", replace(cast("Value", state), seq=event.seq, head=event.digest))


def _end_of(state: S) -> Folded[S]:
    return Folded(state=state, seq=state.seq, digest=state.head)
