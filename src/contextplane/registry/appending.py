"""The one place that appends to the registry: events, their entries in the log, the trees, a checkpoint, together.

Nothing is written that a reader would refuse: each event is signed, read back as a reader would, and folded, before it
is appended. A refusal leaves every stream as it was, for it leaves the transaction.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction
from contextplane.ports.object_index import ObjectIndex, Recorded
from contextplane.ports.objects import ObjectNotFound
from contextplane.ports.signer import SignatureCheck, Signer
from contextplane.ports.streams import Event, StoredEvent
from contextplane.registry.changes import Change, Drafted, PinChange
from contextplane.registry.checkpoints import Entry, Standing, append_entries, check_revocations, standing
from contextplane.registry.events import Happened, RegistryEvent, checked_change, kind_of, objects_of, written
from contextplane.registry.heads import Head, Heads, put_heads
from contextplane.registry.keyrings import Keyrings
from contextplane.registry.pins import PinState, pins_after
from contextplane.registry.reading import Reader, State
from contextplane.registry.refusals import RegistryUntrusted
from contextplane.registry.streams import LOG, PINS, REGISTRY
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.time_on_record import moment_of_act, seconds_behind

__all__ = ["DRAFTS", "Appended", "Planned", "Writer", "draft_root", "index_objects", "root_name"]


class Planned(Value, frozen=True):
    """A change that somebody wants, and why. What is pinned after it (`pins`) is filled in when it is written."""

    stream: str
    change: Change
    reason: str


class Appended(Value, frozen=True):
    """The events as they were written, and the checkpoint of the log with them."""

    events: tuple[Happened, ...]
    standing: Standing


def root_name(digest: Digest) -> str:
    """The root that keeps an object of the registry."""
    return REGISTRY + digest.hex


DRAFTS = f"{REGISTRY}draft/"
"""What the roots of all drafts begin with."""


def draft_root(ref: PackRef | str, digest: Digest | None = None) -> str:
    """The root by which the drafts of a version are found; without a digest, what they all begin with."""
    return f"{DRAFTS}{ref}/{digest.hex if digest is not None else ''}"


def index_objects(index: ObjectIndex, stream: str, change: Change) -> None:
    """Say what the objects of an event are, and keep them. An index that is made anew is made by this as well."""
    for kind, digest in objects_of(stream, change):
        recorded = index.recorded(digest)
        if recorded is None:
            raise ObjectNotFound(f"{kind_of(change)} names it", at=str(digest), hint="store it first")
        index.record(replace(recorded, kind=kind, traced=True))
        index.keep(root_name(digest), digest)
        if isinstance(change, Drafted):
            index.keep(draft_root(f"{change.id}@{change.version}", digest), digest)


class Writer:
    """Whoever acts, in one transaction: a key, the time, and the keyring as it is in this transaction."""

    def __init__(  # noqa: PLR0913  what an act consists of
        self,
        tx: Transaction,
        *,
        keys: TrustedKeys,
        check: SignatureCheck,
        signer: Signer,
        now: Timestamp,
        origin: str,
    ) -> None:
        self.tx = tx
        # Nothing is decided here by a log that is not what is signed.
        keyrings = Keyrings.of(tx.streams, keys)
        self.standing = standing(tx.streams, keyrings, check, origin)
        """The checkpoint before this act; after it, the one of it."""
        check_revocations(self.standing, keys)
        last = keys.as_of if self.standing is None else max(keys.as_of, self.standing.time)
        self.now = moment_of_act(now, last)
        """The moment of this act."""
        self.behind = seconds_behind(now, last)
        """How far the clock is behind what is on record."""
        self.reader = Reader(tx.streams, keyrings, check, Heads(tx.marks, self._root))
        self._signer = signer
        self._origin = origin

    @property
    def key_id(self) -> str:
        return self._signer.public_key.key_id

    @property
    def _root(self) -> bytes:
        return EMPTY_ROOT if self.standing is None else self.standing.heads

    def append(self, planned: Sequence[Planned], objects: Sequence[Recorded] = ()) -> Appended:
        """Append all or none. `objects`: those the events name that are stored and not recorded yet."""
        # (1) the key is good now
        self._refuse_untrusted()
        # (2) each event signed, read back and folded, then appended
        states: dict[str, State] = {}
        events: list[Happened] = []
        first = self.tx.streams.head(LOG)
        for n, one in enumerate(planned):
            state = states.get(one.stream) or self._state(one.stream)
            happened, states[one.stream] = self._appended(one, state, first + n)
            events.append(happened)
        # (3) what they name is there, and is kept
        self._keep(events, objects)
        # (4) their entries, the tree, the ends of their streams, the checkpoint
        entries = [Entry(event=one.digest, seq=one.event.seq, stream=one.event.subject) for one in events]
        ends = {one.stream: Head(seq=one.seq, digest=one.event) for one in entries}
        after = append_entries(
            self.tx.streams,
            entries,
            heads=put_heads(self.tx.marks, self._root, ends),
            signer=self._signer,
            at=self.now,
            origin=self._origin,
        )
        self.standing = after
        self.reader.heads = Heads(self.tx.marks, self._root)
        return Appended(events=tuple(events), standing=after)

    def _state(self, stream: str) -> State:
        if stream.startswith(PINS):
            environment, _, base_id = stream.removeprefix(PINS).partition("/")
            return self.reader.pins(environment, base_id)
        return self.reader.state(stream)

    def _appended(self, planned: Planned, state: State, entry: int) -> tuple[Happened, State]:
        change = _completed(planned.change, state, entry, str(self.now), self.key_id)
        checked_change(change, planned.reason)
        event = RegistryEvent(
            subject=planned.stream,
            seq=state.seq + 1,
            previous=state.head,
            entry=entry,
            keyring=self.reader.keyrings.now.seq,
            at=str(self.now),
            reason=planned.reason,
            change=change,
        )
        body, kind = written(event, self._signer), kind_of(change)
        stored = StoredEvent(stream=planned.stream, seq=event.seq, kind=kind, body=body)
        happened = self.reader.checked(stored, state)
        after = state.after_event(happened)
        self.tx.streams.append(planned.stream, state.seq, [Event(kind=kind, body=body)])
        return happened, after

    def _keep(self, events: Sequence[Happened], objects: Sequence[Recorded]) -> None:
        for one in objects:
            self.tx.objects.record(one)
        for happened in events:
            index_objects(self.tx.objects, happened.event.subject, happened.change)

    def _refuse_untrusted(self) -> None:
        keyrings = self.reader.keyrings
        actor = keyrings.actor(self.key_id, keyrings.now.seq, self.now) if keyrings.now.seq else None
        if actor is None or actor.revoked:
            revoked = keyrings.is_revoked(self.key_id, self.now)
            raise RegistryUntrusted(
                f"key {self.key_id[:16]} is {'revoked, and ' if revoked else ''}not trusted at {self.now}",
                hint="that is for good: act with another key, 'ctx keys list' tells which are valid"
                if revoked
                else "see 'ctx keys list'; 'ctx keys trust' changes it",
            )


def _completed(change: Change, state: State, entry: int, at: str, by: str) -> Change:
    if isinstance(state, PinState) and isinstance(change, PinChange):
        return replace(change, pins=pins_after(state.pins, change, entry, at, by))
    return change
