"""Exports published versions with their proofs, from the registry of a store or from its mirrors."""

from collections.abc import Sequence

from contextplane.app.registry.mirror import MirrorIncomplete, mirrored_bytes
from contextplane.app.registry.resolve import judgement
from contextplane.app.registry.session import RegistrySession
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.registry.bundle import BundleRecorder, bundle_bytes, parse_bundle, read_release
from contextplane.registry.errors import VersionUnknown
from contextplane.registry.first_format import StoreNotSealed
from contextplane.registry.open import OpenRegistry
from contextplane.registry.reader import RegistryReader
from contextplane.registry.resolution import CatalogSnapshot
from contextplane.registry.stream_heads import StreamHeads
from contextplane.registry.streams import LOG, PINS
from contextplane.trust.verify import TrustContext

__all__ = ["ExportedBundle", "export_version"]


class ExportedBundle(Value, frozen=True):
    """A bundle that was made. `pinned_in`: the environments in which new runs get the version."""

    data: bytes
    origin: str
    ref: PackRef
    environments: tuple[str, ...]
    pinned_in: tuple[str, ...]
    size: int


def export_version(
    session: RegistrySession, ref: PackRef, environments: Sequence[str] = (), *, since: int = 0
) -> ExportedBundle:
    """Make the bundle of a published version for some environments; by default for all that pin it.

    `since`: the size of an earlier log, from which the bundle proves that its log continues it. A version that was
    imported from another store is exported as it came: the same bytes, verified again.
    """
    try:
        return _export_published(session, ref, environments, since)
    except VersionUnknown:
        mirrored = _export_mirrored(session, ref, environments)
        if mirrored is None:
            raise
        return mirrored


def _export_mirrored(session: RegistrySession, ref: PackRef, environments: Sequence[str]) -> ExportedBundle | None:
    imported = mirrored_bytes(session, ref)
    if imported is None:
        return None
    data, mirror = imported
    missing = sorted({*environments} - {*mirror.environments})
    if missing:
        raise MirrorIncomplete(
            f"it was imported without proofs for {', '.join(missing)}",
            at=str(ref),
            hint=f"export it where it is published, with --environment {missing[0]}, and import it again",
        )
    return ExportedBundle(
        data=data,
        origin=mirror.origin,
        ref=ref,
        environments=mirror.environments,
        pinned_in=() if mirror.release is None else mirror.release.pinned_in,
        size=mirror.entries,
    )


def _export_published(
    session: RegistrySession, ref: PackRef, environments: Sequence[str], since: int
) -> ExportedBundle:
    """Make the bundle of a version of this store's registry."""
    check = session.keys.check
    with session.open() as (view, opened, _):
        session.memory.remember(opened)
        newest = opened.newest
        if newest is None:
            raise VersionUnknown("nothing is published here", at=str(ref), hint="'ctx packs' lists what is published")
        if newest.is_first_format:
            raise StoreNotSealed(
                "it has the first format", at=LOG, hint="an owner seals it: ctx verify --registry --sign --key OWNER"
            )
        names = tuple(environments) or _pinning_environments(opened.reader, ref)
        recorder = BundleRecorder(view.streams, view.marks, session.platform.objects.get)
        reader = RegistryReader(
            recorder,
            opened.reader.keyrings,
            check,
            StreamHeads(recorder, newest.heads),
            log=newest.checkpoint,
            has_voids=opened.voids > 0,
        )
        snapshot = CatalogSnapshot(OpenRegistry(reader=reader, newest=newest), recorder.object)
        trust_context = TrustContext(keyring=opened.reader.keyrings.now, check=check, now=session.keys.clock)
        release = read_release(
            ref, names, snapshot=snapshot, trust_context=trust_context, judgement=judgement(session, anew=True)
        )
        snapshot.consistency(since, newest.checkpoint.size)
        # From the same size, there is nothing to prove.
        bundle = recorder.bundle(ref, names, newest, since if since < newest.checkpoint.size else 0)
    data = bundle_bytes(bundle)
    parse_bundle(data)  # what cannot be read is not written
    return ExportedBundle(
        data=data,
        origin=bundle.origin,
        ref=ref,
        environments=bundle.environments,
        pinned_in=release.pinned_in,
        size=newest.checkpoint.size,
    )


def _pinning_environments(reader: RegistryReader, ref: PackRef) -> tuple[str, ...]:
    """The environments that pin a version now."""
    places = (name.removeprefix(PINS).partition("/") for name in reader.names(PINS))
    return tuple(
        environment
        for environment, _, base_id in places
        if base_id == ref.pack_id and reader.pins(environment, base_id).base == ref
    )
