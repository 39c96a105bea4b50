"""What was put back, told: to people how many, to machines which."""

from collections import Counter
from typing import TYPE_CHECKING

from contextplane.cli.screen import counted
from contextplane.store.damage import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextplane.store.put_back import PutBack

__all__ = ["listed", "summed_up"]


def summed_up(put_back: "Sequence[PutBack]") -> str:
    """`put back 1 object that was tampered with, 2 objects that were missing`."""
    counts = Counter(one.damage for one in put_back)
    told = (f"{_objects(counts[damage])} {mark}" for damage, mark in MARK.items() if counts[damage])
    return f"put back {', '.join(told)}"


def listed(put_back: "Sequence[PutBack]") -> list[dict[str, str]]:
    return [{"digest": str(one.digest), "damage": one.damage} for one in put_back]


def _objects(count: int) -> str:
    return f"{counted(count, 'object')} that {'was' if count == 1 else 'were'}"
