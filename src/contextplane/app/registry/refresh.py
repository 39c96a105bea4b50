"""Refresh triggers and incidents, put to use: which versions are affected, what must run, and what came of it."""

from contextplane.app.packs.files import official_number
from contextplane.app.registry.catalogs import catalogs_on_record
from contextplane.app.registry.session import By, RegistryDesk
from contextplane.authoring.artifacts import judge
from contextplane.authoring.environment import Surroundings
from contextplane.authoring.gates.table import Report
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import DecisionCatalog
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest, PackRef
from contextplane.model.keys import OWNER
from contextplane.model.value import Value
from contextplane.registry.artifacts import Candidate
from contextplane.registry.authority import PUBLISHER
from contextplane.registry.events import IncidentClosed, IncidentOpened, RefreshReported, RefreshRequired, Trigger
from contextplane.registry.merge import judged_with, refs_of
from contextplane.registry.pin import check_usable
from contextplane.registry.reader import Reader
from contextplane.registry.refresh import EVERY, REQUIRED, Ran, RefreshNotFound, action_named, depends, ran
from contextplane.registry.reports import Golden, action_report
from contextplane.registry.streams import version_stream, versions_of
from contextplane.registry.version_state import Refresh, VersionState
from contextplane.registry.writer import Planned

__all__ = ["Opened", "Outcome", "incident_closed", "incident_opened", "open_refreshes", "refresh_opened", "refresh_run"]


class Opened(Value, frozen=True):
    """The versions for which a refresh is open now. `before`: it was so already; `left`: not this key's to say."""

    opened: tuple[PackRef, ...]
    before: tuple[PackRef, ...]
    left: tuple[PackRef, ...]


class Outcome(Value, frozen=True):
    """What came of one action: it ran and passed or not, or it cannot run yet."""

    refresh: int
    trigger: str
    action: str
    passed: bool | None
    words: str


def refresh_opened(desk: RegistryDesk, trigger: Trigger, dependency: str, by: By) -> Opened:
    """Ask for a refresh of every version in use that depends on what changed."""
    catalog = _catalog(desk, dependency) if trigger == "DECISION_CATALOG_UPDATED" and dependency != EVERY else None
    opened: list[PackRef] = []
    before: list[PackRef] = []
    left: list[PackRef] = []
    change = RefreshRequired(trigger=trigger, dependency=dependency, actions=REQUIRED[trigger])
    with desk.writing(by.signer) as writer:
        for version in _in_use(writer.reader):
            document = desk.artifact(version.digest).document
            if not isinstance(document, ContextPack) or not depends(trigger, document, dependency, catalog):
                continue
            if any(
                (open_refresh.trigger, open_refresh.dependency) == (trigger, dependency)
                for open_refresh in version.open_refreshes
            ):
                before.append(version.ref)
            elif _may(writer.reader, writer.key_id, version):
                opened.append(version.ref)
            else:
                left.append(version.ref)
        if opened:
            writer.append([Planned(stream=version_stream(ref), change=change, reason=by.reason) for ref in opened])
    return Opened(opened=tuple(opened), before=tuple(before), left=tuple(left))


def refresh_run(
    desk: RegistryDesk, ref: PackRef, by: By, surroundings: Surroundings | None = None
) -> tuple[Outcome, ...]:
    """Run every action of the open refreshes of a version that can run, and store what came of each."""
    with desk.reading() as reader:
        version = reader.version(ref)
    check_usable(version, deprecated=True)
    if not version.open_refreshes:
        raise RefreshNotFound("no refresh of it is open", at=str(ref), hint="'ctx refresh list' tells which are")
    artifact = desk.artifact(version.digest)
    outcomes: list[Outcome] = []
    planned: list[Planned] = []
    reports: list[bytes] = []
    golden = _golden(desk, artifact, version)
    for refresh in version.open_refreshes:
        report = _judged(desk, artifact, refresh, surroundings)
        for action in refresh.outstanding:
            result = _ran(action, report, golden)
            outcomes.append(_outcome(refresh, action, result, golden))
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
            planned.append(Planned(stream=version_stream(ref), change=change, reason=by.reason))
            reports.append(data)
    if planned:
        desk.act(by.signer, planned, reports)
    return tuple(outcomes)


