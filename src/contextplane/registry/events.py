"""The events of the registry: a closed set of changes, and the signed event around each of them.

A change says what happened and decides nothing. Objects are named by their digests. The event around it has the actor,
the time and the reason. It names its stream and number, the event before it in the stream, its entry in the log and the
keyring that it was made under. So no event can be moved, left out or exchanged without breaking a signature.

Class names may change; the tags and fields are stored and signed, and never do.
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
from contextplane.model.value import Document
from contextplane.ports.keys import Signer
from contextplane.trust.dsse import Envelope, make_envelope

__all__ = [
    "PAYLOAD_TYPE",
    "AliasChange",
    "AliasDropped",
    "AliasSet",
    "Approval",
    "ArtifactChange",
    "CatalogReference",
    "Change",
    "ChangeInvalid",
    "Deprecated",
    "DraftListed",
    "Drafted",
    "EnvironmentChange",
    "EnvironmentOpened",
    "EnvironmentProtected",
    "EventInvalid",
    "GoldenOutcome",
    "IncidentClosed",
    "IncidentOpened",
    "Linted",
    "NameClaimed",
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
    "Withdrawn",
    "check_change",
    "kind_of",
    "objects_of",
    "read_event",
    "sign_event",
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


class CatalogReference(Document, frozen=True):
    """A published decision catalog that a pack was linted with: rules of the pack bind its decisions."""

    id: Identifier
    version: Semver
    digest: _Digest


_Catalogs = Annotated[tuple[CatalogReference, ...], Meta(max_length=16)]


# --- the life of a digest: registry/artifact/<hex> --------------------------------------------------------------------


class Drafted(Document, frozen=True, tag_field="change", tag="drafted"):
    """An author recorded these bytes. The signer of this event is the author."""

    kind: ArtifactKind
    id: Identifier
    version: Semver
    issuer: Identifier


class Linted(Document, frozen=True, tag_field="change", tag="linted"):
    """All gates passed.

    `roles` must review it, because of what changed since `after`, the version before, if any. `catalogs`: those with
    which it passed; empty if it passed alone.
    """

    report: _Digest
    roles: _Roles
    after: Annotated[str, Meta(pattern=r"^(?:[0-9.]{5,32})?\Z")]
    catalogs: _Catalogs = ()


class Review(Document, frozen=True, tag_field="change", tag="reviewed"):
    """A reviewer gave a verdict on these bytes in a role."""

    role: Identifier
    verdict: Verdict


class Signed(Document, frozen=True, tag_field="change", tag="signed"):
    """The issuer signed: `envelope` has all signatures so far, `threshold` is the required number."""

    envelope: _Digest
    threshold: Annotated[int, Meta(ge=1, le=16)]


class Withdrawn(Document, frozen=True, tag_field="change", tag="draft_withdrawn"):
    """The draft is given up: it cannot be reviewed, signed or published, unless it is recorded again."""


# --- the drafts of a version: registry/drafts/<id>@<X.Y.Z> ------------------------------------------------------------


class DraftListed(Document, frozen=True, tag_field="change", tag="draft_listed"):
    """These bytes are a draft of the version. A name is looked up here, and never in an unsigned index."""

    digest: _Digest


# --- the owner of an id: registry/names/<id> --------------------------------------------------------------------------


class NameClaimed(Document, frozen=True, tag_field="change", tag="name_claimed"):
    """An issuer publishes documents of one kind under this id. Operators of the tenant pin them."""

    issuer: Identifier
    kind: ArtifactKind
    tenant: Identifier


# --- the life of a version: registry/version/<id>@<X.Y.Z> -------------------------------------------------------------


class Approval(Document, frozen=True):
    """The key that approved, and its role."""

    role: Identifier
    by: _KeyId


class Published(Document, frozen=True, tag_field="change", tag="published"):
    """The immutable publication of these bytes: the checks that passed, and the approvals.

    `golden`: whether golden cases ran. `after`: the version that it was compared with, if any. `catalogs`: those that
    it was linted with. `tenant`: whose operators may pin it; that of an overlay is its pack's. Empty: the issuer is.
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
    tenant: Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9_.:-]{0,127})?\Z")] = ""

    @property
    def operated_by(self) -> str:
        """The tenant whose operators may pin it."""
        return self.tenant or self.issuer


class Deprecated(Document, frozen=True, tag_field="change", tag="deprecated"):
    """The version may only be replayed from now on."""


class Revoked(Document, frozen=True, tag_field="change", tag="revoked"):
    """The version may not be executed anew. It stays readable, with the reason."""


