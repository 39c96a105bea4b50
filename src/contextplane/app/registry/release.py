"""From a document to a published version: recorded, reviewed, signed, published; later deprecated or revoked."""

from collections.abc import Sequence

from contextplane.app.packs.files import official_number
from contextplane.app.registry.catalogs import published_catalogs
from contextplane.app.registry.session import By, RegistryDesk
from contextplane.authoring.artifacts import judge
from contextplane.authoring.environment import Surroundings
from contextplane.authoring.gates.table import Report
from contextplane.model.artifact import Overlay
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamConflict
from contextplane.ports.keys import Signer
from contextplane.registry.artifact_state import ArtifactState, Stage, refuse_transition
from contextplane.registry.artifacts import Candidate, candidate
from contextplane.registry.errors import ArtifactUnknown, TransitionRefused, VersionUnknown
from contextplane.registry.events import Deprecated, Drafted, GoldenOutcome, Linted, Review, Revoked, Signed, Verdict
from contextplane.registry.merge import judged_with, named, refs_of
from contextplane.registry.publish import (
    Release,
    StatementOfOther,
    already_published,
    next_step,
    publish,
    refuse_to_keep,
)
from contextplane.registry.reader import Reader
from contextplane.registry.reports import gates_report
from contextplane.registry.reviews import check_recorded, check_rejections, check_reviewer, needed_roles
from contextplane.registry.streams import artifact_stream, predecessor, version_stream, versions_of
from contextplane.registry.writer import Appended, Planned
from contextplane.trust.dsse import IN_TOTO, Envelope, Statement, sealed
from contextplane.trust.keyring import IssuerNotFound

__all__ = ["Acted", "judged_now", "published", "recorded", "reviewed", "signed", "withdrawn"]


class Acted(Value, frozen=True):
    """What came of an act: the artifact, where it stands now, and the events; without any, nothing was left to do.

    `missing` are the roles that have not approved it, `rejected` those in which it was rejected. `golden` is what the
    golden cases of a pack came to when it was published.
    """

    ref: PackRef
    digest: Digest
    stage: Stage
    missing: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    report: Report | None = None
    signatures: tuple[int, int] = (0, 0)
    appended: Appended | None = None
    golden: GoldenOutcome | None = None
    golden_words: str = ""


def judged_now(
    desk: RegistryDesk,
    artifact: Candidate,
    surroundings: Surroundings | None = None,
    catalogs: Sequence[Candidate] = (),
) -> Report:
    """What every gate says of an artifact. An overlay is applied to the newest version of the pack that it is for.

    `catalogs`: those that a pack is judged together with.
    """
    if catalogs:
        return judged_with(artifact, catalogs, surroundings, official_number)
    base: Json = None
    if isinstance(artifact.document, Overlay):
        with desk.reading() as reader:
            known = versions_of(reader.streams, artifact.document.base_pack_id)
            newest = reader.version(known[-1]) if known else None
        base = desk.artifact(newest.digest).value if newest is not None else None
    return judge(artifact.kind, artifact.value, surroundings, base=base, identify=official_number)


def recorded(
    desk: RegistryDesk,
    value: Json,
    signer: Signer,
    surroundings: Surroundings | None = None,
    catalogs: Sequence[PackRef] = (),
) -> Acted:
    """Make a document known, and record that it passes every gate, if it does; else it stays a draft.

    `catalogs`: published ones that it is judged together with; that is on record, and so it is published later.
    """
    artifact = candidate(value)
    shared = published_catalogs(desk, catalogs)
    report = judged_now(desk, artifact, surroundings, shared)
    refuse_to_keep(report, at=str(artifact.ref))
    before = _before(desk, artifact.ref)
    data = gates_report(artifact.ref, artifact.digest, report, catalogs=named(shared))
    stream = artifact_stream(artifact.digest)
    # Nothing refers to a report of what did not pass.
    with desk.writing(signer, [artifact.data, data] if report.passed else [artifact.data]) as writer:
        state = writer.reader.artifact(artifact.digest)
        if already_published(writer.reader.version(artifact.ref), artifact):
            return Acted(ref=artifact.ref, digest=artifact.digest, stage="published", report=report)
        planned: list[Planned] = []
        if state.stage == "unknown":
            change = Drafted(
                kind=artifact.kind, id=artifact.ref.pack_id, version=artifact.ref.version, issuer=artifact.issuer
            )
            planned.append(Planned(stream=stream, change=change, reason="recorded by its author"))
        else:
            check_recorded(state, artifact)
        if report.passed:
            linted = Linted(
                report=str(Digest.of(data)),
                roles=needed_roles(artifact, before),
                after=before.ref.version if before is not None else "",
                catalogs=named(shared),
            )
            planned.append(Planned(stream=stream, change=linted, reason="all gates passed"))
        appended = writer.append(planned) if planned else None
        state = writer.reader.artifact(artifact.digest)
    return _told(state, appended, report)


def reviewed(desk: RegistryDesk, target: str, role: str, verdict: Verdict, by: By) -> Acted:
    """Say of exactly these bytes, in a role, whether they may go on."""
    digest = desk.candidate_digest(target)
    with desk.writing(by.signer) as writer:
        state = _unpublished(writer.reader, digest)
        refuse_transition("reviewed", state.stage, at=str(state.ref), hint=next_step(state))
        keyrings = writer.reader.keyrings
        check_reviewer(state, keyrings.kin(writer.key_id, keyrings.now.seq), role)
        change = Review(role=role, verdict=verdict)
        appended = writer.append([Planned(stream=artifact_stream(digest), change=change, reason=by.reason)])
        return _told(writer.reader.artifact(digest), appended)


