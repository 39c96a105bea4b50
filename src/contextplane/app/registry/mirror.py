"""Mirrors published versions of other stores: imports and resolves them with their proofs.

A store keeps each imported bundle as one object, under the root `mirror/<origin>/<id>@<X.Y.Z>`. The bundle is verified
on arrival and again by every use: who can write the store cannot change what it says. What vouches for it is the trust
root of this client, and what this client remembers of the other store outside of this one (`MirrorMemory`).

A mirrored version can be resolved, run and shown. No act on it is possible here: its registry is elsewhere.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from contextplane.adapters.files.client_state import MirrorMemory, StoreMemory
from contextplane.app.registry.resolve import judgement, pinned_version, resolve_request
from contextplane.app.registry.session import RegistrySession
from contextplane.app.trust_root import TrustRootNotStored
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import IndexedObject
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.artifacts import Candidate, read_artifact
from contextplane.registry.bundle import (
    BundleInvalid,
    MirroredRelease,
    OpenBundle,
    RegistryBundle,
    bundle_bytes,
    open_bundle,
    parse_bundle,
    read_release,
)
from contextplane.registry.bundle_trust import check_bundle_age, check_bundle_root
from contextplane.registry.errors import ArtifactUnknown, VersionUnknown
from contextplane.registry.pin_state import PinNotFound
from contextplane.registry.resolution import Resolution, ResolvedDocument, ResolveRequest
from contextplane.registry.resolve import ResolveContext, resolve
from contextplane.registry.streams import artifact_stream, pins_stream, version_stream
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.version_view import concerns_version
from contextplane.store.event_stream import commit_recorded
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.compatibility import RuntimeCapabilities
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle_log import believed_checkpoint
from contextplane.trust.trust_root import TrustRoot
from contextplane.trust.verify import TrustContext

__all__ = [
    "ImportedBundle",
    "MirrorAmbiguous",
    "MirrorIncomplete",
    "MirrorReplaced",
    "MirroredHistory",
    "MirroredVersion",
    "ResolvedDocument",
    "VersionIsMirrored",
    "acting_error",
    "find_mirror",
    "find_pinned_version",
    "import_bundle",
    "known_size",
    "list_mirrors",
    "mirrored_artifact",
    "mirrored_bytes",
    "mirrored_history",
    "open_mirror",
    "resolve_published",
]

_ROOTS = "mirror/"
_ORIGIN_DIGITS = 32
_HINT = "import it again, from the store that publishes it"


class MirrorReplaced(ContextPlaneError):
    """Another bundle is in the store than the one that this client imported."""

    code: ClassVar[str] = "mirror_replaced"
    family: ClassVar[Family] = "untrusted"


class MirrorAmbiguous(ContextPlaneError):
    """Two stores publish this version, and both are mirrored."""

    code: ClassVar[str] = "mirror_ambiguous"
    family: ClassVar[Family] = "conflict"


class MirrorIncomplete(ContextPlaneError):
    """A bundle that was not exported for this environment or with this catalog."""

    code: ClassVar[str] = "mirror_incomplete"
    family: ClassVar[Family] = "not_found"


class VersionIsMirrored(ContextPlaneError):
    """An act on a version whose registry is in another store."""

    code: ClassVar[str] = "version_is_mirrored"
    family: ClassVar[Family] = "refused"


class ImportedBundle(Value, frozen=True):
    """A bundle that was verified and stored. `marks`: what a user of the version must know."""

    origin: str
    ref: PackRef
    digest: Digest
    bundle: Digest
    environments: tuple[str, ...]
    pinned_in: tuple[str, ...]
    marks: tuple[str, ...]
    time: Timestamp
    size: int
    new: bool


class MirroredVersion(Value, frozen=True):
    """A mirrored version in a list.

    `entries`: the size of its log. `problem`: why it cannot be used; empty if it can.
    """

    ref: PackRef
    origin: str = ""
    time: Timestamp | None = None
    environments: tuple[str, ...] = ()
    entries: int = 0
    release: MirroredRelease | None = None
    problem: str = ""
    family: Family | None = None


class MirroredHistory(Value, frozen=True):
    """The events of a mirrored version, up to a time.

    `names`: what the keyring of its store calls the keys.
    """

    origin: str
    time: Timestamp
    events: tuple[VerifiedEvent, ...]
    names: Mapping[str, str]


# --- import -----------------------------------------------------------------------------------------------------------


def import_bundle(session: RegistrySession, data: bytes, root: TrustRoot | None = None) -> ImportedBundle:
    """Verify a bundle and store it. `root`: the trust root for its store, which is remembered for it.

    Without one, that which was remembered before counts, else that of this store.
    """
    bundle = parse_bundle(data)
    if bundle.origin == session.origin:
        raise BundleInvalid("it is of this store", at=bundle.ref, hint="its registry has the version already")
    opened = _open_bundle(session, bundle)
    memory = _mirror_memory(session, bundle.origin)
    check_bundle_root(opened, root or _trust_root(session, memory), session.keys.check)
    check_bundle_age(opened, _newest_known(memory, opened.keys, session.keys.check))
    release = _read_mirrored(session, opened)
    names = [name for name, _ in _stored_bundles(session, bundle.version) if name != _root_name(opened)]
    if names:
        raise MirrorAmbiguous("another store's version of this name is mirrored here", at=bundle.ref, hint=names[0])
    digest, new = _store_bundle(session, opened, data)
    _remember(session, opened, digest, root)
    return ImportedBundle(
        origin=bundle.origin,
        ref=bundle.version,
        digest=release.admitted.resolved.digest,
        bundle=digest,
        environments=bundle.environments,
        pinned_in=release.pinned_in,
        marks=release.admitted.resolved.marks,
        time=opened.newest.time,
        size=opened.newest.checkpoint.size,
        new=new,
    )


def known_size(session: RegistrySession, origin: str, root: TrustRoot | None = None) -> int:
    """Return how many log entries of another store this client knows: where a proof should begin."""
    memory = _mirror_memory(session, origin)
    chosen = root or _trust_root(session, memory)
    if chosen is not None and chosen.checkpoint is not None and chosen.checkpoint.origin == origin:
        return chosen.checkpoint.size
    seen = _newest_known(memory, TrustedKeys(), session.keys.check)
    return 0 if seen is None else seen.size


def _open_bundle(session: RegistrySession, bundle: RegistryBundle) -> OpenBundle:
    with _bundle_errors():
        return open_bundle(bundle, session.keys.check)


def _read_mirrored(session: RegistrySession, opened: OpenBundle) -> MirroredRelease:
    with _bundle_errors():
        return read_release(
            opened.bundle.version,
            opened.bundle.environments,
            snapshot=opened.snapshot,
            trust_context=_trust_context(session, opened),
            judgement=judgement(session, anew=True),
        )


@contextmanager
def _bundle_errors() -> Iterator[None]:
    """Replace the hints of errors within the block: a catalog can be repaired, a bundle cannot."""
    try:
        yield
    except ContextPlaneError as error:
        if error.family == "untrusted":
            error.hint = (
                "do not trust this file; ask for a new one: 'ctx export id@X.Y.Z -o FILE' where it is published"
            )
        raise


def _trust_context(session: RegistrySession, opened: OpenBundle) -> TrustContext:
    return TrustContext(keyring=opened.keys, check=session.keys.check, now=session.keys.clock)


# --- what is stored and remembered ------------------------------------------------------------------------------------


def _root_name(opened: OpenBundle) -> str:
    return f"{_origin_prefix(opened.bundle.origin)}{opened.bundle.ref}"


def _origin_prefix(origin: str) -> str:
    return f"{_ROOTS}{hashlib.sha256(origin.encode()).hexdigest()[:_ORIGIN_DIGITS]}/"


def _stored_bundles(session: RegistrySession, ref: PackRef | None = None) -> list[tuple[str, Digest]]:
    with session.platform.catalog.read() as view:
        roots = list(view.objects.roots(_ROOTS))
    return [(name, digest) for name, digest in roots if ref is None or name.endswith(f"/{ref}")]


def _store_bundle(session: RegistrySession, opened: OpenBundle, data: bytes) -> tuple[Digest, bool]:
    """Store a bundle instead of the one before; return its digest, and whether it is another one."""
    platform, name = session.platform, _root_name(opened)
    with platform.objects.batch() as batch:
        digest = batch.put(data)
        recorded = IndexedObject(digest=digest, kind="blob", size=len(data), traced=True)
        new = (name, digest) not in _stored_bundles(session, opened.bundle.version)
        commit_recorded(batch, platform.catalog, partial(_record_object, recorded))
        # Within the batch: until the root refers to it, nothing else keeps the object.
        with platform.catalog.write() as tx:
            tx.objects.keep(name, digest)
    return digest, new


def _record_object(recorded: IndexedObject, tx: Transaction) -> None:
    tx.objects.record(recorded)


def _mirror_memory(session: RegistrySession, origin: str) -> MirrorMemory:
    return session.platform.client_state.load().mirrors.get(origin) or MirrorMemory()


def _trust_root(session: RegistrySession, memory: MirrorMemory) -> TrustRoot | None:
    """Return the trust root for another store: the one that was named for it, else that of this store."""
    return TrustRoot.from_entries(memory.trust_root) if memory.trust_root else session.platform.trust_root


def _newest_known(memory: MirrorMemory, keys: TrustedKeys, check: SignatureCheck) -> Checkpoint | None:
    """The newest checkpoint that was imported, as a keyring of its store believes it."""
    return believed_checkpoint(memory.note.encode(), keys, check) if memory.note else None


def _remember(session: RegistrySession, opened: OpenBundle, digest: Digest, root: TrustRoot | None) -> None:
    """Remember the checkpoint, the bundle and the root outside of the store, if there is a place for it."""
    origin, ref = opened.bundle.origin, opened.bundle.ref

    def change(memory: StoreMemory) -> StoreMemory:
        known = memory.mirrors.get(origin) or MirrorMemory()
        mirror = MirrorMemory(
            note=opened.newest.note.decode(),
            trust_root=known.trust_root if root is None else root.entries,
            bundles={**known.bundles, ref: str(digest)},
        )
        return replace(memory, mirrors={**memory.mirrors, origin: mirror})

    if not session.platform.client_state.update(change) and root is not None:
        raise TrustRootNotStored(
            "the trust root for this store cannot be remembered",
            at=ref,
            hint="name a folder that you can write to with XDG_STATE_HOME, or the root itself with CTX_TRUST_ROOT",
        )


# --- use --------------------------------------------------------------------------------------------------------------


def open_mirror(session: RegistrySession, ref: PackRef) -> OpenBundle | None:
    """Open the bundle of a mirrored version, verified anew; None if it is not mirrored here."""
    stored = _stored_bundles(session, ref)
    if len(stored) > 1:
        raise MirrorAmbiguous(
            f"{len(stored)} stores publish it, and all are mirrored here",
            at=str(ref),
            hint="keep one store for each of them",
        )
    return _open_stored(session, *stored[0]) if stored else None


def _open_stored(session: RegistrySession, name: str, digest: Digest) -> OpenBundle:
    bundle = parse_bundle(session.platform.objects.get(digest))
    memory = _mirror_memory(session, bundle.origin)
    known = memory.bundles.get(bundle.ref)
    if name != f"{_origin_prefix(bundle.origin)}{bundle.ref}" or (known is not None and known != str(digest)):
        raise MirrorReplaced(
            "another bundle is here than the one that was imported", at=name.rpartition("/")[2], hint=_HINT
        )
    opened = _open_bundle(session, bundle)
    check_bundle_root(opened, _trust_root(session, memory), session.keys.check)
    return opened


def resolve_published(
    session: RegistrySession, request: ResolveRequest, capabilities: RuntimeCapabilities, *, max_age: int | None
) -> Resolution:
    """Resolve the documents of an invocation from the store's registry, else from a mirror of its pack."""
    try:
        return resolve_request(session, request, capabilities, max_age=max_age)
    except VersionUnknown:
        opened = open_mirror(session, request.refs[0])
        if opened is None:
            raise
    _check_covered(session, request, opened)
    context = ResolveContext(
        trust_context=_trust_context(session, opened),
        capabilities=capabilities,
        judgement=judgement(session, anew=True),
        max_age=max_age,
    )
    return resolve(request, opened.snapshot, context)


