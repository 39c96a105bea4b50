"""An event of the registry: a change, with who made it, when, why, and where it stands. Signed by its actor.

An event names its stream and number, the event before it there, its entry in the log and the keyring that it was
made under. So none can be moved, left out or exchanged without a signature that no longer fits.

What can happen in the registry: a closed set, one class for each. They say what happened and decide nothing.

Who did it, when and why stands in the event around it (`events.py`). Objects are named by their digests.
"""

from typing import Annotated, ClassVar, Literal, cast

import msgspec
from msgspec import Meta

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import ArtifactKind
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.terms import Identifier, Semver
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document, Value
from contextplane.ports.keys import Signer
from contextplane.trust.dsse import Envelope, sealed

__all__ = [
    "PAYLOAD_TYPE",
    "Actor",
    "AliasChange",
    "AliasDropped",
    "AliasSet",
    "Approval",
    "ArtifactChange",
    "Change",
    "ChangeInvalid",
    "Deprecated",
    "Drafted",
    "EnvironmentChange",
    "EnvironmentOpened",
    "EnvironmentProtected",
    "EventInvalid",
    "GoldenOutcome",
    "Grant",
    "Happened",
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
    "RegistryEvent",
    "Review",
    "Revoked",
    "RollbackEnded",
    "RolledBack",
    "Signed",
    "Trigger",
    "Unpinned",
    "Verdict",
    "VersionChange",
    "checked_change",
    "kind_of",
    "objects_of",
    "read_event",
    "written",
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


PAYLOAD_TYPE = "application/vnd.contextplane.registry+json"
"""No statement and no change of the keyring can be passed off as one of these, nor the other way round."""

_Hex = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")]
_Reason = Annotated[str, Meta(min_length=1, max_length=2000)]


class EventInvalid(ContextPlaneError):
    """Something in a stream of the registry that is not an event of it, or not the one that belongs there."""

    code: ClassVar[str] = "registry_event_invalid"
    family: ClassVar[Family] = "untrusted"


class ChangeInvalid(ContextPlaneError):
    """A change with a name or a text in it that no event can hold."""

    code: ClassVar[str] = "registry_change_invalid"
    family: ClassVar[Family] = "usage"


class RegistryEvent(Document, frozen=True):
    """`previous`: the SHA-256 of the event before it in its stream. `keyring`: after how many changes of that."""

    subject: str
    seq: _Count
    previous: _Hex
    entry: _Count
    keyring: _Count
    at: str
    reason: _Reason
    change: Change


class Grant(Value, frozen=True):
    """What a key was for one issuer."""

    issuer: str
    roles: tuple[str, ...]


class Actor(Value, frozen=True):
    """The key that signed an event, and what it was then.

    `revoked`: by what is known now, it was not to be trusted. `family`: the keys that it was rotated from and into, and
    itself: whoever has one of them has them all.
    """

    key_id: str
    grants: tuple[Grant, ...]
    family: tuple[str, ...]
    revoked: bool = False

    def holds(self, role: str, issuer: str | None = None) -> bool:
        """Whether it had a role, for this issuer or for any."""
        return any(role in grant.roles for grant in self.grants if issuer in {None, grant.issuer})

    def is_of(self, issuer: str) -> bool:
        return any(grant.issuer == issuer for grant in self.grants)


class Happened(Value, frozen=True):
    """An event that was read, checked and found to be in its place. Folds take these. `digest` is of its body."""

    event: RegistryEvent
    at: Timestamp
    by: Actor
    digest: str

    @property
    def change(self) -> Change:
        return self.event.change

    @property
    def kind(self) -> str:
        return kind_of(self.event.change)


def kind_of(change: Change) -> str:
    """What the catalog calls an event of this change."""
    return str(type(change).__struct_config__.tag)


def checked_change(change: Change, reason: str) -> None:
    """Refuse what somebody typed before it is signed: an event of that form would be refused by every reader."""
    try:
        msgspec.convert(msgspec.to_builtins(change), Change)
        msgspec.convert(reason, _Reason)
    except msgspec.ValidationError as error:
        hint = "names: ASCII letters, digits, _ . : and -, at most 128; a reason has at most 2000 characters"
        raise ChangeInvalid(f"{kind_of(change)}: {error}", hint=hint) from error


def written(event: RegistryEvent, signer: Signer) -> bytes:
    """The signed event, as it is stored."""
    payload = canonical(cast("Json", msgspec.to_builtins(event)))
    return sealed(PAYLOAD_TYPE, payload, signer).to_bytes()


def read_event(body: bytes) -> tuple[Envelope, RegistryEvent]:
    """(1) An envelope with an event in it, (2) which exactly one key signed: its actor."""
    envelope = Envelope.parse(body, payload_type=PAYLOAD_TYPE)
    try:
        event = msgspec.convert(parse(envelope.payload).value, RegistryEvent)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise EventInvalid(f"not an event of the registry: {error}", hint="restore the catalog from a copy") from error
    if len(envelope.signatures) != 1:
        raise EventInvalid(f"{len(envelope.signatures)} signatures", at="/signatures", hint="its actor signs, alone")
    return envelope, event


def objects_of(stream: str, change: Change) -> tuple[tuple[str, Digest], ...]:
    """The objects that an event needs, each with its kind: `artifact`, `envelope` or `report`.

    An index of the registry's objects is made again from these.
    """
    match change:
        case Drafted():
            named = [("artifact", f"sha256:{stream.rpartition('/')[2]}")]
        case Linted() | RefreshReported() | RollbackEnded() | Promoted():
            named = [("report", change.report)]
        case Signed():
            named = [("envelope", change.envelope)]
        case Published():
            named = [("artifact", change.digest), ("envelope", change.envelope), ("report", change.report)]
        case _:
            named = []
    return tuple((f"registry_{kind}", Digest.parse(text)) for kind, text in named if text)
