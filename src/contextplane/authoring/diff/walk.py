"""The differences between two packs, part by part, each with what it does.

What a reviewer calls the part of a pack that a change is in.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.diff.change import Change
from contextplane.authoring.diff.comparers import Comparer, Sides, Told, always
from contextplane.authoring.diff.table import OPTIONAL, TABLE, WHOLE, Way
from contextplane.authoring.diff.tree import Tree, keyed, plain
from contextplane.authoring.finding import without_secrets
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.json.pointer import pointer
from contextplane.policy.logic.solver import Tries

__all__ = ["compared", "part_name"]

_NAMES = {
    "policy_bundles": "policy bundle",
    "rules": "rule",
    "approval_gates": "approval gate",
    "must_refuse": "refusal",
    "must_escalate": "escalation",
    "adapter_registry": "adapter",
    "permissions": "permission",
    "decision_specs": "decision",
    "eval_targets": "evaluator target for",
    "release_gates": "release gate for",
    "task_templates": "task template",
    "intents": "intent",
}
"""What an entry is called, by the list that it stands in."""

_BRANCHES = ("then", "else")


def part_name(way: tuple[str, ...]) -> str:
    """The innermost part with an id that a way leads into; nothing where it leads into none, or just to it."""
    inside = [n for n, step in enumerate(way[:-2]) if step in _NAMES]
    if not inside:
        return ""
    n = inside[-1]
    branch = f", {way[n + 2]}" if way[n + 2] in _BRANCHES and len(way) > n + 3 else ""
    return f"{_NAMES[way[n]]} {way[n + 1]}{branch}"


_BEHAVIOUR = always("changes")
_TRIES = 200_000
"""How much one comparison may try, however many conditions changed: what is left then cannot be told."""


def compared(old: Json, new: Json) -> tuple[Change, ...]:
    """Every difference, in the order of the document. What the table does not know changes behaviour."""
    before, after = keyed(old), keyed(new)
    sides = Sides(old=before, new=after, way=(), before=before, after=after, tries=Tries(_TRIES))
    return tuple(_walk(sides))


def _walk(sides: Sides) -> Iterator[Change]:
    if _same(sides.old, sides.new):
        return
    comparer = _comparer(sides)
    if comparer is None:
        changes = [change for key in _keys(sides.old, sides.new) for change in _walk(_inside(sides, key))]
    else:
        changes = [_change(sides, difference) for difference in comparer(sides)]
    yield from changes
    # A scalar that says the same as its absence is told with the object that it stands in.
    if not changes and isinstance(sides.new, Mapping | list) and not _reordered(sides.old, sides.new):
        yield _change(sides, Told(effect="metadata", words=f"{sides.name} is written in another way"))


def _change(sides: Sides, told: Told) -> Change:
    whose = "" if told.named else part_name(sides.way)
    return Change(
        layer=sides.way[0] if sides.way else "",
        at=pointer(sides.way),
        effect=told.effect,
        words=without_secrets(f"{whose}: {told.words}" if whose else told.words),
    )


def _reordered(old: Tree, new: Tree) -> bool:
    """Whether two parts consist of the same, each list in another order: to move a part is no change."""
    return _unordered(old) == _unordered(new)


def _unordered(part: Tree) -> bytes:
    if isinstance(part, Mapping):
        return b"{%s}" % b",".join(sorted(key.encode() + b":" + _unordered(one) for key, one in part.items()))
    if isinstance(part, list | tuple):
        return b"[%s]" % b",".join(sorted(map(_unordered, part)))
    return canonical(part)


def _same(old: Tree, new: Tree) -> bool:
    """Whether two parts say the same. To Python 1 and true are equal, to a condition they are not."""
    return old == new and (
        not isinstance(old, Mapping | list | tuple | int) or canonical(plain(old)) == canonical(plain(new))
    )


def _comparer(sides: Sides) -> Comparer | None:
    """Who judges this part; None when its own parts are looked at."""
    one_sided = sides.old is None or sides.new is None
    comparer = _entry(TABLE, sides.way) or (_entry(WHOLE, sides.way) if one_sided else None)
    if comparer is not None:
        return comparer
    open_ones = all(isinstance(side, Mapping) or side is None for side in (sides.old, sides.new))
    return None if open_ones and (not one_sided or _pattern(sides.way, OPTIONAL)) else _BEHAVIOUR


def _keys(old: Tree, new: Tree) -> list[str]:
    mine, theirs = (list(side) if isinstance(side, Mapping) else [] for side in (old, new))
    return mine + [key for key in theirs if key not in mine]


def _inside(sides: Sides, key: str) -> Sides:
    old, new = (side.get(key) if isinstance(side, Mapping) else None for side in (sides.old, sides.new))
    return replace(sides, old=old, new=new, way=(*sides.way, key))


def _entry(table: Mapping[Way, Comparer], way: Way) -> Comparer | None:
    pattern = _pattern(way, table)
    return table[pattern] if pattern is not None else None


def _pattern(way: Way, patterns: Iterable[Way]) -> Way | None:
    """The pattern that fits a way; of several, the one with the fewest stars."""
    fitting = [pattern for pattern in patterns if len(pattern) == len(way) and all(map(_fits, pattern, way))]
    return min(fitting, key=lambda one: one.count("*"), default=None)


def _fits(step: str, name: str) -> bool:
    return step in {"*", name}