def find_pinned_version(session: RegistrySession, pack_id: str, environment: str) -> PackRef:
    """Return the version of a pack that an environment pins, here or, if it pins none here, in a mirror.

    Of several mirrored versions it is the one whose checkpoint is the newest: the others are older states.
    """
    try:
        return pinned_version(session, pack_id, environment)
    except PinNotFound:
        pinned = [
            (mirror.time or NO_TIME, mirror.ref)
            for mirror in list_mirrors(session, pack_id)
            if mirror.release is not None and environment in mirror.release.pinned_in
        ]
        if not pinned:
            raise
        return max(pinned)[1]


def _check_covered(session: RegistrySession, request: ResolveRequest, opened: OpenBundle) -> None:
    """Refuse a request for which the bundle has no proofs, and say what is missing."""
    environments = opened.bundle.environments
    if request.environment not in environments:
        raise MirrorIncomplete(
            f"it was exported for {', '.join(environments) or 'no environment'}, not for {request.environment}",
            at=str(request.refs[0]),
            hint=f"export it with --environment {request.environment}, and import it again",
        )
    others = request.refs[1:]
    named = _read_mirrored(session, opened).published.catalogs if others else ()
    for ref in others:
        if ref not in {PackRef(catalog.id, catalog.version) for catalog in named}:
            raise MirrorIncomplete(
                f"it was published without {ref}, which is not in the bundle",
                at=str(request.refs[0]),
                hint="a mirrored pack is run with the catalogs of its publication",
            )


