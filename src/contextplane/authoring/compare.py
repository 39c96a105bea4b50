"""The differences between two packs, part by part, each with what it does."""

from collections.abc import Iterable, Iterator, Mapping

from contextplane.authoring.change import Change
from contextplane.authoring.change_table import OPTIONAL, TABLE, WHOLE, Way
from contextplane.authoring.comparing import Comparer, Sides, always
from contextplane.authoring.keyed import Tree, keyed, plain
from contextplane.model.canonical import Json, canonical
from contextplane.model.pointer import pointer

__all__ = ["compared"]

_BEHAVIOUR = always("changes")


def compared(old: Json, new: Json) -> tuple[Change, ...]:
    """Every difference, in the order of the document. What the table does not know changes behaviour."""
    before, after = keyed(old), keyed(new)
    return tuple(_walk(Sides(old=before, new=after, way=(), before=before, after=after)))


def _walk(sides: Sides) -> Iterator[Change]:
    if _same(sides.old, sides.new):
        return
    comparer = _comparer(sides)
    if comparer is None:
        for key in _keys(sides.old, sides.new):
            yield from _walk(_inside(sides, key))
        return
    at = pointer(sides.way)
    for told in comparer(sides):
        yield Change(layer=sides.way[0] if sides.way else "", at=at, effect=told.effect, words=told.words)


def _same(old: Tree, new: Tree) -> bool:
    """Whether two parts say the same. To Python 1 and true are equal, to a condition they are not."""
    return old == new and (
        not isinstance(old, Mapping | list | tuple | int) or canonical(plain(old)) == canonical(plain(new))
    )


def _comparer(sides: Sides) -> Comparer | None:
    """Who judges this part; None when its own parts are looked at."""
    one_sided = sides.old is None or sides.new is None
    found = _entry(TABLE, sides.way) or (_entry(WHOLE, sides.way) if one_sided else None)
    if found is not None:
        return found
    open_ones = all(isinstance(side, Mapping) or side is None for side in (sides.old, sides.new))
    return None if open_ones and (not one_sided or _pattern(sides.way, OPTIONAL)) else _BEHAVIOUR


def _keys(old: Tree, new: Tree) -> list[str]:
    mine, theirs = (list(side) if isinstance(side, Mapping) else [] for side in (old, new))
    return mine + [key for key in theirs if key not in mine]


def _inside(sides: Sides, key: str) -> Sides:
    old, new = (side.get(key) if isinstance(side, Mapping) else None for side in (sides.old, sides.new))
    return Sides(old=old, new=new, way=(*sides.way, key), before=sides.before, after=sides.after)


def _entry(table: Mapping[Way, Comparer], way: Way) -> Comparer | None:
    pattern = _pattern(way, table)
    return table[pattern] if pattern is not None else None


def _pattern(way: Way, patterns: Iterable[Way]) -> Way | None:
    """The pattern that fits a way; of several, the one with the fewest stars."""
    fitting = [one for one in patterns if len(one) == len(way) and all(map(_fits, one, way))]
    return min(fitting, key=lambda one: one.count("*"), default=None)


def _fits(step: str, name: str) -> bool:
    return step in {"*", name}
