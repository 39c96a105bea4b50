"""Describes what an act is about to sign: which bytes, by whom, and what changed in them."""

from contextplane.app.registry.catalogs import published_catalogs
from contextplane.app.registry.release import find_candidate, previous_version, run_gates
from contextplane.app.registry.session import RegistrySession
from contextplane.authoring.artifacts import changes_between
from contextplane.authoring.version_class import Bump, VersionClass, required_bump
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import ArtifactKind, EnvironmentDescription
from contextplane.model.ids import Digest, PackRef
from contextplane.model.value import Value
from contextplane.registry.artifact_state import ArtifactState, Stage
from contextplane.registry.artifacts import Candidate
from contextplane.registry.errors import VersionUnknown
from contextplane.registry.merge import refs_of
from contextplane.registry.version_view import is_published, layer_summaries, list_pins

__all__ = [
    "Bump",
    "GateJudgement",
    "ReleasePreview",
    "VersionClass",
    "VersionPreview",
    "preview_release",
    "preview_version",
]


class GateJudgement(Value, frozen=True):
    """The result of all gates over the stored bytes, now. `problem`: why they could not run."""

    passed: bool
    errors: int = 0
    warnings: int = 0
    problem: str = ""


class ReleasePreview(Value, frozen=True):
    """An artifact that is about to be reviewed, signed or published.

    `name` names it in a command: the version, or the digest if there are several drafts of the version. `author`: the
    key that recorded it first. `before`: the published version that it follows, and `bump` what changed since; None if
    it is the first. `layers`: the parts of the document.
    """

    name: str
    ref: PackRef
    digest: Digest
    kind: ArtifactKind
    issuer: str
    stage: Stage
    author: str
    missing: tuple[str, ...]
    rejected: tuple[str, ...]
    gates: GateJudgement
    layers: tuple[tuple[str, str], ...]
    before: PackRef | None = None
    bump: Bump | None = None


class VersionPreview(Value, frozen=True):
    """A published version that is about to be pinned, unpinned, deprecated or revoked.

    `pinned_in`: the environments that pin it. `before`: what is pinned where it is about to be pinned.
    """

    ref: PackRef
    digest: Digest
    kind: ArtifactKind
    issuer: str
    stage: Stage
    published_by: str
    pinned_in: tuple[str, ...] = ()
    before: PackRef | None = None


def preview_release(
    session: RegistrySession, target: str, environment: EnvironmentDescription | None = None
) -> ReleasePreview:
    """Describe the recorded artifact that a target names. Nothing is written."""
    state, artifact = find_candidate(session, target)
    several = len(session.drafts_of(artifact.ref)) > 1
    with session.read() as reader:
        before = previous_version(session, artifact.ref)
        published = reader.version(artifact.ref).stage if is_published(reader, state) else None
        gates = _judge(session, state, artifact, environment)
    changes = changes_between(artifact.kind, before.value, artifact.value) if before is not None else ()
    return ReleasePreview(
        name=str(artifact.digest if several else artifact.ref),
        ref=artifact.ref,
        digest=artifact.digest,
        kind=artifact.kind,
        issuer=artifact.issuer,
        stage=published or state.stage,
        author=state.author,
        missing=state.missing,
        rejected=tuple(rejection.role for rejection in state.rejected),
        gates=gates,
        layers=layer_summaries(artifact),
        before=before.ref if before is not None else None,
        bump=required_bump(changes) if before is not None else None,
    )


def _judge(
    session: RegistrySession, state: ArtifactState, artifact: Candidate, environment: EnvironmentDescription | None
) -> GateJudgement:
    """Run the gates: that they passed when it was recorded is only what the author's key says."""
    try:
        report = run_gates(session, artifact, environment, published_catalogs(session, refs_of(state.catalogs)))
    except ContextPlaneError as error:
        return GateJudgement(passed=False, problem=f"{error.code}: {error}")
    severities = [finding.severity for finding in report.findings]
    return GateJudgement(passed=report.passed, errors=severities.count("error"), warnings=severities.count("warning"))


def preview_version(session: RegistrySession, ref: PackRef, environment: str | None = None) -> VersionPreview:
    """Describe a published version. `environment`: where it is about to be pinned. Nothing is written."""
    with session.read() as reader:
        version = reader.version(ref)
        if not version.is_published:
            raise VersionUnknown("it was never published", at=str(ref), hint="'ctx packs' lists published versions")
        pins = list_pins(reader)
    here = (pinned for pinned, where in pins if where.environment == environment and pinned.pack_id == ref.pack_id)
    return VersionPreview(
        ref=ref,
        digest=version.digest,
        kind=version.kind,
        issuer=version.publication.issuer,
        stage=version.stage,
        published_by=version.published_by,
        pinned_in=tuple(sorted(where.environment for pinned, where in pins if pinned == ref)),
        before=next(here, None),
    )
