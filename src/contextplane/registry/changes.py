"""What can happen in the registry: a closed set, one class for each. They say what happened and decide nothing.

Who did it, when and why stands in the event around it (`events.py`). Objects are named by their digests.
"""

from typing import Annotated, Literal

from msgspec import Meta

from contextplane.model.artifact import ArtifactKind
from contextplane.model.context_pack.terms import Identifier, Semver
from contextplane.model.value import Document

__all__ = [
    "AliasChange",
    "AliasDropped",
    "AliasSet",
    "Approval",
    "ArtifactChange",
    "Change",
    "Deprecated",
    "Drafted",
    "EnvironmentChange",
    "EnvironmentOpened",
    "EnvironmentProtected",
    "GoldenOutcome",
    "IncidentClosed",
    "IncidentOpened",
    "JudgedWith",
    "Linted",
    "Observed",
    "Pin",
    "PinChange",
    "Pinned",
    "Pins",
    "Promoted",
    "Published",
    "RefreshReported",
    "RefreshRequired",
    "Review",
    "Revoked",
    "RollbackEnded",
    "RolledBack",
    "Signed",
    "Trigger",
    "Unpinned",
    "Verdict",
    "VersionChange",
]

Verdict = Literal["approve", "reject"]
GoldenOutcome = Literal["not_run", "passed", "failed"]
Trigger = Literal[
    "POLICY_BUNDLE_UPDATED",
    "ONTOLOGY_UPDATED",
    "ADAPTER_SCHEMA_UPDATED",
    "DECISION_CATALOG_UPDATED",
    "MEMORY_POLICY_UPDATED",
    "EVALUATOR_UPDATED",
    "MODEL_CONFIG_UPDATED",
]

_Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
_Object = Annotated[str, Meta(pattern=r"^(?:sha256:[0-9a-f]{64})?\Z", description="a digest, or nothing")]
_KeyId = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
_Roles = Annotated[tuple[Identifier, ...], Meta(max_length=64)]
_Words = Annotated[str, Meta(min_length=1, max_length=500)]


class JudgedWith(Document, frozen=True):
    """A published decision catalog that a pack was judged together with: its rules are bound to decisions of it."""

    id: Identifier
    version: Semver
    digest: _Digest


_Catalogs = Annotated[tuple[JudgedWith, ...], Meta(max_length=16)]


# --- the life of a digest: registry/artifact/<hex> --------------------------------------------------------------------


class Drafted(Document, frozen=True, tag_field="change", tag="drafted"):
    """These bytes are known, and nothing more. Whoever signs this is the author."""

    kind: ArtifactKind
    id: Identifier
    version: Semver
    issuer: Identifier


class Linted(Document, frozen=True, tag_field="change", tag="linted"):
    """All gates passed. `roles` must review it, because of what changed since `after`, the version before, if any.

    `catalogs`: those with which it passed; without any, it did so alone.
    """

    report: _Digest
    roles: _Roles
    after: Annotated[str, Meta(pattern=r"^(?:[0-9.]{5,32})?\Z")]
    catalogs: _Catalogs = ()


class Review(Document, frozen=True, tag_field="change", tag="reviewed"):
    """Somebody looked at these bytes in a role."""

    role: Identifier
    verdict: Verdict


class Signed(Document, frozen=True, tag_field="change", tag="signed"):
    """The issuer's signature is attached: an envelope with all signatures so far. `threshold` is what is asked for."""

    envelope: _Digest
    threshold: Annotated[int, Meta(ge=1, le=16)]


# --- the life of a version: registry/version/<id>@<X.Y.Z> -------------------------------------------------------------


class Approval(Document, frozen=True):
    """Who approved, in which role."""

    role: Identifier
    by: _KeyId


class Published(Document, frozen=True, tag_field="change", tag="published"):
    """The immutable entry: these bytes, what they passed, and whose approvals it stands on.

    `golden` says whether golden cases ran, `after` is the version that it was compared with, if any, `catalogs` are
    those that it was judged together with.
    """

    digest: _Digest
    kind: ArtifactKind
    issuer: Identifier
    envelope: _Digest
    report: _Digest
    golden: GoldenOutcome
    after: Annotated[str, Meta(pattern=r"^(?:[0-9.]{5,32})?\Z")]
    approvals: Annotated[tuple[Approval, ...], Meta(max_length=64)] = ()
    catalogs: _Catalogs = ()


