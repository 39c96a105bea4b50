"""Resolving in a registry by what this client trusts and knows: nothing older than it saw, and nothing stale.

Compiling from a published version, as a run in an environment would be given it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from contextplane.app.registry.session import RegistryDesk
from contextplane.model.ids import PackRef
from contextplane.registry.admit import admitted
from contextplane.registry.open import open_registry
from contextplane.registry.resolution import Asked, CatalogShelf, Resolved, Used
from contextplane.registry.resolve import Standpoint, proved, resolve
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.compatibility import Present
from contextplane.trust.keyring_stream import followed
from contextplane.trust.verify import Grounds

__all__ = ["resolved", "vouched_for"]


def vouched_for(desk: RegistryDesk, ref: PackRef) -> Used:
    """A version as a replay would get it: published, reviewed and signed as it must be, byte for byte; or a refusal.

    Each event of that stands in the log where it says: reviews that came after the publication are not before it.
    """
    with _opened(desk) as (shelf, grounds, _):
        found, standing = admitted(ref, "replay", shelf=shelf, grounds=grounds), shelf.standing()
        if standing is not None:
            for event in found.events:
                proved(event, standing.checkpoint, shelf)
        return found.used


def resolved(desk: RegistryDesk, asked: Asked, present: Present, *, max_age: int | None) -> Resolved:
    """The documents of an invocation, or a refusal. The checkpoint that they stand on is the highest seen from then on.

    `max_age`: how many seconds old that may be for new traffic, as the settings say.
    """
    with _opened(desk) as (shelf, grounds, seen):
        standpoint = Standpoint(grounds=grounds, present=present, seen=seen, max_age=max_age)
        return resolve(asked, shelf, standpoint)


@contextmanager
def _opened(desk: RegistryDesk) -> Iterator[tuple[CatalogShelf, Grounds, Checkpoint | None]]:
    """The registry to be read, whom we trust, and what we had seen of its log before."""
    seen, known, check = desk.memory.recalled(), desk.keys.keyring, desk.keys.check
    with desk.platform.catalog.read() as view:
        keys = followed(view.streams, known, check)
        opened = open_registry(view, keys, check, origin=desk.origin, seen=seen)
        desk.memory.keep(opened.standing)
        grounds = Grounds(keyring=keys, check=check, now=desk.keys.clock)
        yield CatalogShelf(opened, desk.platform.objects.get), grounds, seen
