"""What there is to say of versions: a list of all, everything about one, and its history. It changes nothing."""

from typing import Any, cast

import msgspec

from contextplane.app.registry.session import RegistryDesk
from contextplane.authoring.source_file import Authored, read_json_file
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import ArtifactKind, Overlay
from contextplane.model.ids import Digest, PackRef
from contextplane.model.keys import Issuer
from contextplane.model.value import Value
from contextplane.registry.artifact_state import ArtifactState, Stage
from contextplane.registry.artifacts import Candidate
from contextplane.registry.errors import VersionUnknown
from contextplane.registry.events import AliasSet, EventInvalid, Happened, JudgedWith, PinChange
from contextplane.registry.pin_state import PinState, is_doubtful, named_by, ref_of
from contextplane.registry.reader import Reader
from contextplane.registry.streams import PINS, aliases_stream, artifact_stream, version_stream, versions_of
from contextplane.registry.version_state import VersionState
from contextplane.registry.writer import DRAFTS
from contextplane.trust.dsse import IN_TOTO, Envelope

__all__ = [
    "Gates",
    "Listed",
    "Shown",
    "Where",
    "artifact_of",
    "drafts",
    "history_of",
    "listed",
    "shown",
    "version_from",
]


class Where(Value, frozen=True):
    """An environment that pins a version: since when, and by which key.

    `doubtful`: that key is revoked from before then on, so that no run is given the version until it is pinned anew.
    """

    environment: str
    at: str
    by: str
    doubtful: bool = False


class Listed(Value, frozen=True):
    """A version in a list. `doubtful_in`: where it is pinned by a key that is revoked from before then on.

    `problem`: why it could not be read.
    """

    ref: PackRef
    kind: ArtifactKind | None = None
    stage: Stage | None = None
    digest: Digest | None = None
    issuer: str = ""
    published_at: str = ""
    pinned_in: tuple[str, ...] = ()
    doubtful_in: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    open_refreshes: int = 0
    problem: str = ""


class Gates(Value, frozen=True):
    """What the gates said when it was published, and whether golden cases ran."""

    passed: bool
    errors: int
    warnings: int
    unknown: int
    golden: str
    report: str


class Shown(Value, frozen=True):
    """Everything about one version, or about a draft of it that is not published yet (`version` is None then)."""

    ref: PackRef
    digest: Digest
    kind: ArtifactKind
    issuer: str
    stage: Stage
    artifact: ArtifactState
    version: VersionState | None
    layers: tuple[tuple[str, str], ...]
    catalogs: tuple[JudgedWith, ...]
    signed_by: tuple[str, ...]
    gates: Gates | None
    pins: tuple[Where, ...]
    aliases: tuple[str, ...]
    history: tuple[Happened, ...]


def listed(desk: RegistryDesk, base_id: str = "") -> tuple[Listed, ...]:
    """Every published version, of one id or of all, by id and number."""
    with desk.reading() as reader:
        pins = _pinned(reader)
        return tuple(_line(reader, ref, pins) for ref in versions_of(reader.streams, base_id))


def drafts(desk: RegistryDesk) -> tuple[ArtifactState, ...]:
    """Every artifact that is on its way and not published, by id and number."""
    with desk.platform.catalog.read() as view:
        digests = [digest for _, digest in view.objects.roots(DRAFTS)]
    with desk.reading() as reader:
        states = [reader.artifact(digest) for digest in digests]
        waiting = [state for state in states if not _is_out(reader, state)]
    return tuple(
        sorted(
            waiting,
            key=lambda artifact_state: (
                artifact_state.name.pack_id,
                artifact_state.name.release,
                artifact_state.digest,
            ),
        )
    )


def shown(desk: RegistryDesk, ref: PackRef) -> Shown:
    """Everything about a version. One that is not published is told as the draft it is, if there is one only."""
    with desk.reading() as reader:
        version = reader.version(ref)
    digest = version.digest if version.is_published else _draft(desk, ref)
    artifact = desk.artifact(digest)
    with desk.reading() as reader:
        state = reader.artifact(digest)
        pins = tuple(where for pinned, where in _pinned(reader) if pinned == ref)
        aliases = reader.aliases(ref.pack_id).of_version(ref.version)
        history = _history(reader, artifact)
        issuer = reader.keyrings.now.issuer(artifact.issuer)
    envelope = version.entry_of.envelope if version.is_published else state.envelope
    return Shown(
        ref=ref,
        digest=digest,
        kind=artifact.kind,
        issuer=artifact.issuer,
        stage=version.stage if version.is_published else state.stage,
        artifact=state,
        version=version if version.is_published else None,
        layers=_layers(artifact),
        catalogs=version.entry_of.catalogs if version.is_published else state.catalogs,
        signed_by=_signed_by(desk, envelope, issuer),
        gates=_gates(desk, version.entry_of.report if version.is_published else state.report),
        pins=pins,
        aliases=aliases,
        history=history,
    )


def history_of(desk: RegistryDesk, ref: PackRef) -> tuple[Happened, ...]:
    """All that happened to a version and to the bytes it consists of, in the order of the log."""
    artifact = artifact_of(desk, ref)
    with desk.reading() as reader:
        return _history(reader, artifact)


def artifact_of(desk: RegistryDesk, ref: PackRef) -> Candidate:
    """What a version consists of: as it was published, else its draft, if there is one only."""
    with desk.reading() as reader:
        version = reader.version(ref)
    return desk.artifact(version.digest if version.is_published else _draft(desk, ref))