def mirrored_artifact(session: RegistrySession, ref: PackRef) -> Candidate | None:
    """Read the document of a mirrored version; None if it is not mirrored here."""
    opened = open_mirror(session, ref)
    if opened is None:
        return None
    release = _read_mirrored(session, opened)
    return read_artifact(opened.view.object(release.admitted.resolved.digest))


def mirrored_bytes(session: RegistrySession, ref: PackRef) -> tuple[bytes, MirroredVersion] | None:
    """Return the bundle of a mirrored version as it was imported, verified anew; None if there is none."""
    opened = open_mirror(session, ref)
    return None if opened is None else (bundle_bytes(opened.bundle), _mirrored_version(session, opened))


def mirrored_history(session: RegistrySession, ref: PackRef) -> MirroredHistory | None:
    """Return the events of a mirrored version that its bundle has; None if it is not mirrored here.

    These are all of its bytes and of itself, and the newest pin of each environment.
    """
    opened = open_mirror(session, ref)
    if opened is None:
        return None
    with _bundle_errors():
        artifact = artifact_stream(_read_mirrored(session, opened).admitted.resolved.digest)
        events = [*opened.snapshot.history(artifact), *opened.snapshot.history(version_stream(ref))]
        pins = (opened.snapshot.last(pins_stream(name, ref.pack_id)) for name in opened.bundle.environments)
        events += [event for event in pins if event is not None and concerns_version(event, ref)]
    names = {key.key.key_id: key.name for issuer in opened.keys.issuers for key in issuer.keys if key.name}
    return MirroredHistory(
        origin=opened.bundle.origin,
        time=opened.newest.time,
        events=tuple(sorted(events, key=lambda event: event.event.entry)),
        names=names,
    )


