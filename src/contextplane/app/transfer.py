"""Carries bundles of published versions: through a file, or from one store to another on this machine."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from contextplane.adapters.files.archive import ArchiveTargetExists, atomic_file
from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.files.store_dir import IN_DATABASE, NAME, discover_store
from contextplane.app.catalog import CatalogElsewhere
from contextplane.app.documents import open_document, read_input
from contextplane.app.execution.archive import reject_target_inside
from contextplane.app.registry.export import ExportedBundle, export_version
from contextplane.app.registry.mirror import ImportedBundle, MirrorIncomplete, import_bundle, known_size
from contextplane.app.registry.session import RegistrySession
from contextplane.app.session import open_session
from contextplane.app.settings import Settings
from contextplane.app.trust_root import read_trust_root
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.registry.bundle import MAX_BUNDLE_BYTES
from contextplane.trust.trust_root import TrustRoot

__all__ = ["TransferRequest", "export_to_file", "import_from_file", "pull_version", "push_version"]

_STANDARD_STREAM = "-"


def export_to_file(
    session: RegistrySession, ref: PackRef, path: str, environments: Sequence[str] = (), *, since: int = 0
) -> tuple[ExportedBundle, bool]:
    """Write the bundle of a version to a file; return it, and whether the file is new.

    No file is replaced: an existing one must have exactly these bytes. `-` is standard output.
    """
    reject_target_inside(path, session.platform.home.path)
    exported = export_version(session, ref, environments, since=since)
    if since and exported.origin != session.origin:
        raise MirrorIncomplete(
            "a mirrored version is exported as it was imported, without other proofs",
            at=str(ref),
            hint="leave --since out, or export it where it is published",
        )
    if path == _STANDARD_STREAM:
        Disk().write_all(1, exported.data)
        return exported, True
    target = os.path.realpath(path)
    with storage_errors(path):
        try:
            with atomic_file(target, disk=Disk()) as file:
                file.write(exported.data)
        except FileExistsError as error:
            raise _exists_error(path) from error
    return exported, file.new


def _exists_error(path: str) -> ArchiveTargetExists:
    return ArchiveTargetExists(
        "a file of this name exists, with other contents",
        at=path,
        hint="name another file, or remove this one first",
    )


def import_from_file(
    session: RegistrySession, path: str, settings: Settings, roots: Sequence[str] = (), taken: bytes = b""
) -> ImportedBundle:
    """Verify the bundle in a file and store it; `-` is standard input.

    `roots`: the trust root for its store, as it was typed. `taken`: what was read of standard input before.
    """
    if path == _STANDARD_STREAM:
        data = read_input(taken, MAX_BUNDLE_BYTES + 1)
    else:
        with open_document(path, piped=False) as content:
            data = bytes(content[: MAX_BUNDLE_BYTES + 1])
    try:
        return import_bundle(session, data, _typed_root(roots, settings))
    except ContextPlaneError as error:
        raise error.under(f"{path}: " if error.at else path) from None


class TransferRequest(Value, frozen=True):
    """A version to carry between this store and another one.

    `folder`: the other store. `name`: the version, as it was typed. `environments`: those to include; none: all that
    pin it. `roots`: the trust root of the receiver for the sender, as it was typed.
    """

    folder: str
    name: str
    environments: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


def pull_version(session: RegistrySession, request: TransferRequest, settings: Settings) -> ImportedBundle:
    """Import a version from another store into this one."""
    with _other_store(request.folder, settings) as other:
        return _transfer(other, session, request, settings)


def push_version(session: RegistrySession, request: TransferRequest, settings: Settings) -> ImportedBundle:
    """Import a version from this store into another one."""
    with _other_store(request.folder, settings) as other:
        return _transfer(session, other, request, settings)


def _transfer(
    source: RegistrySession, target: RegistrySession, request: TransferRequest, settings: Settings
) -> ImportedBundle:
    root = _typed_root(request.roots, settings)
    since = known_size(target, source.origin, root)
    exported = export_version(source, source.named_version(request.name), request.environments, since=since)
    return import_bundle(target, exported.data, root)


def _typed_root(roots: Sequence[str], settings: Settings) -> TrustRoot | None:
    return read_trust_root(roots, settings) if roots else None


@contextmanager
def _other_store(folder: str, settings: Settings) -> Iterator[RegistrySession]:
    """Open the store in a folder, or the folder that is a store.

    If its catalog is in a database, that is the one that the settings name for it, else that of this store: a database
    can hold the catalogs of many.
    """
    path = os.path.join(settings.cwd, folder)
    below = os.path.join(path, NAME)
    chosen = below if os.path.isdir(below) else path
    home = discover_store(settings.cwd, chosen, sudo_uid=settings.sudo_uid)
    database_url = None
    if home.config().catalog == IN_DATABASE:
        database_url = settings.other_database_url or settings.database_url
        if database_url is None:
            raise CatalogElsewhere(
                "this store has its catalog in a PostgreSQL database",
                at=home.path,
                hint="name it in CTX_OTHER_DATABASE_URL",
            )
    with open_session(replace(settings, ctx_dir=chosen, database_url=database_url), following=False) as opened:
        yield opened.registry()