def _draft(desk: RegistryDesk, ref: PackRef) -> Digest:
    try:
        return desk.candidate_digest(str(ref))
    except ContextPlaneError as error:
        if error.code != "artifact_not_found":
            raise
        raise VersionUnknown(
            "it was never published",
            at=str(ref),
            hint="'ctx packs' lists what was, 'ctx packs --drafts' what is on its way",
        ) from error


def _is_out(reader: Reader, state: ArtifactState) -> bool:
    version = reader.version(state.name)
    return version.is_published and version.digest == state.digest


def _line(reader: Reader, ref: PackRef, pins: list[tuple[PackRef, Where]]) -> Listed:
    try:
        version = reader.version(ref)
        aliases = reader.aliases(ref.pack_id).of_version(ref.version)
    except ContextPlaneError as error:
        return Listed(ref=ref, problem=f"{error.code}: {error.message}")
    return Listed(
        ref=ref,
        kind=version.kind,
        stage=version.stage,
        digest=version.digest,
        issuer=version.entry_of.issuer,
        published_at=str(version.published_at),
        pinned_in=tuple(where.environment for pinned, where in pins if pinned == ref),
        doubtful_in=tuple(where.environment for pinned, where in pins if pinned == ref and where.doubtful),
        aliases=aliases,
        open_refreshes=len(version.open_refreshes),
    )


def _pinned(reader: Reader) -> list[tuple[PackRef, Where]]:
    """Every pin of every environment."""
    found = []
    for name in reader.streams.names(PINS):
        environment, _, base_id = name.removeprefix(PINS).partition("/")
        last = reader.last(name)
        if last is None:
            continue
        pins = PinState(environment=environment, base_id=base_id).at_event(last).pins
        for pin in (*([pins.base] if pins.base is not None else []), *pins.overlays):
            doubtful = is_doubtful(pin, last, reader.keyrings.now.issuers)
            found.append((ref_of(pin), Where(environment=environment, at=pin.at, by=pin.by, doubtful=doubtful)))
    return found


def _history(reader: Reader, artifact: Candidate) -> tuple[Happened, ...]:
    ref, document = artifact.ref, artifact.document
    base_id = document.base_pack_id if isinstance(document, Overlay) else ref.pack_id
    events = [*reader.history(artifact_stream(artifact.digest)), *reader.history(version_stream(ref))]
    events += [event for event in reader.history(aliases_stream(ref.pack_id)) if _names(event, ref)]
    for name in reader.streams.names(PINS):
        if name.endswith(f"/{base_id}"):
            events += [event for event in reader.history(name) if _names(event, ref)]
    return tuple(sorted(events, key=lambda event: event.event.entry))


def _names(happened: Happened, ref: PackRef) -> bool:
    if isinstance(happened.change, PinChange):
        return named_by(happened.change) == ref
    return isinstance(happened.change, AliasSet) and happened.change.version == ref.version


def _layers(artifact: Candidate) -> tuple[tuple[str, str], ...]:
    """The parts of a document in the order of its form: of each list how long it is, of each text what it says."""
    order = type(artifact.document).__struct_fields__
    members = cast("dict[str, Any]", artifact.value)
    told = []
    for name in sorted(members, key=order.index):
        layer = members[name]
        lists = {name: layer} if isinstance(layer, list) else layer if isinstance(layer, dict) else {}
        counts = [f"{len(one)} {key}" for key, one in lists.items() if isinstance(one, list)]
        said = str(layer) if isinstance(layer, str | int) else ""
        told.append((name, ", ".join(counts) if counts else said))
    return tuple(told)


def _signed_by(desk: RegistryDesk, envelope: str, issuer: Issuer | None) -> tuple[str, ...]:
    """The keys of the issuer that signed it, whatever became of them. Whom an envelope names is not asked."""
    if not envelope or issuer is None:
        return ()
    held = Envelope.parse(desk.platform.objects.get(Digest.parse(envelope)), payload_type=IN_TOTO)
    holds = desk.keys.check.holds
    keys = [key.key for key in issuer.keys]
    return tuple(
        key.key_id for key in keys if any(holds(key, signature.value, held.pae) for signature in held.signatures)
    )


class _Report(Value, frozen=True):
    passed: bool
    findings: list[dict[str, str]]
    golden: dict[str, Any] | None = None


def _gates(desk: RegistryDesk, report: str) -> Gates | None:
    if not report:
        return None
    try:
        told = msgspec.json.decode(desk.platform.objects.get(Digest.parse(report)), type=_Report)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise EventInvalid("an event names it as a report, and it is none", at=report) from error
    kinds = [finding.get("severity") for finding in told.findings]
    return Gates(
        passed=told.passed,
        errors=kinds.count("error"),
        warnings=kinds.count("warning"),
        unknown=kinds.count("unknown"),
        golden=str((told.golden or {}).get("outcome", "not_run")),
        report=report,
    )


def version_from(desk: "RegistryDesk", name: str) -> Authored:
    """A version of the registry, or its only draft, as the file that its canonical bytes are."""
    from contextplane.app.packs.files import as_pack

    artifact = artifact_of(desk, desk.named_version(name))
    return as_pack(Authored(path=str(artifact.ref), file=read_json_file(artifact.data)))
