"""What is put back: objects that were damaged until the same bytes came again."""

from collections.abc import Iterable

from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import Objects
from contextplane.store.damage import Damage, damage_in

__all__ = ["PutBack", "not_whole"]


class PutBack(Value, frozen=True):
    """An object that is whole again, and what was wrong with it."""

    digest: Digest
    damage: Damage


def not_whole(digests: Iterable[Digest], objects: Objects) -> tuple[PutBack, ...]:
    """Which of these are to be put back: asked before the right bytes take their places."""
    looked = ((digest, damage_in(objects.check(digest))) for digest in digests)
    return tuple(PutBack(digest=digest, damage=damage) for digest, damage in looked if damage is not None)
