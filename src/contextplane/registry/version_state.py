"""The state of a version from its publication on, as a fold over its stream. Pure.

`published` is the first event that counts, and occurs once. An event that restricts a version counts even if its key is
revoked; one that makes it usable does not (`doubtful`).
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
from contextplane.registry.verified_event import Scope, VerifiedEvent

__all__ = ["Refresh", "Use", "VersionState"]

Use = Literal["new_traffic", "replay"]


class Refresh(Value, frozen=True):
    """A refresh that event `opened` requires. `reports`: those of the actions that passed, by action."""

    opened: int
    trigger: Trigger
    dependency: str
    actions: tuple[str, ...]
    reports: tuple[tuple[str, str], ...] = ()

    @property
    def outstanding(self) -> tuple[str, ...]:
        """The actions that have not passed yet."""
        done = {action for action, _ in self.reports}
        return tuple(action for action in self.actions if action not in done)


class VersionState(Value, frozen=True):
    """A published version.

    `entry`: the log entry of its publication. `reason`: why it was withdrawn.
    `first`: the digest of the event that published it.
    `doubtful`: it was published by a key that is revoked from a time before that. `unsettled`: incidents that such a
    key closed; they count as open.
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
        """Whether it was ever published, later events ignored."""
        return self.published is not None

    @property
    def publication(self) -> Published:
        """The event that published it. Refused unless `is_published`."""
        if self.published is None:
            raise EventInvalid("nothing was published", at=str(self.ref))
        return self.published

    @property
    def digest(self) -> Digest:
        return Digest.parse(self.publication.digest)

    @property
    def kind(self) -> ArtifactKind:
        return self.publication.kind

    @property
    def open_incidents(self) -> tuple[str, ...]:
        return (*self.incidents, *self.unsettled)

    @property
    def open_refreshes(self) -> tuple[Refresh, ...]:
        return tuple(refresh for refresh in self.refreshes if refresh.outstanding)

    def serves(self, use: Use) -> bool:
        """Whether its stage allows a use: replay always, new traffic until it is deprecated or revoked."""
        return self.is_published and (use == "replay" or self.stage == "published")

    def scope_of(self, change: Change) -> Scope:
        """The issuer and the tenant of the artifact, and the id that it is published under."""
        if isinstance(change, Published):
            return Scope(issuer=change.issuer, name=self.ref.pack_id, published=self.ref)
        published = self.published
        return Scope() if published is None else Scope(issuer=published.issuer, tenant=published.operated_by)

    def after_event(self, verified: VerifiedEvent) -> "VersionState":
        """Fold one more event, or refuse it."""
        change = verified.change
        if self.is_published is isinstance(change, Published):
            raise TransitionRefused(
                f"{kind_of(change)} as event {verified.event.seq}",
                at=str(self.ref),
                hint="a version is published first, and once",
                details={"change": kind_of(change), "stage": self.stage, "allowed_in": []},
            )
        refuse_transition(kind_of(change), self.stage, at=str(self.ref), hint="neither can be undone")
        state = replace(self, seq=verified.event.seq, head=verified.digest)
        match change:
            case Published() | Deprecated() | Revoked():
                return _with_stage(state, change, verified)
            case RefreshRequired() | RefreshReported():
                return replace(state, refreshes=self._refreshes_after(change, verified))
            case IncidentOpened() | IncidentClosed():
                return _with_incident(state, change, believed=not verified.by.revoked)
            case Observed() if verified.by.revoked:
                return state
            case Observed():
                return replace(state, observed=tuple(dict.fromkeys((*self.observed, change.environment))))
            case _:
                raise EventInvalid(f"{kind_of(change)} is no change of a version", at=verified.event.subject)

    def _refreshes_after(
        self, change: RefreshRequired | RefreshReported, verified: VerifiedEvent
    ) -> tuple[Refresh, ...]:
        if isinstance(change, RefreshReported):
            return self._refreshes_with_report(change, counts=not verified.by.revoked)
        opened = Refresh(
            opened=verified.event.seq, trigger=change.trigger, dependency=change.dependency, actions=change.actions
        )
        return (*self.refreshes, opened)

    def _refreshes_with_report(self, change: RefreshReported, *, counts: bool) -> tuple[Refresh, ...]:
        refresh = next((refresh for refresh in self.refreshes if refresh.opened == change.opened), None)
        if refresh is None or change.action not in refresh.outstanding:
            raise self.refusal(f"no open refresh waits for {change.action}", change)
        if not (change.passed and counts):
            return self.refreshes
        done = replace(refresh, reports=(*refresh.reports, (change.action, change.report)))
        return tuple(done if other.opened == change.opened else other for other in self.refreshes)

    def refusal(self, message: str, change: Change) -> TransitionRefused:
        """The error for a change that this state does not allow."""
        return TransitionRefused(
            message,
            at=str(self.ref),
            hint=f"'ctx show {self.ref}' tells what is open",
            details={"change": kind_of(change), "stage": self.stage, "allowed_in": []},
        )


def _with_incident(state: VersionState, change: IncidentOpened | IncidentClosed, *, believed: bool) -> VersionState:
    """Open or close an incident. One that a revoked key closed stays unsettled and may be opened again."""
    name, known = change.incident, change.incident in state.incidents
    unsettled = tuple(incident for incident in state.unsettled if incident != name)
    if isinstance(change, IncidentOpened):
        if known:
            raise state.refusal(f"incident {name} is open already", change)
        return replace(state, incidents=(*state.incidents, name), unsettled=unsettled)
    if not known and unsettled == state.unsettled:
        raise state.refusal(f"no open incident is called {name}", change)
    others = tuple(incident for incident in state.incidents if incident != name)
    return replace(state, incidents=others, unsettled=unsettled if believed else (*unsettled, name))


def _with_stage(state: VersionState, change: Published | Deprecated | Revoked, verified: VerifiedEvent) -> VersionState:
    if not isinstance(change, Published):
        stage: Stage = "deprecated" if isinstance(change, Deprecated) else "revoked"
        return replace(state, stage=stage, reason=verified.event.reason)
    return replace(
        state,
        stage="published",
        published=change,
        published_at=verified.at,
        published_by=verified.by.key_id,
        doubtful=verified.by.revoked,
        first=verified.digest,
        entry=verified.event.entry,
    )
