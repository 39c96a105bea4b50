"""Publishing, as numbered steps. A version is published once and for ever; the same bytes again change nothing.

1  nobody published other bytes under this name and number, and no other issuer this name
2  the artifact is signed, which it is not before it was linted and reviewed
3  every gate passes now, over the stored bytes; golden cases that ran pass
4  all whom it needs have reviewed it, by what changed since the version before
5  the issuer's signature holds over exactly these bytes, this name and this kind, by enough keys that are good now
6  the issuer may publish for this tenant
7  the number promises at least the change that there is

What may not be kept for ever: a registry never forgets, so it is not told a secret, nor anything about a person.
"""

from typing import ClassVar

from contextplane.authoring.artifacts import changes_between
from contextplane.authoring.gates.table import Report
from contextplane.authoring.version_class import check_bump, required_bump
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Recorded
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamConflict
from contextplane.registry.artifact_state import ArtifactState, refuse_transition
from contextplane.registry.artifacts import Candidate
from contextplane.registry.errors import VersionTaken
from contextplane.registry.events import Approval, JudgedWith, Published
from contextplane.registry.reports import Golden, gates_report
from contextplane.registry.reviews import check_rejections, check_reviews, needed_roles
from contextplane.registry.streams import predecessor, version_stream, versions_of
from contextplane.registry.version_state import VersionState
from contextplane.registry.writer import Appended, Planned, Writer
from contextplane.trust.tenancy import check_issuer
from contextplane.trust.verify import Grounds, Verified, verify

__all__ = [
    "NEVER_KEPT",
    "ArtifactNotKept",
    "GatesFailed",
    "GoldenFailed",
    "NameTaken",
    "Release",
    "StatementOfOther",
    "already_published",
    "next_step",
    "publish",
    "refuse_to_keep",
]


class GatesFailed(ContextPlaneError):
    """An artifact that does not pass the gates as they are now. `details.findings` lists what they found."""

    code: ClassVar[str] = "publish_gates_failed"
    family: ClassVar[Family] = "refused"


class GoldenFailed(ContextPlaneError):
    """An artifact with a golden case that failed."""

    code: ClassVar[str] = "publish_golden_failed"
    family: ClassVar[Family] = "refused"


class NameTaken(ContextPlaneError):
    """An id under which another issuer publishes."""

    code: ClassVar[str] = "publish_name_taken"
    family: ClassVar[Family] = "conflict"


class StatementOfOther(ContextPlaneError):
    """A signature over these bytes under another name, or as another kind."""

    code: ClassVar[str] = "statement_subject_mismatch"
    family: ClassVar[Family] = "untrusted"


class Release(Value, frozen=True):
    """All that is published together: the artifact, its envelope, what gates and golden cases say of it now.

    `before` is the version before it, if there is one. `catalogs` are those that it was judged together with.
    """

    artifact: Candidate
    envelope: bytes
    report: Report
    golden: Golden
    before: Candidate | None = None
    catalogs: tuple[JudgedWith, ...] = ()

    @property
    def report_data(self) -> bytes:
        return gates_report(self.artifact.ref, self.artifact.digest, self.report, self.golden, catalogs=self.catalogs)


def already_published(version: VersionState, artifact: Candidate) -> bool:
    """(1) Whether these very bytes are published; other bytes under this name and number are a refusal."""
    if not version.is_published:
        return False
    if version.digest != artifact.digest:
        raise VersionTaken(
            f"{version.digest} was published as this, and that stays so",
            at=str(version.ref),
            hint="publish it under a new number",
        )
    return True


