"""Pins, rolls back and promotes versions in environments; sets aliases; protects environments."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from contextplane.app.packs.files import official_number
from contextplane.app.registry.catalogs import catalogs_on_record
from contextplane.app.registry.resolve import judgement
from contextplane.app.registry.session import RegistrySession, SignedBy, retry_conflicts
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import Overlay
from contextplane.model.ids import Digest, PackRef
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamConflict
from contextplane.registry.artifacts import Candidate
from contextplane.registry.events import (
    AliasDropped,
    AliasSet,
    EnvironmentOpened,
    EnvironmentProtected,
    GoldenOutcome,
    Pin,
    Pinned,
    Pins,
    Promoted,
    RollbackEnded,
    RolledBack,
    Unpinned,
)
from contextplane.registry.open import OpenRegistry
from contextplane.registry.pin import (
    OverlayElsewhere,
    PassedOver,
    RollbackChoice,
    check_fit,
    check_overlay_issuer,
    check_pin,
    check_promotion,
    check_usable,
    find_pin,
    rollback_target,
    serving_problem,
)
from contextplane.registry.pin_state import PinNotFound, PinState, current_pin, is_doubtful, pinned_overlays, ref_of
from contextplane.registry.reader import RegistryReader
from contextplane.registry.reports import GoldenResult, golden_report
from contextplane.registry.resolution import CatalogSnapshot
from contextplane.registry.streams import PINS, NameInvalid, aliases_stream, environment_stream, pins_stream
from contextplane.registry.version_state import VersionState
from contextplane.registry.writer import AppendResult, PlannedChange, RegistryWriter
from contextplane.trust.verify import TrustContext, verify

__all__ = [
    "PinResult",
    "drop_alias",
    "find_pinned",
    "pin_version",
    "promote",
    "roll_back",
    "set_alias",
    "set_protection",
    "unpin",
]

_NONE = Pins()  # the writer fills in what is pinned after the event


class PinResult(Value, frozen=True):
    """What is pinned now, and what was before. `appended`: None if nothing changed.

    `overlays`: those that are pinned on the pack, also after the pack itself was unpinned. `incidents`: those of the
    version that are open after a rollback to it. `passed_over`: the versions that a rollback left out.
    """

    environment: str
    ref: PackRef
    digest: Digest
    before: PackRef | None = None
    appended: AppendResult | None = None
    incidents: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    milliseconds: int | None = None
    golden: GoldenOutcome | None = None
    golden_words: str = ""
    overlays: tuple[PackRef, ...] = ()


@retry_conflicts
def pin_version(session: RegistrySession, environment: str, ref: PackRef, by: SignedBy) -> PinResult:
    """Pin a version. Overlays must apply to the pack that is pinned in the environment.

    A version that is pinned already is pinned anew only if the pin is doubtful: its key was revoked.
    """
    with session.write(by.signer) as writer:
        reader = writer.reader
        version = reader.version(ref)
        check_pin(version, protected=reader.environment(environment).protected)
        artifact = session.artifact(version.digest)
        base_id = _base_id(artifact)
        stream = pins_stream(environment, base_id)
        state, last = reader.pins(environment, base_id), reader.last(stream)
        held = current_pin(state, ref.pack_id)
        before = ref_of(held) if held is not None else None
        overlays = pinned_overlays(state, ref.pack_id)
        doubtful = held is not None and last is not None and is_doubtful(held, last, reader.keyrings.now.issuers)
        if before == ref and not doubtful:
            return PinResult(environment=environment, ref=ref, digest=version.digest, before=before, overlays=overlays)
        problem = _serving_problem(session, writer, state, version)
        if problem is not None:
            raise problem
        change = Pinned(kind=artifact.kind, id=ref.pack_id, version=ref.version, digest=str(version.digest), pins=_NONE)
        appended = writer.append([PlannedChange(stream=stream, change=change, reason=by.reason)])
    return PinResult(
        environment=environment, ref=ref, digest=version.digest, before=before, appended=appended, overlays=overlays
    )


def find_pinned(session: RegistrySession, environment: str, base_id: str, overlay: str | None = None) -> PackRef:
    """Return the version of an id that an environment pins; `overlay`: that of one of its overlays."""
    with session.read() as reader, _overlay_hint(reader, environment, base_id):
        return ref_of(find_pin(reader.pins(environment, base_id), overlay or base_id))


@retry_conflicts
def unpin(session: RegistrySession, environment: str, base_id: str, overlay: str | None, by: SignedBy) -> PinResult:
    """Unpin an id; `overlay`: only that overlay of it. Overlays stay pinned when their pack is unpinned."""
    with session.write(by.signer) as writer:
        state = writer.reader.pins(environment, base_id)
        with _overlay_hint(writer.reader, environment, base_id):
            pin = find_pin(state, overlay or base_id)
        change = Unpinned(id=pin.id, version=pin.version, pins=_NONE)
        appended = writer.append(
            [PlannedChange(stream=pins_stream(environment, base_id), change=change, reason=by.reason)]
        )
    return PinResult(
        environment=environment,
        ref=ref_of(pin),
        digest=Digest.parse(pin.digest),
        appended=appended,
        overlays=pinned_overlays(state, pin.id),
    )


def roll_back(session: RegistrySession, environment: str, base_id: str, version: str | None, by: SignedBy) -> PinResult:
    """Pin the version that was pinned before, at once; then run golden cases and record their outcome.

    Versions that no new run would get are passed over. A `version` that no run would get is refused.
    """
    start = session.platform.clock.now()
    choice, state, version_state, appended = _pin_earlier(session, environment, base_id, version, by)
    artifact, stream = session.artifact(version_state.digest), pins_stream(environment, base_id)
    milliseconds = max(0, round((session.platform.clock.now() - start).total_seconds() * 1000))
    golden = _run_golden(session, artifact)
    report = golden_report(artifact.ref, artifact.digest, golden)
    ended = RollbackEnded(
        rollback=appended.events[0].event.seq,
        milliseconds=milliseconds,
        golden=golden.outcome,
        report=str(Digest.of(report)),
        pins=_NONE,
    )
    session.act(
        by.signer, [PlannedChange(stream=stream, change=ended, reason=f"golden cases: {golden.outcome}")], [report]
    )
    return PinResult(
        environment=environment,
        ref=artifact.ref,
        digest=artifact.digest,
        before=state.base,
        appended=appended,
        incidents=version_state.open_incidents,
        passed_over=choice.passed_over,
        milliseconds=milliseconds,
        golden=golden.outcome,
        golden_words=golden.words,
        overlays=pinned_overlays(state, artifact.ref.pack_id),
    )


class _Rollback(NamedTuple):
    """What a rollback chose and wrote, and what was pinned before it."""

    choice: RollbackChoice
    before: PinState
    version: VersionState
    appended: AppendResult


@retry_conflicts
def _pin_earlier(
    session: RegistrySession, environment: str, base_id: str, version: str | None, by: SignedBy
) -> _Rollback:
    """Pin the version to roll back to."""
    with session.write(by.signer) as writer:
        reader = writer.reader
        state = reader.pins(environment, base_id)
        choice = rollback_target(reader, state, version, partial(_serving_problem, session, writer, state))
        target = choice.pin
        version_state = reader.version(ref_of(target))
        change = RolledBack(
            kind=target.kind,
            id=target.id,
            version=target.version,
            digest=str(version_state.digest),
            away=state.base.version if state.base is not None else "",
            pins=_NONE,
        )
        planned = PlannedChange(stream=pins_stream(environment, base_id), change=change, reason=by.reason)
        appended = writer.append([planned])
        return _Rollback(choice, state, version_state, appended)


@retry_conflicts
def promote(session: RegistrySession, environment: str, base_id: str, by: SignedBy) -> PinResult:
    """Promote the pinned version: its release gates passed, and no incident is open."""
    with session.read() as reader:
        state = reader.pins(environment, base_id)
        pin = find_pin(state, base_id)
        version = reader.version(ref_of(pin))
    evaluated = check_promotion(state, version, session.evaluations.evaluate(version.ref, environment))
    with session.write(by.signer, [evaluated.report]) as writer:
        if writer.reader.pins(environment, base_id).base != version.ref:
            raise StreamConflict("another version was pinned meanwhile", at=str(version.ref), hint="promote that one")
        check_promotion(state, writer.reader.version(version.ref), evaluated)
        report = str(Digest.of(evaluated.report))
        change = Promoted(id=pin.id, version=pin.version, report=report, pins=_NONE)
        appended = writer.append(
            [PlannedChange(stream=pins_stream(environment, base_id), change=change, reason=by.reason)]
        )
    return PinResult(environment=environment, ref=version.ref, digest=version.digest, appended=appended)


@retry_conflicts
def set_alias(session: RegistrySession, ref: PackRef, alias: str, by: SignedBy) -> None:
    """Set an alias of a version, a name for people. It names one version at a time."""
    if not alias[:1].isalpha():
        raise NameInvalid(f"not an alias: {alias[:80]!r}", hint="it must start with a letter, and not be a version")
    with session.write(by.signer) as writer:
        check_usable(writer.reader.version(ref), deprecated=True)
        if writer.reader.aliases(ref.pack_id).lookup(alias) != ref:
            change = AliasSet(alias=alias, version=ref.version)
            writer.append([PlannedChange(stream=aliases_stream(ref.pack_id), change=change, reason=by.reason)])


def drop_alias(session: RegistrySession, base_id: str, alias: str, by: SignedBy) -> None:
    planned = PlannedChange(stream=aliases_stream(base_id), change=AliasDropped(alias=alias), reason=by.reason)
    session.act(by.signer, [planned])


@retry_conflicts
def set_protection(
    session: RegistrySession, environment: str, *, protected: bool, by: SignedBy, max_age: int | None = None
) -> bool:
    """Open an environment, or protect it again; return whether that changed anything.

    `max_age`: how many seconds old the newest checkpoint may be for new traffic there; None: as it is.
    """
    with session.write(by.signer) as writer:
        state = writer.reader.environment(environment)
        if state.protected is protected and max_age in {None, state.max_age}:
            return False
        change = EnvironmentProtected(max_age=max_age) if protected else EnvironmentOpened()
        writer.append([PlannedChange(stream=environment_stream(environment), change=change, reason=by.reason)])
        return True


def _serving_problem(
    session: RegistrySession, writer: RegistryWriter, state: PinState, pin: Pin | VersionState
) -> ContextPlaneError | None:
    """Return why no new run would get a version if it was pinned in this state; None if runs would get it."""
    reader = writer.reader
    snapshot = CatalogSnapshot(OpenRegistry(reader=reader, newest=writer.newest), session.platform.objects.get)
    trust_context = TrustContext(keyring=reader.keyrings.now, check=reader.check, now=writer.now)
    ref, digest = (pin.ref, pin.digest) if isinstance(pin, VersionState) else (ref_of(pin), Digest.parse(pin.digest))
    problem = serving_problem(ref, snapshot, trust_context, judgement(session))
    if problem is not None:
        return problem
    try:
        _check_fit(session, reader, state, session.artifact(digest), trust_context)
    except ContextPlaneError as error:
        return error
    return None


def _run_golden(session: RegistrySession, artifact: Candidate) -> GoldenResult:
    """Run golden cases after a rollback, which is in force: an error is an outcome, as failed cases are."""
    try:
        return session.golden.run(artifact.ref, artifact.value, catalogs_on_record(session, artifact.ref))
    except ContextPlaneError as error:
        return GoldenResult(outcome="not_run", words=f"{error.code}: {error.message}")


def _base_id(artifact: Candidate) -> str:
    return artifact.document.base_pack_id if isinstance(artifact.document, Overlay) else artifact.ref.pack_id


@contextmanager
def _overlay_hint(reader: RegistryReader, environment: str, base_id: str) -> Iterator[None]:
    """Give the error a hint if the id is that of an overlay: an overlay is unpinned by its pack."""
    try:
        yield
    except PinNotFound as error:
        for name in reader.names(f"{PINS}{environment}/"):
            state = reader.pins(environment, name.rpartition("/")[2])
            if any(overlay.id == base_id for overlay in state.pins.overlays):
                error.hint = f"it is an overlay: ctx unpin {environment} {state.base_id} --overlay {base_id}"
        raise


def _check_fit(
    session: RegistrySession, reader: RegistryReader, state: PinState, artifact: Candidate, trust_context: TrustContext
) -> None:
    """Check that the pack and the overlays fit together as they will be pinned, and are for one tenant."""
    held = {overlay.id: overlay for overlay in state.pins.overlays}
    if isinstance(artifact.document, Overlay):
        if state.pins.base is None:
            raise OverlayElsewhere(
                f"no version of {state.base_id} is pinned in {state.environment}",
                at=str(artifact.ref),
                hint="pin the pack first",
            )
        held.pop(artifact.ref.pack_id, None)
        base = session.artifact(Digest.parse(state.pins.base.digest))
        overlays = [artifact, *_pinned_artifacts(session, held.values())]
    else:
        base, overlays = artifact, list(_pinned_artifacts(session, held.values()))
    check_fit(base, overlays, state.environment, identify=official_number)
    for overlay in overlays:
        version = reader.version(overlay.ref)
        verified = verify(
            session.platform.objects.get(Digest.parse(version.publication.envelope)),
            overlay.data,
            issuer=overlay.issuer,
            trust_context=replace(trust_context, witnessed=version.published_at),
        )
        check_overlay_issuer(verified, base, trust_context.keyring)


def _pinned_artifacts(session: RegistrySession, pins: Iterable[Pin]) -> Iterator[Candidate]:
    for pin in pins:
        yield session.artifact(Digest.parse(pin.digest))
