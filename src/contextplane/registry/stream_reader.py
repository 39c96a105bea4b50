"""Reading streams of the registry: every event is verified, in its place, then folded into a state.

    1  to 4: signed by a key that was valid then                event_verifier.py
    5  the actor had the right                                  authority.py, name_state.py
    6  the state of the subject allows it                       artifact_state.py, version_state.py, pin_state.py
    7  the stream ends where the newest checkpoint says         stream_heads.py
    8  the log has it at the entry that it names                event_verifier.py, logged_entries.py

An event that the log has is void if it fails one of the steps 1 to 6 or 8: readers pass over it (`VoidEvent`). If the
log does not have it, someone changed the catalog, and it is refused.

Reading from the last event on (`last`, `history_reversed`) skips most of step 6, because the state before an event is
not known: whether the pins that an event carries follow from those before it, only `state`, `history` and audits check.
It is for subjects whose rights do not depend on their state: pins and environments.

An event whose key was revoked later, from a time before the event, is still read and marked (`Actor.revoked`): each
fold decides what it is still good for.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.ports.catalog import Streams, StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.artifact_state import ArtifactState, DraftsState
from contextplane.registry.authority import KeyringHistory, authorise
from contextplane.registry.errors import ActorNotAllowed
from contextplane.registry.event_verifier import CATALOG_HINT, EventVerifier, misplaced_error
from contextplane.registry.events import (
    Change,
    EventInvalid,
    Published,
)
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
    names_stream,
    version_stream,
    versions_of,
)
from contextplane.registry.verified_event import Scope, VerifiedEvent, VoidEvent
from contextplane.registry.version_state import VersionState
from contextplane.store.event_stream import Chain, EventStream, Folded, StreamHead, stream_head
from contextplane.trust.checkpoint import Checkpoint

if TYPE_CHECKING:
    from contextplane.model.value import Value

__all__ = ["StreamReader", "SubjectState", "initial_state"]

_MOST_STATES = 512
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


class StreamReader:
    """Reads streams of the registry by a verified keyring. It lives as long as the view that it reads.

    `heads`: where streams end, by a verified checkpoint. Without them step 7 is skipped, for callers that check it
    themselves. `log`: the verified checkpoint of the log that has the events; without it step 8 is skipped, and no
    event is void: one that fails is refused. `has_voids`: that log has void entries.
    """

    def __init__(  # noqa: PLR0913  what a client knows
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        heads: StreamHeads | None = None,
        *,
        log: Checkpoint | None = None,
        has_voids: bool = False,
    ) -> None:
        self.streams = streams
        self.keyrings = keyrings
        self.check = check
        self.heads = heads
        self._verifier = EventVerifier(streams, keyrings, check, log, has_voids=has_voids)
        self._states: dict[str, StreamState] = {}

    def advance(self, heads: StreamHeads, log: Checkpoint) -> None:
        """Go on with the ends of streams and the log after an act of the writer."""
        self.heads, self._verifier = heads, self._verifier.with_log(log)

    def names(self, prefix: str = "") -> Iterator[str]:
        """The names of all streams that begin with `prefix`, from the proved tree: none can be hidden."""
        return self.streams.names(prefix) if self.heads is None else self.heads.names(prefix)

    def name(self, base_id: str) -> NameState:
        """The owner of an id."""
        stream = names_stream(base_id)
        # Before the first claim its state may take reading all versions of the id.
        known = self._states.get(stream)
        return known if isinstance(known, NameState) else self.fold(stream, self._initial_name(base_id))

    def initial(self, stream: str) -> SubjectState:
        """The state of a subject before its first event."""
        state = initial_state(stream)
        return self._initial_name(state.base_id) if isinstance(state, NameState) else state

    def _initial_name(self, base_id: str) -> NameState:
        """The state of an id before its first claim. In the first format, who published it first owns it."""
        refs = versions_of(self, base_id) if self.has_first_format else []
        publications = (self._first_publication(version_stream(ref)) for ref in refs)
        return NameState.of_first_format(base_id, [event for event in publications if event is not None])

    def _first_publication(self, stream: str) -> VerifiedEvent | None:
        """The event of the first format that published a version; None if there is none."""
        self.end(stream)
        for stored in islice(self.streams.read(stream), 1):
            event = self._verifier.read(stored)
            if isinstance(event, VerifiedEvent) and event.is_first_format and isinstance(event.change, Published):
                with suppress(ActorNotAllowed):
                    authorise(event, Scope(issuer=event.change.issuer))
                    return event
        return None

    def state(self, stream: str) -> SubjectState:
        """The state of any subject, folded from its whole stream."""
        return self.fold(stream, self.initial(stream))

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
        end, state = self.end(stream), self.initial(stream)
        seq, digest = (0, None) if end is None else (end.seq, end.digest)
        while seq:
            stored = next(iter(self.streams.read(stream, after=seq - 1)), None)
            if stored is None or stored.seq != seq or digest not in {None, Digest.of(stored.body).hex}:
                raise EventInvalid(f"event {seq} is not the one that is named", at=f"{stream}@{seq}", hint=CATALOG_HINT)
            event = self._judge_event(state, self._verifier.read(stored))
            if isinstance(event, VerifiedEvent):
                try:
                    _refuse_misfit(state, event)
                except EventInvalid as error:
                    event = self._verifier.void(event, error)
            if isinstance(event, VerifiedEvent):
                yield event
            seq, digest = event.seq - 1, event.previous

    def check_event(
        self, stored: StoredEvent, state: StreamState, name_of: Callable[[str], NameState]
    ) -> VerifiedEvent:
        """Verify steps 1 to 5 for an event that follows a state of its stream. `name_of`: the owner of an id."""
        (verified,) = self._describe_strictly(stored.stream, state).follow(_end_of(state), [stored])
        scope = state.scope_of(verified.change)
        authorise(verified, scope, name_of(scope.name) if scope.name else None, self.keyrings)
        return verified

    def append(self, streams: Streams, stream: str, state: S, event: Event) -> tuple[VerifiedEvent, S]:
        """Append an event that passes steps 1 to 6; return it verified, and the state after it.

        It is in no log yet.
        """
        (verified,), end = self._describe_strictly(stream, state).append(streams, _end_of(state), [event])
        self._states[stream] = end.state
        return verified, end.state

    @property
    def has_first_format(self) -> bool:
        return self.keyrings.now.sealed != 0

    def _describe(self, stream: str, initial: S) -> EventStream[VerifiedEvent | VoidEvent, S]:
        return EventStream(name=stream, initial=initial, decode=self._verifier.read, evolve=self._evolve, chain=_CHAIN)

    def _describe_strictly(self, stream: str, initial: S) -> EventStream[VerifiedEvent, S]:
        """Describe the stream of an event that no log has yet, or whose place the caller checks."""
        return EventStream(
            name=stream,
            initial=initial,
            decode=self._verifier.verify,
            evolve=self._evolve_strictly,
            chain=_STRICT_CHAIN,
        )

    def fold(self, stream: str, initial: S) -> S:
        """The state of a subject. It is verified once; the last ones are kept."""
        if stream not in self._states:
            end = self._describe(stream, initial).fold(self.streams)
            self._check_end(stream, StreamHead(seq=end.seq, digest=end.digest) if end.seq else None)
            if len(self._states) >= _MOST_STATES:
                self._states.clear()
            self._states[stream] = end.state
        return cast("S", self._states[stream])

    def _evolve(self, state: S, events: Iterable[VerifiedEvent | VoidEvent]) -> S:
        for _, after in self._steps(state, events):
            state = after
        return state

    def _evolve_strictly(self, state: S, events: Iterable[VerifiedEvent]) -> S:
        for verified in events:
            scope = state.scope_of(verified.change)
            authorise(verified, scope, self._name_in(scope, verified), self.keyrings)
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
                    event = self._verifier.void(event, error)
            state = _skip_event(state, event) if after is None else after
            yield event, state

    def _judge_event(self, state: StreamState, event: VerifiedEvent | VoidEvent) -> VerifiedEvent | VoidEvent:
        """Return an event if its actor had the right, otherwise a void one."""
        if isinstance(event, VoidEvent):
            return event
        scope = state.scope_of(event.change)
        # Read before the event is judged: damage of the name is no fault of the event.
        name = self._name_in(scope, event)
        try:
            authorise(event, scope, name, self.keyrings)
        except ContextPlaneError as error:
            return self._verifier.void(event, error)
        return event

    def _name_in(self, scope: Scope, verified: VerifiedEvent) -> NameState | None:
        return self.name(scope.name) if scope.name and not verified.is_first_format else None

    def end(self, stream: str) -> StreamHead | None:
        """The end of a stream, which must be the signed one."""
        end = stream_head(self.streams, stream)
        self._check_end(stream, end)
        return end

    def _check_end(self, stream: str, head: StreamHead | None) -> None:
        # (7) it ends where the checkpoint says
        if self.heads is not None:
            self.heads.check(stream, head)


_CHAIN: Chain[VerifiedEvent | VoidEvent] = Chain(previous=lambda event: event.previous, misplaced=misplaced_error)
_STRICT_CHAIN: Chain[VerifiedEvent] = Chain(previous=lambda event: event.previous, misplaced=misplaced_error)


def _refuse_misfit(state: SubjectState, event: VerifiedEvent) -> None:
    """Refuse an event that its subject takes in no state: one of another kind, or about another subject."""
    if isinstance(state, PinState | EnvironmentState):
        state.after_event(event)


def _skip_event(state: S, event: VerifiedEvent | VoidEvent) -> S:
    """The same state, after an event that counts for nothing."""
    return cast("S", replace(cast("Value", state), seq=event.seq, head=event.digest))


def _end_of(state: S) -> Folded[S]:
    return Folded(state=state, seq=state.seq, digest=state.head)
