"""Loads the decision catalogs that a pack is judged with: of a file, published, or of a version."""

from collections.abc import Sequence

from contextplane.app.packs.files import read_author_file
from contextplane.app.registry.session import RegistrySession
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.artifacts import Candidate, candidate
from contextplane.registry.pin import check_usable

__all__ = ["Candidate", "catalog_in_file", "catalogs_on_record", "published_catalogs"]


def catalog_in_file(path: str) -> Candidate:
    """Read the decision catalog in an author's file."""
    try:
        return candidate(read_author_file(path).value)
    except ContextPlaneError as error:
        raise (error if (error.at or "").startswith(path) else error.under(f"{path}: ")) from None


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
