"""Resolving in a registry by what this client trusts and knows: nothing older than it saw, and nothing stale."""

from contextplane.app.registry import RegistryDesk
from contextplane.registry.opening import open_registry
from contextplane.registry.resolved import Asked, Resolved
from contextplane.registry.resolving import Standpoint, resolve
from contextplane.registry.shelf import CatalogShelf
from contextplane.trust.compatibility import Present
from contextplane.trust.keyring_stream import followed
from contextplane.trust.signatures import Grounds

__all__ = ["resolved"]


def resolved(desk: RegistryDesk, asked: Asked, present: Present, *, max_age: int | None) -> Resolved:
    """The documents of an invocation, or a refusal. The checkpoint that they stand on is the highest seen from then on.

    `max_age`: how many seconds old that may be for new traffic, as the settings say.
    """
    seen, known, check = desk.memory.recalled(), desk.keys.keyring, desk.keys.check
    with desk.platform.catalog.read() as view:
        keys = followed(view.streams, known, check)
        opened = open_registry(view, keys, check, origin=desk.origin, seen=seen)
        desk.memory.keep(opened.standing)
        grounds = Grounds(keyring=keys, check=check, now=desk.keys.now)
        standpoint = Standpoint(grounds=grounds, present=present, seen=seen, max_age=max_age)
        return resolve(asked, CatalogShelf(opened, desk.platform.objects.get), standpoint)