def list_mirrors(session: RegistrySession, base_id: str = "") -> tuple[MirroredVersion, ...]:
    """List the mirrored versions, each verified; one that cannot be used is listed with its problem."""
    mirrors: list[MirroredVersion] = []
    for name, digest in _stored_bundles(session):
        ref = PackRef.parse(name.rpartition("/")[2])
        if base_id not in {"", ref.pack_id}:
            continue
        try:
            mirrors.append(_mirrored_version(session, _open_stored(session, name, digest)))
        except ContextPlaneError as error:
            mirrors.append(MirroredVersion(ref=ref, problem=f"{error.code}: {error.message}", family=error.family))
    return tuple(sorted(mirrors, key=lambda mirror: (mirror.ref, mirror.origin)))


def find_mirror(session: RegistrySession, ref: PackRef) -> MirroredVersion | None:
    """Verify and return a mirrored version; None if it is not mirrored here."""
    opened = open_mirror(session, ref)
    return None if opened is None else _mirrored_version(session, opened)


def _mirrored_version(session: RegistrySession, opened: OpenBundle) -> MirroredVersion:
    return MirroredVersion(
        ref=opened.bundle.version,
        origin=opened.bundle.origin,
        time=opened.newest.time,
        environments=opened.bundle.environments,
        entries=opened.newest.checkpoint.size,
        release=_read_mirrored(session, opened),
    )


def acting_error(session: RegistrySession, error: ContextPlaneError) -> ContextPlaneError:
    """Return the error of an act that found no version: if the version is mirrored, another that says so."""
    if not isinstance(error, VersionUnknown | ArtifactUnknown) or not error.at:
        return error
    mirrored = [name for name, _ in _stored_bundles(session) if name.endswith(f"/{error.at}")]
    if not mirrored:
        return error
    return VersionIsMirrored(
        "its registry is in another store, and only that one can act on it",
        at=error.at,
        hint="act there, then export and import it again",
    )