class Deprecated(Document, frozen=True, tag_field="change", tag="deprecated"):
    """Only replay from now on."""


class Revoked(Document, frozen=True, tag_field="change", tag="revoked"):
    """No new execution. It stays, with the reason."""


class RefreshRequired(Document, frozen=True, tag_field="change", tag="refresh_required"):
    """Something that this version depends on changed: these actions must run, and their reports be stored."""

    trigger: Trigger
    dependency: _Words
    actions: Annotated[tuple[Identifier, ...], Meta(min_length=1, max_length=16)]


class RefreshReported(Document, frozen=True, tag_field="change", tag="refresh_reported"):
    """One of the actions ran for the refresh that event `opened` asks for. The last one that passes closes it."""

    opened: _Count
    action: Identifier
    passed: bool
    report: _Digest


class IncidentOpened(Document, frozen=True, tag_field="change", tag="incident_opened"):
    incident: Identifier


class IncidentClosed(Document, frozen=True, tag_field="change", tag="incident_closed"):
    incident: Identifier


class Observed(Document, frozen=True, tag_field="change", tag="observed"):
    """A run in this environment used the version, for the first time."""

    environment: Identifier
    run: Identifier


# --- what an environment pins: registry/pins/<env>/<id> ---------------------------------------------------------------


class Pin(Document, frozen=True):
    """A version that is pinned, since which entry of the log, and by which key."""

    id: Identifier
    version: Semver
    digest: _Digest
    kind: ArtifactKind
    entry: _Count
    at: str
    by: _KeyId


class Pins(Document, frozen=True):
    """All that is pinned after an event: the pack or catalog itself, and the overlays on it in the order of their ids.

    Every event of the stream carries it, so that the last one suffices, however long the history is.
    """

    base: Pin | None = None
    overlays: Annotated[tuple[Pin, ...], Meta(max_length=64)] = ()


class Pinned(Document, frozen=True, tag_field="change", tag="pinned"):
    kind: ArtifactKind
    id: Identifier
    version: Semver
    digest: _Digest
    pins: Pins


class Unpinned(Document, frozen=True, tag_field="change", tag="unpinned"):
    id: Identifier
    version: Semver
    pins: Pins


class RolledBack(Document, frozen=True, tag_field="change", tag="rolled_back"):
    """A version that was pinned here before is pinned again. `away` is the one that was pinned until now, if any."""

    kind: ArtifactKind
    id: Identifier
    version: Semver
    digest: _Digest
    away: Annotated[str, Meta(pattern=r"^(?:[0-9.]{5,32})?\Z")]
    pins: Pins


class RollbackEnded(Document, frozen=True, tag_field="change", tag="rollback_ended"):
    """How long the rollback of event `rollback` took until it was in force, and what golden cases said behind it."""

    rollback: _Count
    milliseconds: _Count
    golden: GoldenOutcome
    report: _Object
    pins: Pins


class Promoted(Document, frozen=True, tag_field="change", tag="promoted"):
    """The version that is pinned passed its release gates in this environment."""

    id: Identifier
    version: Semver
    report: _Digest
    pins: Pins


# --- names for people, and environments -------------------------------------------------------------------------------


class AliasSet(Document, frozen=True, tag_field="change", tag="alias_set"):
    alias: Identifier
    version: Semver


class AliasDropped(Document, frozen=True, tag_field="change", tag="alias_dropped"):
    alias: Identifier


class EnvironmentOpened(Document, frozen=True, tag_field="change", tag="environment_opened"):
    """Versions with an open refresh may be pinned here."""


class EnvironmentProtected(Document, frozen=True, tag_field="change", tag="environment_protected"):
    """They may not: what every environment is until somebody opens it."""


ArtifactChange = Drafted | Linted | Review | Signed
VersionChange = (
    Published | Deprecated | Revoked | RefreshRequired | RefreshReported | IncidentOpened | IncidentClosed | Observed
)
PinChange = Pinned | Unpinned | RolledBack | RollbackEnded | Promoted
AliasChange = AliasSet | AliasDropped
EnvironmentChange = EnvironmentOpened | EnvironmentProtected
Change = ArtifactChange | VersionChange | PinChange | AliasChange | EnvironmentChange