def publish(writer: Writer, release: Release, reason: str) -> Appended | None:
    """Publish a release; None when these very bytes are published already."""
    artifact, reader = release.artifact, writer.reader
    # (1) the name and number are free
    if already_published(reader.version(artifact.ref), artifact):
        return None
    _refuse_other_issuer(writer, artifact)
    # (2) signed
    state = reader.artifact(artifact.digest)
    check_rejections(state)
    refuse_transition("published", state.stage, at=str(artifact.ref), hint=next_step(state))
    # (3) gates, golden cases: of what was linted, so with the same catalogs
    if release.catalogs != state.catalogs:
        raise StreamConflict("it was linted with other catalogs since", at=str(artifact.ref), hint="publish it again")
    _refuse_red(release)
    _refuse_overtaken(writer, release)
    # (4) reviews
    check_reviews(state, needed_roles(artifact, release.before))
    # (5) the signature
    verified = _verified(writer, release)
    # (6) for this tenant
    if artifact.tenant is not None:
        check_issuer(verified, artifact.tenant.tenant_id, reader.keyrings.now)
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
    )
    report = Recorded(digest=Digest.of(data), kind="registry_report", size=len(data), traced=True)
    planned = Planned(stream=version_stream(artifact.ref), change=change, reason=reason)
    return writer.append([planned], [report])


def _refuse_other_issuer(writer: Writer, artifact: Candidate) -> None:
    """(1) A name belongs to whoever published it first: nobody else's version can pass for the next one of it."""
    known = versions_of(writer.reader.streams, artifact.ref.pack_id)
    first = writer.reader.version(known[0]).published if known else None
    if first is not None and first.issuer != artifact.issuer:
        raise NameTaken(
            f"versions of {artifact.ref.pack_id} are published by {first.issuer}, not by {artifact.issuer}",
            at=str(artifact.ref),
            hint="publish it under an id of its own",
        )


def _refuse_overtaken(writer: Writer, release: Release) -> None:
    """What the release was compared with must still be the version before it."""
    before = release.before.ref if release.before is not None else None
    if predecessor(writer.reader.streams, release.artifact.ref) != before:
        raise StreamConflict("another version came between", at=str(release.artifact.ref), hint="publish it again")


def _verified(writer: Writer, release: Release) -> Verified:
    artifact = release.artifact
    grounds = Grounds(keyring=writer.reader.keyrings.now, check=writer.reader.check, now=writer.now)
    verified = verify(release.envelope, artifact.data, issuer=artifact.issuer, grounds=grounds)
    if (verified.statement.name, verified.statement.kind) != (str(artifact.ref), artifact.kind):
        raise StatementOfOther(
            f"signed as {verified.statement.kind} {verified.statement.name[:80]}", at=str(artifact.ref)
        )
    return verified


def _refuse_red(release: Release) -> None:
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
    """What an artifact that is on its way waits for."""
    roles = ", ".join(state.missing)
    return {
        "unknown": "'ctx lint FILE --record' makes it known",
        "draft": "'ctx lint FILE --record' records that it passes",
        "linted": f"'ctx review {state.ref}' is missing from: {roles}",
        "reviewed": f"'ctx sign {state.ref}' attaches the issuer's signature",
    }.get(state.stage, "")


NEVER_KEPT = frozenset(
    {"secret_present", "random_text_present", "endpoint_credentials", "personal_number_present", "people_listed"}
)
"""The laws of which a document that breaks one is not even kept as a draft."""


class ArtifactNotKept(ContextPlaneError):
    """A document that holds a secret or data of people: what is recorded is kept for ever, and this must not be."""

    code: ClassVar[str] = "artifact_not_kept"
    family: ClassVar[Family] = "refused"


def refuse_to_keep(report: Report, *, at: str) -> None:
    """Refuse a document by what its gates found, before anything of it is stored."""
    for finding in report.findings:
        if finding.code in NEVER_KEPT:
            raise ArtifactNotKept(
                f"{finding.at}: {finding.cause}, and what is recorded is kept for ever",
                at=at,
                hint=finding.cure,
                details={"findings": [{"at": f.at, "code": f.code} for f in report.findings if f.code in NEVER_KEPT]},
            )
