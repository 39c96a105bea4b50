"""Releases a document: record a draft, review, sign, publish; withdraw it, deprecate or revoke it."""

from collections.abc import Sequence
from typing import Literal

from contextplane import __version__
from contextplane.app.packs.files import official_number
from contextplane.app.registry.catalogs import published_catalogs
from contextplane.app.registry.session import RegistrySession, SignedBy, retry_conflicts
from contextplane.authoring.artifacts import judge
from contextplane.authoring.gates.table import Report
from contextplane.authoring.source_file import NamedFile
from contextplane.model.artifact import EnvironmentDescription, Overlay
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamConflict
from contextplane.ports.keys import Signer
from contextplane.registry.artifact_state import ArtifactState, Stage, refuse_transition
from contextplane.registry.artifacts import ArtifactInvalid, Candidate, candidate
from contextplane.registry.claims import newest_publication
from contextplane.registry.errors import ArtifactUnknown, VersionUnknown
from contextplane.registry.events import (
    Deprecated,
    Drafted,
    DraftListed,
    GoldenOutcome,
    Linted,
    Published,
    Review,
    Revoked,
    Signed,
    Verdict,
    Withdrawn,
)
from contextplane.registry.merge import catalog_references, judge_with_catalogs, refs_of
from contextplane.registry.publish import (
    Release,
    StatementOfOther,
    is_already_published,
    next_step,
    reject_sensitive,
    require_unpublished,
)
from contextplane.registry.publish import (
    publish as publish_release,
)
from contextplane.registry.reader import RegistryReader
from contextplane.registry.reports import gates_report
from contextplane.registry.reviews import (
    RecordedOtherwise,
    check_recorded,
    check_rejections,
    check_reviewer,
    needed_roles,
)
from contextplane.registry.streams import artifact_stream, drafts_stream, version_stream, versions_of
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.writer import AppendResult, PlannedChange
from contextplane.trust.dsse import IN_TOTO, Envelope, Statement, make_envelope
from contextplane.trust.keyring import IssuerNotFound

__all__ = [
    "ActResult",
    "Candidate",
    "candidate_in",
    "find_candidate",
    "previous_version",
    "publish",
    "record_draft",
    "retire",
    "review",
    "run_gates",
    "sign",
    "withdraw_draft",
]


class ActResult(Value, frozen=True):
    """The result of an act: the artifact, its stage now, and the appended events (None: nothing to do).

    `missing`: the roles that have not approved it. `rejected`: those that rejected it. `golden`: the outcome of the
    golden cases of a pack when it was published.
    """

    ref: PackRef
    digest: Digest
    stage: Stage
    missing: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    report: Report | None = None
    signatures: tuple[int, int] = (0, 0)
    appended: AppendResult | None = None
    golden: GoldenOutcome | None = None
    golden_words: str = ""


def candidate_in(file: NamedFile) -> Candidate:
    """Return the artifact in an author's file. One without the form of any is refused at its place there."""
    try:
        return candidate(file.file.value)
    except ArtifactInvalid as error:
        error.at = file.where((error.at or "").removesuffix("/"))
        error.hint = f"'ctx lint {file.path}' lists every problem"
        raise


def run_gates(
    session: RegistrySession,
    artifact: Candidate,
    environment: EnvironmentDescription | None = None,
    catalogs: Sequence[Candidate] = (),
) -> Report:
    """Run every gate over an artifact. An overlay is applied to the newest version of its pack.

    `catalogs`: those that a pack is judged together with.
    """
    if catalogs:
        return judge_with_catalogs(artifact, catalogs, environment, official_number)
    pack = _overlaid_pack(session, artifact)
    base = pack.value if pack is not None else None
    return judge(artifact.kind, artifact.value, environment, base=base, identify=official_number)


