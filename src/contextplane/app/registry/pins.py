"""Pins, aliases and environments, put to use."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from contextplane.app.packs.files import official_number
from contextplane.app.registry.catalogs import catalogs_on_record
from contextplane.app.registry.session import By, RegistryDesk
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
    PinChange,
    Pinned,
    Pins,
    Promoted,
    RollbackEnded,
    RolledBack,
    Unpinned,
)
from contextplane.registry.pin import (
    OverlayElsewhere,
    check_fit,
    check_pin,
    check_promotion,
    check_rollback,
    check_usable,
    pinned_here,
)
from contextplane.registry.pin_state import PinNotFound, PinState, is_doubtful, ref_of
from contextplane.registry.reader import Reader
from contextplane.registry.reports import Golden, golden_report
from contextplane.registry.streams import PINS, NameInvalid, aliases_stream, environment_stream, pins_stream
from contextplane.registry.writer import Appended, Planned

__all__ = [
    "PinAct",
    "alias_dropped",
    "alias_set",
    "environment_set",
    "pinned",
    "pinning",
    "promoted",
    "rolled_back",
    "unpinned",
]

_NONE = Pins()  # what is pinned after an event is filled in when it is written


class PinAct(Value, frozen=True):
    """What is pinned now, and was before. `appended`: None when it was so already.

    `overlays`: those that are pinned on a pack after it was pinned, or taken away.
    """

    environment: str
    ref: PackRef
    digest: Digest
    before: PackRef | None = None
    appended: Appended | None = None
    deprecated: bool = False
    milliseconds: int | None = None
    golden: GoldenOutcome | None = None
    golden_words: str = ""
    overlays: tuple[PackRef, ...] = ()


def pinned(desk: RegistryDesk, environment: str, ref: PackRef, by: By) -> PinAct:
    """Pin a version. An overlay must apply to the pack that is pinned there, a pack must bear its overlays there.

    What is pinned already is pinned anew only where no run is given it, because of who pinned it.
    """
    with desk.writing(by.signer) as writer:
        reader = writer.reader
        version = reader.version(ref)
        check_pin(version, protected=reader.environment(environment).protected)
        artifact = desk.artifact(version.digest)
        base_id = _base_id(artifact)
        stream = pins_stream(environment, base_id)
        state, last = reader.pins(environment, base_id), reader.last(stream)
        held = _held(state, ref.pack_id)
        before = ref_of(held) if held is not None else None
        overlays = _overlays(state, ref.pack_id)
        doubtful = held is not None and last is not None and is_doubtful(held, last, reader.keyrings.now.issuers)
        if before == ref and not doubtful:
            return PinAct(environment=environment, ref=ref, digest=version.digest, before=before, overlays=overlays)
        _check_fit(desk, state, artifact)
        change = Pinned(kind=artifact.kind, id=ref.pack_id, version=ref.version, digest=str(version.digest), pins=_NONE)
        appended = writer.append([Planned(stream=stream, change=change, reason=by.reason)])
    return PinAct(
        environment=environment, ref=ref, digest=version.digest, before=before, appended=appended, overlays=overlays
    )


def unpinned(desk: RegistryDesk, environment: str, base_id: str, overlay: str | None, by: By) -> PinAct:
    """Take away what is pinned for an id; `overlay`: only that overlay of it. Overlays outlive their pack there."""
    with desk.writing(by.signer) as writer:
        state = writer.reader.pins(environment, base_id)
        with _overlays_named_by_their_pack(writer.reader, environment, base_id):
            pin = pinned_here(state, overlay or base_id)
        change = Unpinned(id=pin.id, version=pin.version, pins=_NONE)
        appended = writer.append([Planned(stream=pins_stream(environment, base_id), change=change, reason=by.reason)])
    return PinAct(
        environment=environment,
        ref=ref_of(pin),
        digest=Digest.parse(pin.digest),
        appended=appended,
        overlays=_overlays(state, pin.id),
    )


def rolled_back(desk: RegistryDesk, environment: str, base_id: str, version: str | None, by: By) -> PinAct:
    """Pin again what was pinned before, at once; golden cases run behind it, and what they say is recorded."""
    began = desk.platform.clock.now()
    with desk.writing(by.signer) as writer:
        reader = writer.reader
        state = reader.pins(environment, base_id)
        target = _target(reader, state, version)
        version_state = reader.version(ref_of(target))
        check_usable(version_state, deprecated=True)
        artifact = desk.artifact(version_state.digest)
        _check_fit(desk, state, artifact)
        change = RolledBack(
            kind=target.kind,
            id=target.id,
            version=target.version,
            digest=str(version_state.digest),
            away=state.base.version if state.base is not None else "",
            pins=_NONE,
        )
        stream = pins_stream(environment, base_id)
        appended = writer.append([Planned(stream=stream, change=change, reason=by.reason)])
    took = max(0, round((desk.platform.clock.now() - began).total_seconds() * 1000))
    golden = _golden(desk, artifact)
    report = golden_report(artifact.ref, artifact.digest, golden)
    ended = RollbackEnded(
        rollback=appended.events[0].event.seq,
        milliseconds=took,
        golden=golden.outcome,
        report=str(Digest.of(report)),
        pins=_NONE,
    )
    desk.act(by.signer, [Planned(stream=stream, change=ended, reason=f"golden cases: {golden.outcome}")], [report])
    return PinAct(
        environment=environment,
        ref=artifact.ref,
        digest=artifact.digest,
        before=state.base,
        appended=appended,
        deprecated=version_state.stage == "deprecated",
        milliseconds=took,
        golden=golden.outcome,
        golden_words=golden.words,
        overlays=_overlays(state, artifact.ref.pack_id),
    )


def promoted(desk: RegistryDesk, environment: str, base_id: str, by: By) -> PinAct:
    """Say that what is pinned proved itself: its release gates passed, and no incident is open."""
    with desk.reading() as reader:
        state = reader.pins(environment, base_id)
        pin = pinned_here(state, base_id)
        version = reader.version(ref_of(pin))
    evaluated = check_promotion(state, version, desk.evaluations.evaluated(version.ref, environment))
    with desk.writing(by.signer, [evaluated.report]) as writer:
        if writer.reader.pins(environment, base_id).base != version.ref:
            raise StreamConflict("another version was pinned meanwhile", at=str(version.ref), hint="promote that one")
        check_promotion(state, writer.reader.version(version.ref), evaluated)
        report = str(Digest.of(evaluated.report))
        change = Promoted(id=pin.id, version=pin.version, report=report, pins=_NONE)
        appended = writer.append([Planned(stream=pins_stream(environment, base_id), change=change, reason=by.reason)])
    return PinAct(environment=environment, ref=version.ref, digest=version.digest, appended=appended)


def pinning(desk: RegistryDesk, ref: PackRef) -> tuple[str, ...]:
    """The environments that pin a version of a pack or a catalog."""
    with desk.reading() as reader:
        names = [name for name in reader.streams.names(PINS) if name.endswith(f"/{ref.pack_id}")]
        environments = [name.removeprefix(PINS).partition("/")[0] for name in names]
        return tuple(environment for environment in environments if reader.pins(environment, ref.pack_id).base == ref)


def alias_set(desk: RegistryDesk, ref: PackRef, alias: str, by: By) -> None:
    """Give a version a name for people. The name leads to no other version from then on."""
    if not alias[:1].isalpha():
        raise NameInvalid(f"not a name for people: {alias[:80]!r}", hint="it begins with a letter, and is no version")
    with desk.writing(by.signer) as writer:
        check_usable(writer.reader.version(ref), deprecated=True)
        if writer.reader.aliases(ref.pack_id).named(alias) != ref:
            change = AliasSet(alias=alias, version=ref.version)
            writer.append([Planned(stream=aliases_stream(ref.pack_id), change=change, reason=by.reason)])


def alias_dropped(desk: RegistryDesk, base_id: str, alias: str, by: By) -> None:
    planned = Planned(stream=aliases_stream(base_id), change=AliasDropped(alias=alias), reason=by.reason)
    desk.act(by.signer, [planned])


def environment_set(desk: RegistryDesk, environment: str, *, protected: bool, by: By) -> bool:
    """Open an environment, or protect it again; whether that changed anything."""
    with desk.writing(by.signer) as writer:
        if writer.reader.environment(environment).protected is protected:
            return False
        change = EnvironmentProtected() if protected else EnvironmentOpened()
        writer.append([Planned(stream=environment_stream(environment), change=change, reason=by.reason)])
        return True


def _golden(desk: RegistryDesk, artifact: Candidate) -> Golden:
    """What golden cases say behind a rollback. It is in force: that they cannot run is told, as red ones are."""
    try:
        return desk.golden.run(artifact.ref, artifact.value, catalogs_on_record(desk, artifact.ref))
    except ContextPlaneError as error:
        return Golden(outcome="not_run", words=f"{error.code}: {error.message}")


def _base_id(artifact: Candidate) -> str:
    return artifact.document.base_pack_id if isinstance(artifact.document, Overlay) else artifact.ref.pack_id


def _overlays(state: PinState, of: str) -> tuple[PackRef, ...]:
    """The overlays on a pack; none, where it is itself one of them that is meant."""
    return tuple(map(ref_of, state.pins.overlays)) if of == state.base_id else ()


@contextmanager
def _overlays_named_by_their_pack(reader: Reader, environment: str, meant: str) -> Iterator[None]:
    """Whoever names an overlay like a pack is told how it is named."""
    try:
        yield
    except PinNotFound as error:
        for name in reader.streams.names(f"{PINS}{environment}/"):
            state = reader.pins(environment, name.rpartition("/")[2])
            if any(overlay.id == meant for overlay in state.pins.overlays):
                error.hint = f"it is an overlay: ctx unpin {environment} {state.base_id} --overlay {meant}"
        raise


def _held(state: PinState, pack_id: str) -> Pin | None:
    every = [*([state.pins.base] if state.pins.base is not None else []), *state.pins.overlays]
    return next((pin for pin in every if pin.id == pack_id), None)


def _check_fit(desk: RegistryDesk, state: PinState, artifact: Candidate) -> None:
    """The pack as it will be, with the overlays as they will be."""
    held = {overlay.id: overlay for overlay in state.pins.overlays}
    if isinstance(artifact.document, Overlay):
        if state.pins.base is None:
            raise OverlayElsewhere(
                f"no version of {state.base_id} is pinned in {state.environment}",
                at=str(artifact.ref),
                hint="pin the pack first",
            )
        held.pop(artifact.ref.pack_id, None)
        base = desk.artifact(Digest.parse(state.pins.base.digest))
        overlays = [artifact, *_read(desk, held.values())]
    else:
        base, overlays = artifact, list(_read(desk, held.values()))
    check_fit(base, overlays, state.environment, identify=official_number)


def _read(desk: RegistryDesk, pins: Iterable[Pin]) -> Iterator[Candidate]:
    for pin in pins:
        yield desk.artifact(Digest.parse(pin.digest))


def _target(reader: Reader, state: PinState, version: str | None) -> Pin:
    changes = (backward.change for backward in reader.backwards(pins_stream(state.environment, state.base_id)))
    earlier = (change for change in changes if isinstance(change, PinChange))

    def is_revoked(pin: Pin) -> bool:
        return reader.version(ref_of(pin)).stage == "revoked"

    return check_rollback(state, earlier, version, is_revoked)