def signed(desk: RegistryDesk, target: str, by: By) -> Acted:
    """Attach the issuer's signature to these bytes. A key that signed already changes nothing."""
    digest = desk.candidate_digest(target)
    with desk.reading() as reader:
        before = reader.artifact(digest)
        if by.signer.public_key.key_id in before.signers:
            return _told(before, None)
        _unpublished(reader, digest)
        issuer = reader.keyrings.now.issuer(before.issuer)
    check_rejections(before)
    refuse_transition("signed", before.stage, at=str(before.ref), hint=next_step(before))
    if issuer is None:
        raise IssuerNotFound(f"no key of {before.issuer} is trusted", hint="'ctx keys trust' gives it one")
    statement = Statement(name=str(before.ref), kind=before.kind, issuer=before.issuer, digest=digest)
    envelope = sealed(IN_TOTO, statement.to_bytes())
    if before.envelope:
        held = Envelope.parse(desk.platform.objects.get(Digest.parse(before.envelope)), payload_type=IN_TOTO)
        # Whoever signs says what he signs. What others attached before him may be about something else.
        if held.payload != envelope.payload:
            raise StatementOfOther(
                "what was signed so far says something else",
                at=str(before.ref),
                hint="a reviewer who rejects it voids these signatures; then it is approved and signed anew",
            )
        envelope = held
    data = envelope.signed(by.signer).to_bytes()
    change = Signed(envelope=str(Digest.of(data)), threshold=issuer.threshold)
    with desk.writing(by.signer, [data]) as writer:
        # Somebody else may have signed meanwhile: his signature must not be lost.
        if writer.reader.artifact(digest).head != before.head:
            raise StreamConflict("somebody else was faster", at=str(before.ref), hint="sign again")
        appended = writer.append([Planned(stream=artifact_stream(digest), change=change, reason=by.reason)])
        return _told(writer.reader.artifact(digest), appended)


def published(desk: RegistryDesk, target: str, by: By, surroundings: Surroundings | None = None) -> Acted:
    """Publish what is signed: all gates run again over the stored bytes, and the report is stored."""
    digest = desk.candidate_digest(target)
    with desk.reading() as reader:
        state = reader.artifact(digest)
    if state.stage == "unknown":
        raise ArtifactUnknown("nobody recorded it", at=str(digest), hint="'ctx lint FILE --record' does")
    artifact = desk.artifact(digest)
    check_recorded(state, artifact)
    with desk.reading() as reader:
        version = reader.version(artifact.ref)
    if already_published(version, artifact):
        golden = version.entry_of.golden if artifact.kind == "context_pack" else None
        return Acted(ref=artifact.ref, digest=digest, stage=version.stage, golden=golden, golden_words="at that time")
    shared = published_catalogs(desk, refs_of(state.catalogs))
    release = Release(
        artifact=artifact,
        envelope=desk.platform.objects.get(Digest.parse(state.envelope)) if state.envelope else b"",
        report=judged_now(desk, artifact, surroundings, shared),
        golden=desk.golden.run(artifact.ref, artifact.value, shared),
        before=_before(desk, artifact.ref),
        catalogs=named(shared),
    )
    with desk.writing(by.signer, [release.report_data]) as writer:
        appended = publish(writer, release, by.reason)
        stage = writer.reader.version(artifact.ref).stage
    return Acted(
        ref=artifact.ref,
        digest=digest,
        stage=stage,
        report=release.report,
        appended=appended,
        golden=release.golden.outcome if artifact.kind == "context_pack" else None,
        golden_words=release.golden.words,
    )


def withdrawn(desk: RegistryDesk, ref: PackRef, how: Stage, by: By) -> Acted:
    """Deprecate or revoke a version. Neither can be undone; what is so already stays as it was said first."""
    with desk.writing(by.signer) as writer:
        version = writer.reader.version(ref)
        if not version.is_published:
            raise VersionUnknown("it was never published", at=str(ref), hint="'ctx packs' lists what was")
        appended = None
        if version.stage != how:
            change = Deprecated() if how == "deprecated" else Revoked()
            appended = writer.append([Planned(stream=version_stream(ref), change=change, reason=by.reason)])
        return Acted(ref=ref, digest=version.digest, stage=how, appended=appended)


def _before(desk: RegistryDesk, ref: PackRef) -> Candidate | None:
    """The version before a number, whatever became of it."""
    with desk.reading() as reader:
        before = predecessor(reader.streams, ref)
        version = reader.version(before) if before is not None else None
    return desk.artifact(version.digest) if version is not None else None


def _unpublished(reader: Reader, digest: Digest) -> ArtifactState:
    """An artifact that is still on its way. What is published does not change any more."""
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


def _told(state: ArtifactState, appended: Appended | None, report: Report | None = None) -> Acted:
    return Acted(
        ref=state.name,
        digest=state.digest,
        stage=state.stage,
        missing=state.missing,
        rejected=tuple(one.role for one in state.rejected),
        report=report,
        signatures=(len(state.signers), state.threshold),
        appended=appended,
    )