def open_refreshes(desk: RegistryDesk) -> tuple[VersionState, ...]:
    """Every version with an open refresh."""
    with desk.reading() as reader:
        return tuple(version_state for version_state in _in_use(reader) if version_state.open_refreshes)


def incident_opened(desk: RegistryDesk, ref: PackRef, incident: str, by: By) -> None:
    """Say that something went wrong with a version: it is not promoted until the incident is closed."""
    desk.act(
        by.signer, [Planned(stream=version_stream(ref), change=IncidentOpened(incident=incident), reason=by.reason)]
    )


def incident_closed(desk: RegistryDesk, ref: PackRef, incident: str, by: By) -> None:
    desk.act(
        by.signer, [Planned(stream=version_stream(ref), change=IncidentClosed(incident=incident), reason=by.reason)]
    )


def _in_use(reader: Reader) -> list[VersionState]:
    """Versions that may take new traffic."""
    return [
        version_state
        for ref in versions_of(reader.streams)
        if (version_state := reader.version(ref)).serves("new_traffic")
    ]


def _may(reader: Reader, key_id: str, version: VersionState) -> bool:
    keys = reader.keyrings.now.issuer(version.entry_of.issuer)
    key = keys.key(key_id) if keys is not None else None
    return key is not None and bool({PUBLISHER, OWNER} & {*key.roles})


def _catalog(desk: RegistryDesk, dependency: str) -> DecisionCatalog:
    """The catalog that changed, in the version that is now: only that can be compared with a pack."""
    with desk.reading() as reader:
        version = reader.version(PackRef.parse(dependency))
    check_usable(version)
    document = desk.artifact(version.digest).document
    if not isinstance(document, DecisionCatalog):
        raise RefreshNotFound(
            "it is no decision catalog", at=dependency, hint="name the catalog that changed, id@X.Y.Z"
        )
    return document


def _judged(
    desk: RegistryDesk, artifact: Candidate, refresh: Refresh, surroundings: Surroundings | None
) -> Report | ContextPlaneError:
    """What the gates say now; of a pack with catalogs, together with them and the one that changed, or why not."""
    with desk.reading() as reader:
        catalogs = {ref.pack_id: ref for ref in refs_of(reader.version(artifact.ref).entry_of.catalogs)}
        if refresh.trigger == "DECISION_CATALOG_UPDATED" and refresh.dependency != EVERY:
            changed = PackRef.parse(refresh.dependency)
            catalogs[changed.pack_id] = changed
        shared = [desk.artifact(reader.version(catalog).digest) for catalog in catalogs.values()]
    if not shared:
        return judge("context_pack", artifact.value, surroundings, identify=official_number)
    try:
        return judged_with(artifact, shared, surroundings, official_number)
    except ContextPlaneError as error:
        return error


def _golden(desk: RegistryDesk, artifact: Candidate, version: VersionState) -> Golden | None:
    """What the golden cases of a version say now, where an action asks for them."""
    asked = (action for refresh in version.open_refreshes for action in refresh.outstanding)
    if not any(action_named(one).golden for one in asked):
        return None
    return desk.golden.run(artifact.ref, artifact.value, catalogs_on_record(desk, artifact.ref))


def _ran(action: str, report: Report | ContextPlaneError, golden: Golden | None) -> Ran | None:
    if not isinstance(report, ContextPlaneError):
        return ran(action, report, golden)
    return (
        None
        if action_named(action).absent
        else Ran(passed=False, words=f"{report.code}: {report.message}", findings=())
    )


def _outcome(refresh: Refresh, action: str, result: Ran | None, golden: Golden | None) -> Outcome:
    waits = action_named(action).absent or (golden.words if golden is not None else "")
    return Outcome(
        refresh=refresh.opened,
        trigger=refresh.trigger,
        action=action,
        passed=None if result is None else result.passed,
        words=waits if result is None else result.words,
    )
