"""Loads the decision catalogs that a pack is judged with: published ones, or those of a version."""

from collections.abc import Sequence

from contextplane.app.registry.session import RegistrySession
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.artifacts import Candidate
from contextplane.registry.pin import check_usable

__all__ = ["catalogs_on_record", "published_catalogs"]


def catalogs_on_record(session: RegistrySession, ref: PackRef) -> tuple[Candidate, ...]:
    """Load the catalogs that a published version was judged together with, withdrawn ones included."""
    with session.read() as reader:
        references = reader.version(ref).publication.catalogs
    return tuple(session.artifact(Digest.parse(reference.digest)) for reference in references)


def published_catalogs(session: RegistrySession, refs: Sequence[PackRef]) -> tuple[Candidate, ...]:
    """Load these catalogs. Each must be published, and take new traffic."""
    if not refs:
        return ()
    with session.read() as reader:
        versions = [reader.version(ref) for ref in refs]
    for version in versions:
        check_usable(version)
    return tuple(session.artifact(version.digest) for version in versions)
