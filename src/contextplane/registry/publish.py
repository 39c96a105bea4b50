"""Publishing, as numbered steps. A version is published once; the same bytes again change nothing.

1  no other bytes are published under this name and number, and the name belongs to this issuer and kind
2  the artifact is signed, which requires that it was linted and reviewed
3  every gate passes now, over the stored bytes; golden cases that ran pass
4  every required role approved it, by what changed since the version before
5  the issuer's signature holds over exactly these bytes, this name and this kind, by enough keys that are valid now
6  the issuer may publish for this tenant; for an overlay, for the tenant of its pack
7  the version number matches the size of the change

A registry never forgets, so a document with a secret or personal data is rejected before it is stored.
"""

from typing import ClassVar

from contextplane.authoring.artifacts import changes_between
from contextplane.authoring.gates.table import Report
from contextplane.authoring.version_class import check_bump, required_bump
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay
from contextplane.model.catalog import IndexedObject
from contextplane.model.ids import Digest, PackRef
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamConflict
from contextplane.registry.artifact_state import ArtifactState, refuse_transition
from contextplane.registry.artifacts import Candidate
from contextplane.registry.claims import newest_publication, published_ref
from contextplane.registry.errors import TransitionRefused, VersionTaken
from contextplane.registry.events import Approval, CatalogReference, NameClaimed, Published
from contextplane.registry.name_state import NameState
from contextplane.registry.reader import RegistryReader
from contextplane.registry.reports import GoldenResult, gates_report
from contextplane.registry.reviews import check_rejections, check_reviews, needed_roles
from contextplane.registry.streams import names_stream, version_stream, versions_of
from contextplane.registry.version_state import VersionState
from contextplane.registry.writer import AppendResult, PlannedChange, RegistryWriter
from contextplane.trust.tenancy import check_issuer
from contextplane.trust.verify import TrustContext, VerifiedArtifact, verify

__all__ = [
    "SENSITIVE_FINDINGS",
    "ArtifactNotKept",
    "GatesFailed",
    "GoldenFailed",
    "Release",
    "StatementOfOther",
    "is_already_published",
    "next_step",
    "plan_publication",
    "publish",
    "reject_sensitive",
    "require_unpublished",
]


class GatesFailed(ContextPlaneError):
    """An artifact that does not pass the gates as they are now. `details.findings` lists what they found."""

    code: ClassVar[str] = "publish_gates_failed"
    family: ClassVar[Family] = "refused"


class GoldenFailed(ContextPlaneError):
    """An artifact with a golden case that failed."""

    code: ClassVar[str] = "publish_golden_failed"
    family: ClassVar[Family] = "refused"


class StatementOfOther(ContextPlaneError):
    """A signature over these bytes under another name, or as another kind."""

    code: ClassVar[str] = "statement_subject_mismatch"
    family: ClassVar[Family] = "untrusted"


class Release(Value, frozen=True):
    """Everything that is published together: the artifact, its envelope, and its gate and golden results.

    `before`: the version before it, if any. `catalogs`: those that it was linted with. `base`: for an overlay, the
    newest version of its pack, if any. `gates_version`: the version of the package whose gates ran.
    """

    artifact: Candidate
    envelope: bytes
    report: Report
    golden: GoldenResult
    before: Candidate | None = None
    catalogs: tuple[CatalogReference, ...] = ()
    base: Candidate | None = None
    gates_version: str = ""

    @property
    def report_data(self) -> bytes:
        return gates_report(
            self.artifact.ref,
            self.artifact.digest,
            self.report,
            self.golden,
            catalogs=self.catalogs,
            gates_version=self.gates_version,
        )


def is_already_published(version: VersionState, artifact: Candidate) -> bool:
    """(1) Whether exactly these bytes are published. Refuses other bytes under this name and number."""
    if not version.is_published:
        return False
    if version.digest != artifact.digest:
        raise VersionTaken(
            f"it is published with other content, {version.digest}, and never changes",
            at=str(version.ref),
            hint="give the changed document a new version number",
        )
    return True


def publish(writer: RegistryWriter, release: Release, reason: str) -> AppendResult | None:
    """Publish a release; None if exactly these bytes are published already."""
    artifact, reader = release.artifact, writer.reader
    # (1) the name and number are free
    if is_already_published(reader.version(artifact.ref), artifact):
        return None
    name = reader.name(artifact.ref.pack_id)
    if name.is_claimed:
        name.check_owner(artifact.issuer, artifact.kind, at=str(artifact.ref))
    # (2) signed
    state = reader.artifact(artifact.digest)
    check_rejections(state)
    refuse_transition("published", state.stage, at=str(artifact.ref), hint=next_step(state))
    # (3) gates and golden cases, with the catalogs that it was linted with
    if release.catalogs != state.catalogs:
        raise StreamConflict("it was linted with other catalogs since", at=str(artifact.ref), hint="publish it again")
    _refuse_failures(release)
    _refuse_overtaken(release, reader)
    _refuse_moved_base(release, reader)
    # (4) reviews
    check_reviews(state, needed_roles(artifact, release.before))
    # (5) the signature
    verified = _verify_release(writer, release)
    # (6) for this tenant
    tenant = artifact.tenant or (release.base.tenant if release.base is not None else None)
    if tenant is not None:
        check_issuer(verified, tenant.tenant_id, reader.keyrings.now)
    # (7) the number
    if release.before is not None:
        changes = changes_between(artifact.kind, release.before.value, artifact.value)
        check_bump(release.before.ref, artifact.ref, required_bump(changes))
    data = release.report_data
    change = Published(
        digest=str(artifact.digest),
        kind=artifact.kind,
        issuer=artifact.issuer,
        envelope=str(Digest.of(release.envelope)),
        report=str(Digest.of(data)),
        golden=release.golden.outcome,
        after=release.before.ref.version if release.before is not None else "",
        approvals=tuple(Approval(role=approval.role, by=approval.key_id) for approval in state.approvals),
        catalogs=release.catalogs,
        tenant="" if tenant is None else tenant.tenant_id,
    )
    report = IndexedObject(digest=Digest.of(data), kind="registry_report", size=len(data), traced=True)
    return writer.append(plan_publication(name, artifact.ref, change, reason), [report])


