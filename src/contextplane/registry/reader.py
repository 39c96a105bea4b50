"""Reading streams of the registry: every event is verified, in its place, then folded into a state.

    1  an envelope with an event in it                          events.py
    2  signed by one key, its actor                             events.py
    3  the event of this stream and number, of this store, after the one before it
    4  not earlier than that one, nor than a checkpoint that this client saw without the event
    5  the actor's key was valid under the keyring of that time, and signed exactly this
    6  the actor had the right                                  authority.py
    7  the state of the subject allows it                       artifact_state.py, version_state.py, pin_state.py
    8  the stream ends where the newest checkpoint says         stream_heads.py
    9  the log has it at the entry that it names, after the event that it follows

An event whose key was revoked later, from a time before the event, is still read and marked (`Actor.revoked`): each
fold decides what it is still good for.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Protocol, Self, TypeVar

from contextplane.model.catalog import Event, StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.ports.catalog import Streams, StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.artifact_state import ArtifactState, DraftsState
from contextplane.registry.authority import KeyringHistory, authorise
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.events import (
    Change,
    EventInvalid,
    RegistryEvent,
    Scope,
    VerifiedEvent,
    kind_of,
    read_event,
)
from contextplane.registry.log import event_entry
from contextplane.registry.pin_state import AliasState, EnvironmentState, PinState
from contextplane.registry.stream_heads import StreamHeads
from contextplane.registry.streams import (
    ALIASES,
    ARTIFACTS,
    DRAFTS,
    ENVIRONMENTS,
    PINS,
    TREE,
    VERSIONS,
    aliases_stream,
    artifact_stream,
    drafts_stream,
    environment_stream,
    pins_stream,
    version_stream,
)
from contextplane.registry.version_state import VersionState
from contextplane.store.event_stream import Chain, EventStream, Folded, StreamHead, last_event
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring import EventOfOtherStore, TrustedKeys
from contextplane.trust.merkle import (
    CachedNodes,
    InclusionRefuted,
    StreamTree,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from contextplane.trust.merkle_log import entry_body

__all__ = ["LoggedEntries", "RegistryReader", "SubjectState", "initial_state"]

_HINT = "the catalog was changed; see 'ctx verify --registry'"
S = TypeVar("S", bound="StreamState")

SubjectState = ArtifactState | DraftsState | VersionState | PinState | AliasState | EnvironmentState


class StreamState(Protocol):
    """The fold of a stream. `head` is the digest of its last event, "" before the first."""

    @property
    def seq(self) -> int: ...

    @property
    def head(self) -> str: ...

    def scope_of(self, change: Change) -> Scope: ...

    def after_event(self, verified: VerifiedEvent) -> Self: ...


def initial_state(stream: str) -> SubjectState:
    """The state of a subject before its first event, by the name of its stream."""
    if stream.startswith(ARTIFACTS):
        return ArtifactState(digest=Digest(stream.removeprefix(ARTIFACTS)))
    if stream.startswith(DRAFTS):
        return DraftsState(ref=PackRef.parse(stream.removeprefix(DRAFTS)))
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

    `heads`: where streams end, by a verified checkpoint. Without them step 8 is skipped, for callers that check it
    themselves. `seen`: the highest checkpoint that the client knew before. `log`: the verified checkpoint of the
    log that has the events; without it step 9 is skipped.
    """

    def __init__(  # noqa: PLR0913  what a client knows
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        heads: StreamHeads | None = None,
        *,
        seen: Checkpoint | None = None,
        log: Checkpoint | None = None,
    ) -> None:
        self.streams = streams
        self.keyrings = keyrings
        self.check = check
        self.heads = heads
        self.seen = seen
        self._logged = None if log is None else LoggedEntries(streams, log)
        self._tenants: dict[PackRef, str] = {}

    def advance(self, heads: StreamHeads, log: Checkpoint) -> None:
        """Go on with the ends of streams and the log after an act of the writer."""
        self.heads, self._logged = heads, LoggedEntries(self.streams, log)

    def names(self, prefix: str = "") -> Iterator[str]:
        """The names of all streams that begin with `prefix`, from the proved tree: none can be hidden."""
        return self.streams.names(prefix) if self.heads is None else self.heads.names(prefix)

    def drafts(self, ref: PackRef) -> tuple[Digest, ...]:
        """The digests that were listed as drafts of a version."""
        return self._fold(drafts_stream(ref), DraftsState(ref=ref)).digests

    def candidates(self, ref: PackRef) -> tuple[Digest, ...]:
        """The digests of all drafts of a version that were not withdrawn, from signed events alone."""
        listed = self.drafts(ref)
        if self.keyrings.now.sealed != 0:
            # Drafts of the first format are in no list: every history is looked at.
            digests = (Digest(name.removeprefix(ARTIFACTS)) for name in self.names(ARTIFACTS))
            listed = tuple(dict.fromkeys((*listed, *digests)))
        states = map(self.artifact, listed)
        return tuple(state.digest for state in states if state.ref == ref and state.stage != "withdrawn")

    def artifact(self, digest: Digest) -> ArtifactState:
        """The state of a digest, with all rotations of keys applied."""
        state = self._fold(artifact_stream(digest), ArtifactState(digest=digest))
        return state.after_rotations(partial(self.keyrings.rotated_keys, seq=self.keyrings.now.seq))

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
        last = self.last(stream)
        return state if last is None else state.at_event(last)

    def state(self, stream: str) -> SubjectState:
        """The state of any subject, folded from its whole stream."""
        return self._fold(stream, initial_state(stream))

    def history(self, stream: str) -> Iterator[VerifiedEvent]:
        """Every event of a stream, verified and folded while iterating."""
        state = initial_state(stream)
        events = self._describe(stream, state).follow(_end_of(state), self.streams.read(stream))
        for verified, after in self._steps(state, events):
            state = after
            yield verified
        self._check_end(stream, StreamHead(seq=state.seq, digest=state.head) if state.seq else None)

    def last(self, stream: str) -> VerifiedEvent | None:
        """The last event of a stream, verified except for its predecessors; None if there is none."""
        stored = last_event(self.streams, stream)
        self._check_end(
            stream, None if stored is None else StreamHead(seq=stored.seq, digest=Digest.of(stored.body).hex)
        )
        if stored is None:
            return None
        verified = self._verify_event(stored)
        self._authorise(verified, initial_state(stream))
        return verified

    def history_reversed(self, stream: str) -> Iterator[VerifiedEvent]:
        """The events of a stream from last to first; each must be the one that its successor names."""
        verified = self.last(stream)
        while verified is not None:
            yield verified
            before, previous = verified.event.seq - 1, verified.event.previous
            stored = next(iter(self.streams.read(stream, after=before - 1)), None) if before else None
            if before and (stored is None or Digest.of(stored.body).hex != previous):
                raise EventInvalid(f"event {before} is not the one that is named", at=f"{stream}@{before}", hint=_HINT)
            verified = self._verify_event(stored) if stored is not None else None

    def check_event(self, stored: StoredEvent, state: StreamState) -> VerifiedEvent:
        """Verify steps 1 to 6 for an event that follows a state of its stream."""
        (verified,) = self._describe(stored.stream, state).follow(_end_of(state), [stored])
        self._authorise(verified, state)
        return verified

    def append(self, streams: Streams, stream: str, state: S, event: Event) -> tuple[VerifiedEvent, S]:
        """Append an event that passes steps 1 to 7; return it verified, and the state after it.

        It is in no log yet.
        """
        described = EventStream(
            name=stream, initial=state, decode=self._verify_signed, evolve=self._evolve, chain=_CHAIN
        )
        (verified,), end = described.append(streams, _end_of(state), [event])
        return verified, end.state

    def _describe(self, stream: str, initial: S) -> EventStream[VerifiedEvent, S]:
        return EventStream(name=stream, initial=initial, decode=self._verify_event, evolve=self._evolve, chain=_CHAIN)

    def _fold(self, stream: str, initial: S) -> S:
        end = self._describe(stream, initial).fold(self.streams)
        self._check_end(stream, StreamHead(seq=end.seq, digest=end.digest) if end.seq else None)
        return end.state

    def _evolve(self, state: S, events: Iterable[VerifiedEvent]) -> S:
        for _, after in self._steps(state, events):
            state = after
        return state

    def _steps(self, state: S, events: Iterable[VerifiedEvent]) -> Iterator[tuple[VerifiedEvent, S]]:
        before: Timestamp | None = None
        for verified in events:
            # (6) by an actor with the right
            self._authorise(verified, state)
            # (4) times do not go back
            if before is not None and verified.at < before:
                at = f"{verified.event.subject}@{verified.event.seq}"
                raise ClockWentBackwards(f"an event at {verified.at}, after one at {before}", at=at)
            # (7) allowed by the state
            state = state.after_event(verified)
            before = before if verified.by.revoked else verified.at
            yield verified, state

    def _authorise(self, verified: VerifiedEvent, state: StreamState) -> None:
        authorise(verified, state.scope_of(verified.change), self._tenant_of)

    def _tenant_of(self, ref: PackRef) -> str:
        if ref not in self._tenants:
            published = self.version(ref).published
            self._tenants[ref] = "" if published is None else published.operated_by
        return self._tenants[ref]

    def _check_end(self, stream: str, head: StreamHead | None) -> None:
        # (8) it ends where the checkpoint says
        if self.heads is not None:
            self.heads.check(stream, head)

    def _verify_event(self, stored: StoredEvent) -> VerifiedEvent:
        verified = self._verify_signed(stored)
        # (9) in the log, at the entry that it names
        if self._logged is not None:
            self._logged.check(verified)
        return verified

    def _verify_signed(self, stored: StoredEvent) -> VerifiedEvent:
        # (1) an envelope with an event, (2) one signature
        envelope, event = read_event(stored.body)
        # (3) in its place
        if (event.subject, event.seq, kind_of(event.change)) != (stored.stream, stored.seq, stored.kind):
            raise _misplaced_error(stored, f"it is {kind_of(event.change)}, event {event.seq} of {event.subject[:120]}")
        _check_origin(self.keyrings.now, event, stored)
        try:
            at = Timestamp.parse(event.at)
        except InvalidTimestamp as error:
            raise _misplaced_error(stored, error.message) from error
        # (4) times do not go back
        seen = self.seen
        if seen is not None and seen.time is not None and event.entry >= seen.size and at < seen.time:
            raise ClockWentBackwards(
                f"an event at {at}, and at {seen.time} it was not there yet", at=_place(stored), hint=_HINT
            )
        # (5) by a key that was valid then
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


