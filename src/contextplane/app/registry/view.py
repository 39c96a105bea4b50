"""Read-only views of the registry: a list of versions, the details of one, its history."""

from functools import cache, partial

from contextplane.app.registry.mirror import mirrored_artifact
from contextplane.app.registry.resolve import judgement
from contextplane.app.registry.session import RegistrySession
from contextplane.authoring.source_file import NamedFile, read_json_file
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import ArtifactKind
from contextplane.model.ids import Digest, PackRef
from contextplane.model.keys import Issuer
from contextplane.model.value import Value
from contextplane.registry.artifact_state import ArtifactState, Stage
from contextplane.registry.artifacts import Candidate
from contextplane.registry.errors import VersionUnknown
from contextplane.registry.events import (
    AliasSet,
    CatalogReference,
    IncidentClosed,
    IncidentOpened,
    RefreshReported,
    RefreshRequired,
    Review,
)
from contextplane.registry.open import OpenRegistry
from contextplane.registry.pin import serving_problem
from contextplane.registry.reader import RegistryReader
from contextplane.registry.resolution import CatalogSnapshot
from contextplane.registry.streams import PINS, digests_of, versions_of
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.version_state import VersionState
from contextplane.registry.version_view import (
    GateSummary,
    PinLocation,
    ServingProblem,
    VersionSummary,
    artifact_history,
    is_published,
    layer_summaries,
    list_pins,
    read_gate_summary,
    version_summary,
)
from contextplane.trust.dsse import IN_TOTO, Envelope
from contextplane.trust.verify import TrustContext

__all__ = [
    "PINS",
    "AliasSet",
    "ArtifactState",
    "IncidentClosed",
    "IncidentOpened",
    "RefreshReported",
    "RefreshRequired",
    "Review",
    "VerifiedEvent",
    "VersionDetails",
    "VersionSummary",
    "find_artifact",
    "list_drafts",
    "list_versions",
    "read_version",
    "show_version",
    "version_history",
]


class VersionDetails(Value, frozen=True):
    """The details of one version, or of a draft of it that is not published yet (`version` is None)."""

    ref: PackRef
    digest: Digest
    kind: ArtifactKind
    issuer: str
    stage: Stage
    artifact: ArtifactState
    version: VersionState | None
    layers: tuple[tuple[str, str], ...]
    catalogs: tuple[CatalogReference, ...]
    signed_by: tuple[str, ...]
    gates: GateSummary | None
    pins: tuple[PinLocation, ...]
    aliases: tuple[str, ...]
    history: tuple[VerifiedEvent, ...]


def list_versions(session: RegistrySession, base_id: str = "") -> tuple[VersionSummary, ...]:
    """List every published version, of one id or of all, sorted by id and number."""
    with session.read() as reader:
        pins = list_pins(reader, _problem_lookup(session, reader))
        summaries = (version_summary(reader, ref, pins) for ref in versions_of(reader, base_id))
        return tuple(summary for summary in summaries if summary is not None)


def _problem_lookup(session: RegistrySession, reader: RegistryReader) -> ServingProblem:
    """Return a function that tells why no new run gets a version. Each is looked at once."""
    snapshot = CatalogSnapshot(OpenRegistry(reader=reader, newest=session.newest), session.platform.objects.get)
    trust_context = TrustContext(keyring=reader.keyrings.now, check=reader.check, now=session.keys.clock)
    return cache(partial(serving_problem, snapshot=snapshot, trust_context=trust_context, judgement=judgement(session)))


def list_drafts(session: RegistrySession) -> tuple[ArtifactState, ...]:
    """List every recorded artifact that is neither published nor withdrawn, sorted by id and number."""
    with session.read() as reader:
        states = map(reader.artifact, digests_of(reader))
        recorded = [state for state in states if state.stage not in {"unknown", "withdrawn"}]
        unpublished = [state for state in recorded if not is_published(reader, state)]
    return tuple(
        sorted(
            unpublished,
            key=lambda state: (state.name.pack_id, state.name.release, state.digest),
        )
    )