@retry_conflicts
def record_draft(
    session: RegistrySession,
    value: Json,
    signer: Signer,
    environment: EnvironmentDescription | None = None,
    catalogs: Sequence[PackRef] = (),
) -> ActResult:
    """Record a document as a draft, and that it passes every gate if it does.

    `catalogs`: the published catalogs that it is judged together with, now and when it is published.
    """
    artifact = candidate(value)
    shared = published_catalogs(session, catalogs)
    report = run_gates(session, artifact, environment, shared)
    reject_sensitive(report, at=str(artifact.ref))
    before = previous_version(session, artifact.ref)
    data = gates_report(
        artifact.ref, artifact.digest, report, catalogs=catalog_references(shared), gates_version=__version__
    )
    stream = artifact_stream(artifact.digest)
    # Only a report that passed is stored: no event names another.
    with session.write(signer, [artifact.data, data] if report.passed else [artifact.data]) as writer:
        state = writer.reader.artifact(artifact.digest)
        version = writer.reader.version(artifact.ref)
        if is_already_published(version, artifact):
            return ActResult(ref=artifact.ref, digest=artifact.digest, stage=version.stage, report=report)
        planned: list[PlannedChange] = []
        if state.stage in {"unknown", "withdrawn"}:
            change = Drafted(
                kind=artifact.kind, id=artifact.ref.pack_id, version=artifact.ref.version, issuer=artifact.issuer
            )
            planned.append(PlannedChange(stream=stream, change=change, reason="recorded by its author"))
            if artifact.digest not in writer.reader.drafts(artifact.ref):
                listed = DraftListed(digest=str(artifact.digest))
                planned.append(
                    PlannedChange(stream=drafts_stream(artifact.ref), change=listed, reason="recorded by its author")
                )
        else:
            check_recorded(state, artifact)
        if report.passed:
            linted = Linted(
                report=str(Digest.of(data)),
                roles=needed_roles(artifact, before),
                after=before.ref.version if before is not None else "",
                catalogs=catalog_references(shared),
            )
            planned.append(PlannedChange(stream=stream, change=linted, reason="all gates passed"))
        appended = writer.append(planned) if planned else None
        state = writer.reader.artifact(artifact.digest)
    return _act_result(state, appended, report)


def find_candidate(session: RegistrySession, target: str) -> tuple[ArtifactState, Candidate]:
    """Return the recorded artifact that a target names, with its state."""
    digest = session.candidate_digest(target)
    with session.read() as reader:
        return _read_candidate(session, reader, digest, target)


def _read_candidate(
    session: RegistrySession, reader: RegistryReader, digest: Digest, target: str
) -> tuple[ArtifactState, Candidate]:
    """Return a recorded artifact with its state.

    What its record says, what its bytes say of themselves and what the target names must be the same.
    """
    state = reader.artifact(digest)
    if state.ref is None:
        raise ArtifactUnknown(
            "it is not recorded",
            at=str(digest),
            hint="'ctx lint FILE --record' records it; 'ctx packs --drafts' lists drafts",
        )
    artifact = session.artifact(digest)
    check_recorded(state, artifact)
    if target not in {str(digest), str(artifact.ref)}:
        raise RecordedOtherwise(
            f"the draft that is listed under this name is {artifact.ref}, {digest}",
            at=target,
            hint="the index of drafts was changed: 'ctx fsck' compares it; name the bytes that you mean, sha256:<hash>",
        )
    return state, artifact


@retry_conflicts
def review(session: RegistrySession, target: str, role: str, verdict: Verdict, by: SignedBy) -> ActResult:
    """Approve or reject exactly these bytes, in a role."""
    digest = find_candidate(session, target)[0].digest
    with session.write(by.signer) as writer:
        state = require_unpublished(writer.reader, digest)
        refuse_transition("reviewed", state.stage, at=str(state.ref), hint=next_step(state))
        keyrings = writer.reader.keyrings
        check_reviewer(state, keyrings.rotated_keys(writer.key_id, keyrings.now.seq), role)
        change = Review(role=role, verdict=verdict)
        appended = writer.append([PlannedChange(stream=artifact_stream(digest), change=change, reason=by.reason)])
        return _act_result(writer.reader.artifact(digest), appended)


@retry_conflicts
def sign(session: RegistrySession, target: str, by: SignedBy) -> ActResult:
    """Add a signature of the issuer to these bytes. A key that signed already changes nothing."""
    digest = session.candidate_digest(target)
    with session.read() as reader:
        before, _ = _read_candidate(session, reader, digest, target)
        if by.signer.public_key.key_id in before.signers:
            return _act_result(before, None)
        require_unpublished(reader, digest)
        issuer = reader.keyrings.now.issuer(before.issuer)
    check_rejections(before)
    refuse_transition("signed", before.stage, at=str(before.ref), hint=next_step(before))
    if issuer is None:
        raise IssuerNotFound(f"no key of {before.issuer} is trusted", hint="'ctx keys trust' adds one")
    statement = Statement(name=str(before.ref), kind=before.kind, issuer=before.issuer, digest=digest)
    envelope = make_envelope(IN_TOTO, statement.to_bytes())
    if before.envelope:
        existing = Envelope.parse(session.platform.objects.get(Digest.parse(before.envelope)), payload_type=IN_TOTO)
        # A signer states what is signed. The envelope that others signed before may be about something else.
        if existing.payload != envelope.payload:
            raise StatementOfOther(
                "an earlier signature is for another statement",
                at=str(before.ref),
                hint="have a reviewer reject it, which voids these signatures; then approve and sign it again",
            )
        envelope = existing
    data = envelope.with_signature(by.signer).to_bytes()
    change = Signed(envelope=str(Digest.of(data)), threshold=issuer.threshold)
    with session.write(by.signer, [data]) as writer:
        # Another key may have signed meanwhile: its signature must not be lost.
        if writer.reader.artifact(digest).head != before.head:
            raise StreamConflict("another process was faster", at=str(before.ref), hint="sign again")
        appended = writer.append([PlannedChange(stream=artifact_stream(digest), change=change, reason=by.reason)])
        return _act_result(writer.reader.artifact(digest), appended)


