"""The decision catalogs that a pack uses: published ones, and those on record for a version."""

from collections.abc import Sequence

from contextplane.app.registry.session import RegistryDesk
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.artifacts import Candidate
from contextplane.registry.pin import check_usable

__all__ = ["catalogs_on_record", "published_catalogs"]


def catalogs_on_record(desk: RegistryDesk, ref: PackRef) -> tuple[Candidate, ...]:
    """The catalogs that a published version was judged together with, whatever became of them since."""
    with desk.reading() as reader:
        named = reader.version(ref).entry_of.catalogs
    return tuple(desk.artifact(Digest.parse(judged_with.digest)) for judged_with in named)


def published_catalogs(desk: RegistryDesk, refs: Sequence[PackRef]) -> tuple[Candidate, ...]:
    """The documents of these names. Each is published, and takes new traffic."""
    if not refs:
        return ()
    with desk.reading() as reader:
        versions = [reader.version(ref) for ref in refs]
    for version in versions:
        check_usable(version)
    return tuple(desk.artifact(version_state.digest) for version_state in versions)