def show_version(session: RegistrySession, ref: PackRef) -> VersionDetails:
    """Return the details of a version; if it is not published, of its draft, if there is exactly one."""
    with session.read() as reader:
        version = reader.version(ref)
    digest = version.digest if version.is_published else _draft_digest(session, ref)
    artifact = session.artifact(digest)
    with session.read() as reader:
        state = reader.artifact(digest)
        pins = tuple(where for pinned, where in list_pins(reader, _problem_lookup(session, reader)) if pinned == ref)
        aliases = reader.aliases(ref.pack_id).of_version(ref.version)
        history = artifact_history(reader, artifact)
        issuer = reader.keyrings.now.issuer(artifact.issuer)
    envelope = version.publication.envelope if version.is_published else state.envelope
    report = version.publication.report if version.is_published else state.report
    return VersionDetails(
        ref=ref,
        digest=digest,
        kind=artifact.kind,
        issuer=artifact.issuer,
        stage=version.stage if version.is_published else state.stage,
        artifact=state,
        version=version if version.is_published else None,
        layers=layer_summaries(artifact),
        catalogs=version.publication.catalogs if version.is_published else state.catalogs,
        signed_by=_signing_key_ids(session, envelope, issuer),
        gates=read_gate_summary(session.platform.objects.get(Digest.parse(report)), report) if report else None,
        pins=pins,
        aliases=aliases,
        history=history,
    )


def version_history(session: RegistrySession, ref: PackRef) -> tuple[VerifiedEvent, ...]:
    """Return all events of a version and of its bytes, in the order of the log."""
    artifact = find_artifact(session, ref)
    with session.read() as reader:
        return artifact_history(reader, artifact)


def find_artifact(session: RegistrySession, ref: PackRef) -> Candidate:
    """Return the artifact of a version: the published one, else its draft, if there is exactly one."""
    with session.read() as reader:
        version = reader.version(ref)
    return session.artifact(version.digest if version.is_published else _draft_digest(session, ref))


def _find_artifact_or_mirror(session: RegistrySession, ref: PackRef) -> Candidate:
    """Return the artifact of a version of this registry, else of one that is mirrored here."""
    try:
        return find_artifact(session, ref)
    except VersionUnknown:
        mirrored = mirrored_artifact(session, ref)
        if mirrored is None:
            raise
        return mirrored


def _draft_digest(session: RegistrySession, ref: PackRef) -> Digest:
    try:
        return session.candidate_digest(str(ref))
    except ContextPlaneError as error:
        if error.code != "artifact_not_found":
            raise
        raise VersionUnknown(
            "it was never published",
            at=str(ref),
            hint="'ctx packs' lists published versions, 'ctx packs --drafts' drafts",
        ) from error


def _signing_key_ids(session: RegistrySession, envelope: str, issuer: Issuer | None) -> tuple[str, ...]:
    """Return the keys of the issuer that signed the envelope, revoked ones included.

    Every signature is checked; the key ids that the envelope names are ignored.
    """
    if not envelope or issuer is None:
        return ()
    parsed = Envelope.parse(session.platform.objects.get(Digest.parse(envelope)), payload_type=IN_TOTO)
    holds = session.keys.check.holds
    keys = [key.key for key in issuer.keys]
    return tuple(
        key.key_id for key in keys if any(holds(key, signature.value, parsed.pae) for signature in parsed.signatures)
    )


def read_version(session: RegistrySession, name: str) -> NamedFile:
    """Read a version, its only draft, or a draft by its digest, in canonical form. It may be mirrored."""
    from contextplane.app.registry.release import find_candidate
    from contextplane.authoring.source_file import require_pack

    if name.startswith("sha256:") and "@" not in name:
        _, artifact = find_candidate(session, name)
    else:
        artifact = _find_artifact_or_mirror(session, session.named_version(name))
    return require_pack(NamedFile(path=str(artifact.ref), file=read_json_file(artifact.data)))