class LoggedEntries:
    """Proves that events are the entries of a log that they name. `log`: its verified checkpoint."""

    def __init__(self, streams: StreamsView, log: Checkpoint) -> None:
        self._log = log
        self._nodes = CachedNodes(StreamTree(streams, TREE))

    def check(self, verified: VerifiedEvent) -> None:
        """Refuse an event that is not the entry of the log that it claims to be.

        The entry names the event before it, too: so nothing in a stream can be exchanged behind the log.
        """
        event, size = verified.event, self._log.size
        place = f"{event.subject}@{event.seq}"
        if event.entry >= size:
            raise EventInvalid(f"it claims to be entry {event.entry} of a log of {size}", at=place, hint=_HINT)
        try:
            path = inclusion_proof(self._nodes, event.entry, size)
            leaf = leaf_hash(entry_body(event_entry(verified)))
            verify_inclusion(leaf, event.entry, size, root=self._log.root, proof=path)
        except InclusionRefuted as error:
            why = f"it claims to be entry {event.entry} of the log, and is not"
            raise EventInvalid(why, at=place, hint=_HINT) from error


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


_CHAIN: Chain[VerifiedEvent] = Chain(previous=lambda verified: verified.event.previous, misplaced=_misplaced_error)


def _end_of(state: S) -> Folded[S]:
    return Folded(state=state, seq=state.seq, digest=state.head)