def plan_publication(name: NameState, ref: PackRef, change: Published, reason: str) -> list[PlannedChange]:
    """Plan a publication, after a claim to its id if it has no owner yet, or goes to another tenant."""
    planned = [PlannedChange(stream=version_stream(ref), change=change, reason=reason)]
    if not name.is_claimed or name.tenants[-1][1] != change.operated_by:
        claim = NameClaimed(issuer=change.issuer, kind=change.kind, tenant=change.operated_by)
        planned.insert(0, PlannedChange(stream=names_stream(ref.pack_id), change=claim, reason=reason))
    return planned


def _refuse_overtaken(release: Release, reader: RegistryReader) -> None:
    """Refuse a release if another version was published since it was compared with the one before it."""
    before, ref = release.before.ref if release.before is not None else None, release.artifact.ref
    newest = newest_publication(reader, versions_of(reader, ref.pack_id), below=ref)
    if (published_ref(newest) if newest is not None else None) != before:
        raise StreamConflict("another version came between", at=str(release.artifact.ref), hint="publish it again")


def _refuse_moved_base(release: Release, reader: RegistryReader) -> None:
    """Refuse an overlay that was judged with another than the newest version of its pack: readers take it."""
    document = release.artifact.document
    if isinstance(document, Overlay):
        newest = newest_publication(reader, versions_of(reader, document.base_pack_id))
        base = release.base.ref if release.base is not None else None
        if (published_ref(newest) if newest is not None else None) != base:
            raise StreamConflict(
                "another version of its pack came between", at=str(release.artifact.ref), hint="publish it again"
            )


def _verify_release(writer: RegistryWriter, release: Release) -> VerifiedArtifact:
    artifact = release.artifact
    trust_context = TrustContext(keyring=writer.reader.keyrings.now, check=writer.reader.check, now=writer.now)
    verified = verify(release.envelope, artifact.data, issuer=artifact.issuer, trust_context=trust_context)
    if (verified.statement.name, verified.statement.kind) != (str(artifact.ref), artifact.kind):
        raise StatementOfOther(
            f"signed as {verified.statement.kind} {verified.statement.name[:80]}", at=str(artifact.ref)
        )
    return verified


def _refuse_failures(release: Release) -> None:
    errors = [finding for finding in release.report.findings if finding.severity == "error"]
    if not release.report.passed:
        first = errors[0]
        raise GatesFailed(
            f"{len(errors)} errors; the first: {first.cause} ({first.gate}/{first.code})",
            at=f"{release.artifact.ref}#{first.at}",
            hint=first.cure,
            details={"findings": [{"gate": error.gate, "code": error.code, "at": error.at} for error in errors]},
        )
    if release.golden.outcome == "failed":
        raise GoldenFailed(
            release.golden.words, at=str(release.artifact.ref), details={"cases": list(release.golden.cases)}
        )


def next_step(state: ArtifactState) -> str:
    """A hint at the next step of an artifact that is not published yet."""
    roles = ", ".join(state.missing)
    return {
        "unknown": "'ctx lint FILE --record' makes it known",
        "draft": "'ctx lint FILE --record' records that it passes",
        "withdrawn": "'ctx lint FILE --record' records it again",
        "linted": f"'ctx review {state.ref}' is missing from: {roles}",
        "reviewed": f"'ctx sign {state.ref}' attaches the issuer's signature",
    }.get(state.stage, "")


SENSITIVE_FINDINGS = frozenset(
    {"secret_present", "random_text_present", "endpoint_credentials", "personal_number_present", "people_listed"}
)
"""The codes of findings with which a document is not even stored as a draft."""


class ArtifactNotKept(ContextPlaneError):
    """A document that holds a secret or data of people.

    The registry keeps everything for ever, and this must not be kept.
    """

    code: ClassVar[str] = "artifact_not_kept"
    family: ClassVar[Family] = "refused"


def reject_sensitive(report: Report, *, at: str) -> None:
    """Refuse a document with a secret or personal data, before anything of it is stored."""
    for finding in report.findings:
        if finding.code in SENSITIVE_FINDINGS:
            raise ArtifactNotKept(
                f"{finding.at}: {finding.cause}, and the registry keeps everything for ever",
                at=at,
                hint=finding.cure,
                details={
                    "findings": [{"at": f.at, "code": f.code} for f in report.findings if f.code in SENSITIVE_FINDINGS]
                },
            )


def require_unpublished(reader: RegistryReader, digest: Digest) -> ArtifactState:
    """The state of an artifact that is not published. A published one is refused: it never changes."""
    state = reader.artifact(digest)
    version = reader.version(state.name)
    if version.is_published and version.digest == digest:
        raise TransitionRefused(
            "it is published, and nothing of it changes any more",
            at=str(state.name),
            hint="publish a new version",
            details={"change": "reviewed or signed", "stage": version.stage, "allowed_in": ["linted", "reviewed"]},
        )
    return state
