"""Reading streams of the registry: every event checked, in its place, then folded. Nothing is believed unsigned.

    1  an envelope with an event in it                          events.py
    2  signed by one key, its actor                             events.py
    3  the event of this stream and number, after the one before it
    4  not earlier than that one, nor than a checkpoint that this client saw before the event was there
    5  the actor's key was good under the keyring of that time, which fits that time, and signed exactly this
    6  the actor had the right                                  authority.py
    7  the state of the subject allows it                       lifecycle.py, version.py, pins.py, names.py
    8  the stream ends where the newest checkpoint says         heads.py

An event whose key was revoked later, from a time before it on, is read all the same and marked (`Actor.revoked`): each
fold says what it is still good for.
"""

from collections.abc import Iterator
from functools import partial
from typing import Protocol, Self, TypeVar

from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.artifact_state import ArtifactState
from contextplane.registry.authority import Keyrings, authorise
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.events import Change, EventInvalid, Happened, kind_of, read_event
from contextplane.registry.pin_state import AliasState, EnvironmentState, PinState
from contextplane.registry.stream_heads import Head, Heads
from contextplane.registry.streams import (
    ALIASES,
    ARTIFACTS,
    ENVIRONMENTS,
    PINS,
    VERSIONS,
    aliases_stream,
    artifact_stream,
    environment_stream,
    pins_stream,
    version_stream,
)
from contextplane.registry.version_state import VersionState
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.errors import ClockWentBackwards

__all__ = ["Reader", "State", "beginning_of"]

_HINT = "somebody changed the catalog; 'ctx verify --registry' tells more"
S = TypeVar("S", bound="Folded")

State = ArtifactState | VersionState | PinState | AliasState | EnvironmentState


class Folded(Protocol):
    """What every fold of a stream has. `head` is the digest of its last event, "" before the first."""

    @property
    def seq(self) -> int: ...

    @property
    def head(self) -> str: ...

    def issuer_of(self, change: Change) -> str: ...

    def after_event(self, happened: Happened) -> Self: ...


def beginning_of(stream: str) -> State:
    """The state of a subject of which nothing is known yet, by the name of its stream."""
    if stream.startswith(ARTIFACTS):
        return ArtifactState(digest=Digest(stream.removeprefix(ARTIFACTS)))
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