class RefreshRequired(Document, frozen=True, tag_field="change", tag="refresh_required"):
    """A dependency of this version changed: these actions must run, and their reports be stored."""

    trigger: Trigger
    dependency: _Words
    actions: Annotated[tuple[Identifier, ...], Meta(min_length=1, max_length=16)]


class RefreshReported(Document, frozen=True, tag_field="change", tag="refresh_reported"):
    """One action ran for the refresh that event `opened` requires.

    The refresh is closed when all of its actions have passed.
    """

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
    """A pinned version, the log entry that pinned it, and the key that did so."""

    id: Identifier
    version: Semver
    digest: _Digest
    kind: ArtifactKind
    entry: _Count
    at: str
    by: _KeyId


class Pins(Document, frozen=True):
    """All that is pinned after an event: the pack or catalog, and its overlays ordered by id.

    Every event of the stream carries it, so that reading the last one suffices.
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
    """A version that was pinned here before is pinned again.

    `away` is the version that was pinned until now, if any.
    """

    kind: ArtifactKind
    id: Identifier
    version: Semver
    digest: _Digest
    away: Annotated[str, Meta(pattern=r"^(?:[0-9.]{5,32})?\Z")]
    pins: Pins


class RollbackEnded(Document, frozen=True, tag_field="change", tag="rollback_ended"):
    """The rollback of event `rollback` took effect: after how long, and the result of its golden cases."""

    rollback: _Count
    milliseconds: _Count
    golden: GoldenOutcome
    report: _Object
    pins: Pins


class Promoted(Document, frozen=True, tag_field="change", tag="promoted"):
    """The pinned version passed its release gates in this environment."""

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
    """They may not. An environment is protected until it is opened.

    `max_age`: how many seconds old the newest checkpoint may be for new traffic; None: as by default.
    """

    max_age: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None


ArtifactChange = Drafted | Linted | Review | Signed | Withdrawn
VersionChange = (
    Published | Deprecated | Revoked | RefreshRequired | RefreshReported | IncidentOpened | IncidentClosed | Observed
)
PinChange = Pinned | Unpinned | RolledBack | RollbackEnded | Promoted
AliasChange = AliasSet | AliasDropped
EnvironmentChange = EnvironmentOpened | EnvironmentProtected
Change = ArtifactChange | DraftListed | NameClaimed | VersionChange | PinChange | AliasChange | EnvironmentChange


PAYLOAD_TYPE = "application/vnd.contextplane.registry+json"
"""The payload type of these events, so that no statement or keyring event can be passed off as one."""

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


class RegistryEvent(Document, frozen=True, omit_defaults=True):
    """A change with its place, time and reason; the payload that its actor signs.

    `previous`: the SHA-256 of the event before it in its stream. `keyring`: the number of keyring changes at its time.
    `origin`: the log of the store that it was made for; empty in the first format.
    """

    subject: str
    seq: _Count
    previous: _Hex
    entry: _Count
    keyring: _Count
    at: str
    reason: _Reason
    change: Change
    origin: str = ""


def kind_of(change: Change) -> str:
    """The kind under which the catalog stores an event of this change: its tag."""
    return str(type(change).__struct_config__.tag)


def check_change(change: Change, reason: str) -> None:
    """Refuse invalid input before it is signed: every reader would refuse an event of that form."""
    try:
        msgspec.convert(msgspec.to_builtins(change), Change)
        msgspec.convert(reason, _Reason)
    except msgspec.ValidationError as error:
        hint = "names: ASCII letters, digits, _ . : and -, at most 128; a reason has at most 2000 characters"
        raise ChangeInvalid(f"{kind_of(change)}: {error}", hint=hint) from error


def sign_event(event: RegistryEvent, signer: Signer) -> bytes:
    """Sign an event; returns the bytes that are stored."""
    payload = canonical(cast("Json", msgspec.to_builtins(event)))
    return make_envelope(PAYLOAD_TYPE, payload, signer).to_bytes()


def read_event(body: bytes) -> tuple[Envelope, RegistryEvent]:
    """Parse (1) an envelope with an event in it, (2) which exactly one key signed: its actor."""
    envelope = Envelope.parse(body, payload_type=PAYLOAD_TYPE)
    try:
        event = msgspec.convert(parse(envelope.payload).value, RegistryEvent)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise EventInvalid(f"not an event of the registry: {error}", hint="restore the catalog from a copy") from error
    if len(envelope.signatures) != 1:
        raise EventInvalid(f"{len(envelope.signatures)} signatures", at="/signatures", hint="its actor signs, alone")
    return envelope, event


def objects_of(stream: str, change: Change) -> tuple[tuple[str, Digest], ...]:
    """The objects that an event names, each with its kind: `artifact`, `envelope` or `report`.

    The index of the registry's objects is rebuilt from these.
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
