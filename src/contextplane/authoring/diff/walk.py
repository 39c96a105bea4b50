"""The walk over two packs, part by part, to each change with its effect and the name of its part.

The table has the comparer of each part. A part that is not in the table changes behaviour.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.diff.comparers import Comparer, Difference, Pair, always
from contextplane.authoring.diff.table import OPTIONAL, TABLE, WHOLE, TreePath
from contextplane.authoring.diff.tree import Change, Tree, index_by_id, plain
from contextplane.authoring.law import redact_secrets
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.json.pointer import pointer

__all__ = ["compare_packs", "part_name"]

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
    "request_facts": "request facts for",
    "facts": "fact",
}
"""The name of an entry in words, by the list that it stands in."""

_BRANCHES = ("then", "else")


def part_name(path: tuple[str, ...]) -> str:
    """Return the name of the innermost part with an id around `path`; "" when there is none."""
    inside = [n for n, step in enumerate(path[:-2]) if step in _NAMES]
    if not inside:
        return ""
    n = inside[-1]
    branch = f", {path[n + 2]}" if path[n + 2] in _BRANCHES and len(path) > n + 3 else ""
    return f"{_NAMES[path[n]]} {path[n + 1]}{branch}"


_BEHAVIOUR = always("changes")


def compare_packs(old: Json, new: Json) -> tuple[Change, ...]:
    """Return every change between two packs, in the order of the document."""
    before, after = index_by_id(old), index_by_id(new)
    pair = Pair(old=before, new=after, path=(), before=before, after=after)
    return tuple(_walk(pair))


def _walk(pair: Pair) -> Iterator[Change]:
    if _same(pair.old, pair.new):
        return
    comparer = _comparer(pair)
    if comparer is None:
        changes = [change for key in _keys(pair.old, pair.new) for change in _walk(_inside(pair, key))]
    else:
        changes = [_change(pair, difference) for difference in comparer(pair)]
    yield from changes
    # A scalar that equals its default is reported with the object that it stands in.
    if not changes and isinstance(pair.new, Mapping | list) and not _is_reordering(pair.old, pair.new):
        yield _change(pair, Difference(effect="metadata", words=f"{pair.name} is written in another way"))


def _change(pair: Pair, difference: Difference) -> Change:
    part = "" if difference.named else part_name(pair.path)
    return Change(
        layer=pair.path[0] if pair.path else "",
        at=pointer(pair.path),
        effect=difference.effect,
        words=redact_secrets(f"{part}: {difference.words}" if part else difference.words),
        undecided=difference.undecided,
    )


def _is_reordering(old: Tree, new: Tree) -> bool:
    """Whether two parts differ only in the order of their lists: moving a part is no change."""
    return _order_free_form(old) == _order_free_form(new)


def _order_free_form(part: Tree) -> bytes:
    if isinstance(part, Mapping):
        return b"{%s}" % b",".join(
            sorted(key.encode() + b":" + _order_free_form(member) for key, member in part.items())
        )
    if isinstance(part, list | tuple):
        return b"[%s]" % b",".join(sorted(map(_order_free_form, part)))
    return canonical(part)


def _same(old: Tree, new: Tree) -> bool:
    """Whether two parts are equal. In Python 1 equals true, in a condition it does not."""
    return old == new and (
        not isinstance(old, Mapping | list | tuple | int) or canonical(plain(old)) == canonical(plain(new))
    )


def _comparer(pair: Pair) -> Comparer | None:
    """Return the comparer of this part; None when its own parts are compared."""
    one_sided = pair.old is None or pair.new is None
    comparer = _entry(TABLE, pair.path) or (_entry(WHOLE, pair.path) if one_sided else None)
    if comparer is not None:
        return comparer
    are_objects = all(isinstance(side, Mapping) or side is None for side in (pair.old, pair.new))
    return None if are_objects and (not one_sided or _pattern(pair.path, OPTIONAL)) else _BEHAVIOUR


def _keys(old: Tree, new: Tree) -> list[str]:
    mine, theirs = (list(side) if isinstance(side, Mapping) else [] for side in (old, new))
    return mine + [key for key in theirs if key not in mine]


def _inside(pair: Pair, key: str) -> Pair:
    old, new = (side.get(key) if isinstance(side, Mapping) else None for side in (pair.old, pair.new))
    return replace(pair, old=old, new=new, path=(*pair.path, key))


def _entry(table: Mapping[TreePath, Comparer], path: TreePath) -> Comparer | None:
    pattern = _pattern(path, table)
    return table[pattern] if pattern is not None else None


def _pattern(path: TreePath, patterns: Iterable[TreePath]) -> TreePath | None:
    """Return the pattern that matches a path; of several, the one with the fewest stars."""
    matching = [pattern for pattern in patterns if len(pattern) == len(path) and all(map(_matches, pattern, path))]
    return min(matching, key=lambda pattern: pattern.count("*"), default=None)


def _matches(step: str, name: str) -> bool:
    return step in {"*", name}
