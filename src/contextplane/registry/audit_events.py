"""Every event of the registry, in the order of the log: what a reader checks of a stream, and what takes several.

A publication stands on a digest that was reviewed and signed before it, and follows the version before it; a pin stands
on a version that was published. Whoever wrote them checked that; here it is checked again.
"""

from functools import partial
from typing import TYPE_CHECKING

from contextplane.model.ids import Digest, PackRef
from contextplane.ports.signer import SignatureCheck
from contextplane.ports.streams import StreamsView
from contextplane.registry.changes import AliasSet, Pinned, Promoted, Published, RolledBack
from contextplane.registry.checkpoints import Entry
from contextplane.registry.events import EventInvalid, Happened, kind_of
from contextplane.registry.heads import StreamCut
from contextplane.registry.keyrings import Keyrings
from contextplane.registry.lifecycle import ArtifactState, Stage, allowed, refuse_transition
from contextplane.registry.reading import Reader, State, beginning_of
from contextplane.registry.streams import VERSIONS, artifact_stream, version_stream
from contextplane.registry.trouble import Troubles
from contextplane.registry.version import VersionState
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.history import LogRewritten
from contextplane.trust.refusals import ClockWentBackwards

if TYPE_CHECKING:
    from contextplane.model.timestamp import Timestamp

__all__ = ["EventAudit"]


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
        before = max((one for one in others if one.release < ref.release), default=None)
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
