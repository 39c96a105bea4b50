"""Published decision catalogs by their names, for whoever judges a pack together with them."""

from collections.abc import Sequence

from contextplane.app.registry import RegistryDesk
from contextplane.model.ids import PackRef
from contextplane.registry.artifacts import Candidate
from contextplane.registry.pinning import check_usable

__all__ = ["published_catalogs"]


def published_catalogs(desk: RegistryDesk, refs: Sequence[PackRef]) -> tuple[Candidate, ...]:
    """The documents of these names. Each is published, and takes new traffic."""
    if not refs:
        return ()
    with desk.reading() as reader:
        versions = [reader.version(ref) for ref in refs]
    for one in versions:
        check_usable(one)
    return tuple(desk.artifact(one.digest) for one in versions)
