"""Opens and runs refreshes of versions after a dependency changed; opens and closes incidents."""

from contextplane.app.packs.files import official_number
from contextplane.app.registry.catalogs import catalogs_on_record
from contextplane.app.registry.session import RegistrySession, SignedBy
from contextplane.authoring.artifacts import judge
from contextplane.authoring.gates.table import Report
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import DecisionCatalog, EnvironmentDescription
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest, PackRef
from contextplane.model.value import Value
from contextplane.registry.artifacts import Candidate
from contextplane.registry.events import IncidentClosed, IncidentOpened, RefreshReported, RefreshRequired, Trigger
from contextplane.registry.merge import judge_with_catalogs, refs_of
from contextplane.registry.pin import check_usable
from contextplane.registry.refresh import (
    EVERY,
    REQUIRED_ACTIONS,
    ActionOutcome,
    RefreshNotFound,
    action_by_name,
    action_outcome,
    depends_on,
    may_refresh,
    run_action,
    versions_in_use,
)
from contextplane.registry.reports import GoldenResult, action_report
from contextplane.registry.streams import version_stream
from contextplane.registry.version_state import Refresh, VersionState
from contextplane.registry.writer import PlannedChange

__all__ = [
    "REQUIRED_ACTIONS",
    "OpenRefreshResult",
    "close_incident",
    "open_incident",
    "open_refresh",
    "run_refresh",
    "versions_with_open_refresh",
]


class OpenRefreshResult(Value, frozen=True):
    """The versions for which a refresh was opened.

    `before`: it was open already. `left`: the key has no right to open one.
    """

    opened: tuple[PackRef, ...]
    before: tuple[PackRef, ...]
    left: tuple[PackRef, ...]


def open_refresh(session: RegistrySession, trigger: Trigger, dependency: str, by: SignedBy) -> OpenRefreshResult:
    """Open a refresh of every version in use that depends on what changed."""
    catalog = (
        _changed_catalog(session, dependency) if trigger == "DECISION_CATALOG_UPDATED" and dependency != EVERY else None
    )
    opened: list[PackRef] = []
    before: list[PackRef] = []
    left: list[PackRef] = []
    change = RefreshRequired(trigger=trigger, dependency=dependency, actions=REQUIRED_ACTIONS[trigger])
    with session.write(by.signer) as writer:
        for version in versions_in_use(writer.reader):
            document = session.artifact(version.digest).document
            if not isinstance(document, ContextPack) or not depends_on(trigger, document, dependency, catalog):
                continue
            if any(
                (refresh.trigger, refresh.dependency) == (trigger, dependency) for refresh in version.open_refreshes
            ):
                before.append(version.ref)
            elif may_refresh(writer.reader, writer.key_id, version):
                opened.append(version.ref)
            else:
                left.append(version.ref)
        if opened:
            writer.append(
                [PlannedChange(stream=version_stream(ref), change=change, reason=by.reason) for ref in opened]
            )
    return OpenRefreshResult(opened=tuple(opened), before=tuple(before), left=tuple(left))


def run_refresh(
    session: RegistrySession, ref: PackRef, by: SignedBy, environment: EnvironmentDescription | None = None
) -> tuple[ActionOutcome, ...]:
    """Run every action of the open refreshes of a version that can run, and store its report."""
    with session.read() as reader:
        version = reader.version(ref)
    check_usable(version, deprecated=True)
    if not version.open_refreshes:
        raise RefreshNotFound("no refresh of it is open", at=str(ref), hint="'ctx refresh list' lists them")
    artifact = session.artifact(version.digest)
    outcomes: list[ActionOutcome] = []
    planned: list[PlannedChange] = []
    reports: list[bytes] = []
    golden = _golden_result(session, artifact, version)
    for refresh in version.open_refreshes:
        report = _gate_report(session, artifact, refresh, environment)
        for action in refresh.outstanding:
            result = run_action(action, report, golden)
            outcomes.append(action_outcome(refresh, action, result, golden))
            if result is None:
                continue
            data = action_report(
                ref,
                version.digest,
                trigger=refresh.trigger,
                action=action,
                passed=result.passed,
                words=result.words,
                findings=result.findings,
            )
            change = RefreshReported(
                opened=refresh.opened, action=action, passed=result.passed, report=str(Digest.of(data))
            )
            planned.append(PlannedChange(stream=version_stream(ref), change=change, reason=by.reason))
            reports.append(data)
    if planned:
        session.act(by.signer, planned, reports)
    return tuple(outcomes)


def versions_with_open_refresh(session: RegistrySession) -> tuple[VersionState, ...]:
    """List every version with an open refresh."""
    with session.read() as reader:
        return tuple(version for version in versions_in_use(reader) if version.open_refreshes)


def open_incident(session: RegistrySession, ref: PackRef, incident: str, by: SignedBy) -> None:
    """Open an incident of a version: it is not promoted until the incident is closed."""
    session.act(
        by.signer,
        [PlannedChange(stream=version_stream(ref), change=IncidentOpened(incident=incident), reason=by.reason)],
    )


def close_incident(session: RegistrySession, ref: PackRef, incident: str, by: SignedBy) -> None:
    session.act(
        by.signer,
        [PlannedChange(stream=version_stream(ref), change=IncidentClosed(incident=incident), reason=by.reason)],
    )


def _changed_catalog(session: RegistrySession, dependency: str) -> DecisionCatalog:
    """Return the current version of the changed catalog: only that can be compared with a pack."""
    with session.read() as reader:
        version = reader.version(PackRef.parse(dependency))
    check_usable(version)
    document = session.artifact(version.digest).document
    if not isinstance(document, DecisionCatalog):
        raise RefreshNotFound(
            "it is no decision catalog", at=dependency, hint="name the catalog that changed, id@X.Y.Z"
        )
    return document


def _gate_report(
    session: RegistrySession, artifact: Candidate, refresh: Refresh, environment: EnvironmentDescription | None
) -> Report | ContextPlaneError:
    """Run the gates over a pack with its catalogs and the changed one; return the error if they cannot."""
    with session.read() as reader:
        catalogs = {ref.pack_id: ref for ref in refs_of(reader.version(artifact.ref).publication.catalogs)}
        if refresh.trigger == "DECISION_CATALOG_UPDATED" and refresh.dependency != EVERY:
            changed = PackRef.parse(refresh.dependency)
            catalogs[changed.pack_id] = changed
        shared = [session.artifact(reader.version(catalog).digest) for catalog in catalogs.values()]
    if not shared:
        return judge("context_pack", artifact.value, environment, identify=official_number)
    try:
        return judge_with_catalogs(artifact, shared, environment, official_number)
    except ContextPlaneError as error:
        return error


def _golden_result(session: RegistrySession, artifact: Candidate, version: VersionState) -> GoldenResult | None:
    """Run the golden cases of a version; None if no open action needs them."""
    actions = (action for refresh in version.open_refreshes for action in refresh.outstanding)
    if not any(action_by_name(action).golden for action in actions):
        return None
    return session.golden.run(artifact.ref, artifact.value, catalogs_on_record(session, artifact.ref))