class Reader:
    """Reads what a catalog says, by a keyring that is trusted. It lives as long as the view that it reads.

    `heads`: where streams end, by a checkpoint that is believed. Without them (8) is left out: only for who checks it
    himself. `seen`: the highest checkpoint that the client knew before.
    """

    def __init__(
        self,
        streams: StreamsView,
        keyrings: Keyrings,
        check: SignatureCheck,
        heads: Heads | None = None,
        *,
        seen: Checkpoint | None = None,
    ) -> None:
        self.streams = streams
        self.keyrings = keyrings
        self.check = check
        self.heads = heads
        self.seen = seen

    def artifact(self, digest: Digest) -> ArtifactState:
        """What became of a digest, by what is known of people now."""
        state = self._folded(artifact_stream(digest), ArtifactState(digest=digest))
        return state.as_known(partial(self.keyrings.kin, seq=self.keyrings.now.seq))

    def version(self, ref: PackRef) -> VersionState:
        """What became of a version; one that was never published has nothing published."""
        return self._folded(version_stream(ref), VersionState(ref=ref))

    def aliases(self, base_id: str) -> AliasState:
        return self._folded(aliases_stream(base_id), AliasState(base_id=base_id))

    def environment(self, name: str) -> EnvironmentState:
        return self._folded(environment_stream(name), EnvironmentState(environment=name))

    def pins(self, environment: str, base_id: str) -> PinState:
        """What is pinned now. Only the last event is read: the cost does not grow with the history."""
        stream, state = pins_stream(environment, base_id), PinState(environment=environment, base_id=base_id)
        last = self.last(stream)
        return state if last is None else state.at_event(last)

    def state(self, stream: str) -> State:
        """The state of any subject, the whole stream folded."""
        return self._folded(stream, beginning_of(stream))

    def history(self, stream: str) -> Iterator[Happened]:
        """Every event of a stream, checked and folded, as it comes."""
        for happened, _ in self._steps(stream, beginning_of(stream)):
            yield happened

    def last(self, stream: str) -> Happened | None:
        """The last event of a stream, checked but for what was before it; None when there is none."""
        head = self.streams.head(stream)
        stored = next(iter(self.streams.read(stream, after=head - 1)), None) if head else None
        self._ends(stream, None if stored is None else Head(seq=stored.seq, digest=Digest.of(stored.body).hex))
        if stored is None:
            return None
        happened = self._opened(stored)
        authorise(happened.change, happened.by, beginning_of(stream).issuer_of(happened.change))
        return happened

    def backwards(self, stream: str) -> Iterator[Happened]:
        """The events of a stream from its last to its first: each is the one that the next names as before it."""
        happened = self.last(stream)
        while happened is not None:
            yield happened
            before, named = happened.event.seq - 1, happened.event.previous
            stored = next(iter(self.streams.read(stream, after=before - 1)), None) if before else None
            if before and (stored is None or Digest.of(stored.body).hex != named):
                raise EventInvalid(f"event {before} is not the one that is named", at=f"{stream}@{before}", hint=_HINT)
            happened = self._opened(stored) if stored is not None else None

    def checked(self, stored: StoredEvent, state: Folded) -> Happened:
        """(1) to (6): an event that follows a state of its stream."""
        happened = self._opened(stored)
        if happened.event.previous != state.head or stored.seq != state.seq + 1:
            raise _misplaced(stored, f"it does not follow event {state.seq}")
        authorise(happened.change, happened.by, state.issuer_of(happened.change))
        return happened

    def _folded(self, stream: str, state: S) -> S:
        for _, after in self._steps(stream, state):
            state = after
        return state

    def _steps(self, stream: str, state: S) -> Iterator[tuple[Happened, S]]:
        before: Timestamp | None = None
        for stored in self.streams.read(stream):
            happened = self.checked(stored, state)
            # (4) times do not go back
            if before is not None and happened.at < before:
                raise ClockWentBackwards(f"an event at {happened.at}, after one at {before}", at=_place(stored))
            state, before = state.after_event(happened), happened.at
            yield happened, state
        self._ends(stream, Head(seq=state.seq, digest=state.head) if state.seq else None)

    def _ends(self, stream: str, head: Head | None) -> None:
        # (8) it ends where it should
        if self.heads is not None:
            self.heads.check(stream, head)

    def _opened(self, stored: StoredEvent) -> Happened:
        # (1) an envelope with an event, (2) one signature
        envelope, event = read_event(stored.body)
        # (3) in its place
        if (event.subject, event.seq, kind_of(event.change)) != (stored.stream, stored.seq, stored.kind):
            raise _misplaced(stored, f"it is {kind_of(event.change)}, event {event.seq} of {event.subject[:120]}")
        try:
            at = Timestamp.parse(event.at)
        except InvalidTimestamp as error:
            raise _misplaced(stored, error.message) from error
        # (4) times do not go back
        seen = self.seen
        if seen is not None and seen.time is not None and event.entry >= seen.size and at < seen.time:
            raise ClockWentBackwards(
                f"an event at {at}, and at {seen.time} it was not there yet", at=_place(stored), hint=_HINT
            )
        # (5) by a key that was good then
        signature = envelope.signatures[0]
        key = self.keyrings.public_key(signature.key_id)
        actor = self.keyrings.actor(signature.key_id, event.keyring, at) if key is not None else None
        if key is None or actor is None or not self.keyrings.fits(event, at):
            raise RegistryUntrusted(
                f"no key that was trusted then signed it (it names {signature.key_id[:16]!r})",
                at=_place(stored),
                hint=_HINT,
            )
        if not self.check.holds(key, signature.value, envelope.pae):
            raise RegistryUntrusted(f"key {signature.key_id[:16]} did not sign this", at=_place(stored), hint=_HINT)
        return Happened(event=event, at=at, by=actor, digest=Digest.of(stored.body).hex)


def _place(stored: StoredEvent) -> str:
    return f"{stored.stream}@{stored.seq}"


def _misplaced(stored: StoredEvent, why: str) -> EventInvalid:
    return EventInvalid(f"not the event that belongs there: {why}", at=_place(stored), hint=_HINT)