@retry_conflicts
def publish(
    session: RegistrySession, target: str, by: SignedBy, environment: EnvironmentDescription | None = None
) -> ActResult:
    """Publish a signed artifact: all gates run again over the stored bytes, and the report is stored.

    The whole decision is made by one snapshot of the registry, which is verified once.
    """
    with session.write(by.signer) as writer:
        digest = session.candidate_digest(target)
        state, artifact = _read_candidate(session, writer.reader, digest, target)
        version = writer.reader.version(artifact.ref)
        if is_already_published(version, artifact):
            golden = version.publication.golden if artifact.kind == "context_pack" else None
            return ActResult(
                ref=artifact.ref, digest=digest, stage=version.stage, golden=golden, golden_words="at that time"
            )
        shared = published_catalogs(session, refs_of(state.catalogs))
        release = Release(
            artifact=artifact,
            envelope=session.platform.objects.get(Digest.parse(state.envelope)) if state.envelope else b"",
            report=run_gates(session, artifact, environment, shared),
            golden=session.golden.run(artifact.ref, artifact.value, shared),
            before=previous_version(session, artifact.ref),
            catalogs=catalog_references(shared),
            base=_overlaid_pack(session, artifact),
            gates_version=__version__,
        )
        session.store(release.report_data)
        appended = publish_release(writer, release, by.reason)
        stage = writer.reader.version(artifact.ref).stage
    return ActResult(
        ref=artifact.ref,
        digest=digest,
        stage=stage,
        report=release.report,
        appended=appended,
        golden=release.golden.outcome if artifact.kind == "context_pack" else None,
        golden_words=release.golden.words,
    )


@retry_conflicts
def withdraw_draft(session: RegistrySession, target: str, by: SignedBy) -> ActResult:
    """Withdraw a draft, which is then no candidate until it is recorded again.

    Doing it again changes nothing.
    """
    digest = session.candidate_digest(target)
    with session.write(by.signer) as writer:
        state = require_unpublished(writer.reader, digest)
        if state.stage == "withdrawn":
            return _act_result(state, None)
        planned = PlannedChange(stream=artifact_stream(digest), change=Withdrawn(), reason=by.reason)
        appended = writer.append([planned])
        return _act_result(writer.reader.artifact(digest), appended)


@retry_conflicts
def retire(session: RegistrySession, ref: PackRef, how: Literal["deprecated", "revoked"], by: SignedBy) -> ActResult:
    """Deprecate or revoke a version. Neither can be undone; doing it again changes nothing."""
    with session.write(by.signer) as writer:
        version = writer.reader.version(ref)
        if not version.is_published:
            raise VersionUnknown("it was never published", at=str(ref), hint="'ctx packs' lists published versions")
        appended = None
        if version.stage != how:
            change = Deprecated() if how == "deprecated" else Revoked()
            appended = writer.append([PlannedChange(stream=version_stream(ref), change=change, reason=by.reason)])
        return ActResult(ref=ref, digest=version.digest, stage=how, appended=appended)


def previous_version(session: RegistrySession, ref: PackRef) -> Candidate | None:
    """Return the highest version below `ref` that the owner of its id published; None if there is none.

    Revoked versions are included.
    """
    with session.read() as reader:
        before = newest_publication(reader, versions_of(reader, ref.pack_id), below=ref)
    return _published_document(session, before)


def _overlaid_pack(session: RegistrySession, artifact: Candidate) -> Candidate | None:
    """Return the newest version of the pack that an overlay is for; None if there is none."""
    if not isinstance(artifact.document, Overlay):
        return None
    with session.read() as reader:
        newest = newest_publication(reader, versions_of(reader, artifact.document.base_pack_id))
    return _published_document(session, newest)


def _published_document(session: RegistrySession, event: VerifiedEvent | None) -> Candidate | None:
    change = event.change if event is not None else None
    return session.artifact(Digest.parse(change.digest)) if isinstance(change, Published) else None


def _act_result(state: ArtifactState, appended: AppendResult | None, report: Report | None = None) -> ActResult:
    return ActResult(
        ref=state.name,
        digest=state.digest,
        stage=state.stage,
        missing=state.missing,
        rejected=tuple(rejection.role for rejection in state.rejected),
        report=report,
        signatures=(len(state.signers), state.threshold),
        appended=appended,
    )
