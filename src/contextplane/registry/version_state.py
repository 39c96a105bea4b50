"""The life of a version from its publication on, as a fold over its stream. It reads nothing.

`published` is its first event, once and for ever. What restricts a version holds whoever said it; what makes one
usable does not, once the key that said it was not to be trusted any more (`doubtful`).
"""

from typing import Literal

from msgspec.structs import replace

from contextplane.model.artifact import ArtifactKind
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.registry.artifact_state import Stage, refuse_transition
from contextplane.registry.errors import TransitionRefused
from contextplane.registry.events import (
    Change,
    Deprecated,
    EventInvalid,
    Happened,
    IncidentClosed,
    IncidentOpened,
    Observed,
    Published,
    RefreshReported,
    RefreshRequired,
    Revoked,
    Trigger,
    kind_of,
)

__all__ = ["Refresh", "Use", "VersionState"]

Use = Literal["new_traffic", "replay"]


class Refresh(Value, frozen=True):
    """A refresh that event `opened` asks for. `reports` are of the actions that passed, by action."""

    opened: int
    trigger: Trigger
    dependency: str
    actions: tuple[str, ...]
    reports: tuple[tuple[str, str], ...] = ()

    @property
    def outstanding(self) -> tuple[str, ...]:
        """The actions that did not run and pass."""
        done = {action for action, _ in self.reports}
        return tuple(action for action in self.actions if action not in done)


class VersionState(Value, frozen=True):
    """A published version. `entry`: where its publication stands in the log; `reason`: why it was withdrawn.

    `first`: the digest of the event that published it.
    `doubtful`: it was published by a key that was not to be trusted any more. `unsettled`: incidents that such a key
    closed; they are open to whoever would build on that.
    """

    ref: PackRef
    stage: Stage = "signed"
    seq: int = 0
    head: str = ""
    published: Published | None = None
    published_at: Timestamp | None = None
    published_by: str = ""
    doubtful: bool = False
    first: str = ""
    entry: int = 0
    reason: str = ""
    refreshes: tuple[Refresh, ...] = ()
    incidents: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()

    @property
    def is_published(self) -> bool:
        """Whether there is an entry at all, whatever happened to it since."""
        return self.published is not None

    @property
    def entry_of(self) -> Published:
        """What was published. Ask only where `is_published`."""
        if self.published is None:
            raise EventInvalid("nothing was published", at=str(self.ref))
        return self.published

    @property
    def digest(self) -> Digest:
        return Digest.parse(self.entry_of.digest)

    @property
    def kind(self) -> ArtifactKind:
        return self.entry_of.kind

    @property
    def open_incidents(self) -> tuple[str, ...]:
        return (*self.incidents, *self.unsettled)

    @property
    def open_refreshes(self) -> tuple[Refresh, ...]:
        return tuple(refresh for refresh in self.refreshes if refresh.outstanding)

    def serves(self, use: Use) -> bool:
        """Whether its stage allows a use: replay always, new traffic until it is deprecated or revoked."""
        return self.is_published and (use == "replay" or self.stage == "published")

    def issuer_of(self, change: Change) -> str:
        """Whose artifact a change is about."""
        if isinstance(change, Published):
            return change.issuer
        return self.published.issuer if self.published is not None else ""

    def after_event(self, happened: Happened) -> "VersionState":
        """The state after one more event, or a refusal."""
        change = happened.change
        if (happened.event.seq == 1) is not isinstance(change, Published):
            raise TransitionRefused(
                f"{kind_of(change)} as event {happened.event.seq}",
                at=str(self.ref),
                hint="a version is published first, and once",
                details={"change": kind_of(change), "stage": self.stage, "allowed_in": []},
            )
        refuse_transition(kind_of(change), self.stage, at=str(self.ref), hint="neither can be undone")
        state = replace(self, seq=happened.event.seq, head=happened.digest)
        match change:
            case Published() | Deprecated() | Revoked():
                return _moved(state, change, happened)
            case RefreshRequired() | RefreshReported():
                return replace(state, refreshes=self._refreshed(change, happened))
            case IncidentOpened() | IncidentClosed():
                return _with_incident(state, change, believed=not happened.by.revoked)
            case Observed() if happened.by.revoked:
                return state
            case Observed():
                return replace(state, observed=tuple(dict.fromkeys((*self.observed, change.environment))))
            case _:
                raise EventInvalid(f"{kind_of(change)} is no change of a version", at=happened.event.subject)

    def _refreshed(self, change: RefreshRequired | RefreshReported, happened: Happened) -> tuple[Refresh, ...]:
        if isinstance(change, RefreshReported):
            return self._reported(change, counts=not happened.by.revoked)
        opened = Refresh(
            opened=happened.event.seq, trigger=change.trigger, dependency=change.dependency, actions=change.actions
        )
        return (*self.refreshes, opened)

    def _reported(self, change: RefreshReported, *, counts: bool) -> tuple[Refresh, ...]:
        refresh = next((one for one in self.refreshes if one.opened == change.opened), None)
        if refresh is None or change.action not in refresh.outstanding:
            raise self.refusal(f"no open refresh waits for {change.action}", change)
        if not (change.passed and counts):
            return self.refreshes
        done = replace(refresh, reports=(*refresh.reports, (change.action, change.report)))
        return tuple(done if one.opened == change.opened else one for one in self.refreshes)

    def refusal(self, message: str, change: Change) -> TransitionRefused:
        return TransitionRefused(
            message,
            at=str(self.ref),
            hint=f"'ctx show {self.ref}' tells what is open",
            details={"change": kind_of(change), "stage": self.stage, "allowed_in": []},
        )


def _with_incident(state: VersionState, change: IncidentOpened | IncidentClosed, *, believed: bool) -> VersionState:
    """An incident is open until somebody closed it whose key is still believed; anybody may open it again."""
    name, known = change.incident, change.incident in state.incidents
    unsettled = tuple(one for one in state.unsettled if one != name)
    if isinstance(change, IncidentOpened):
        if known:
            raise state.refusal(f"incident {name} is open already", change)
        return replace(state, incidents=(*state.incidents, name), unsettled=unsettled)
    if not known and unsettled == state.unsettled:
        raise state.refusal(f"no open incident is called {name}", change)
    rest = tuple(incident for incident in state.incidents if incident != name)
    return replace(state, incidents=rest, unsettled=unsettled if believed else (*unsettled, name))


def _moved(state: VersionState, change: Published | Deprecated | Revoked, happened: Happened) -> VersionState:
    if not isinstance(change, Published):
        stage: Stage = "deprecated" if isinstance(change, Deprecated) else "revoked"
        return replace(state, stage=stage, reason=happened.event.reason)
    return replace(
        state,
        stage="published",
        published=change,
        published_at=happened.at,
        published_by=happened.by.key_id,
        doubtful=happened.by.revoked,
        first=happened.digest,
        entry=happened.event.entry,
    )
