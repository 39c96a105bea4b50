"""Explains why an item is in or out of a compiled context, and searches the smallest counterfactuals.

A counterfactual is a set of overrides that flips the item. Every set is tried by compiling, small sets first: so a
counterfactual is verified, and no smaller set flips the item. If too many sets would have to be tried, the search is
incomplete, and the result says so.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import ClassVar, assert_never

from contextplane.audit.counterfactuals import candidate_overrides
from contextplane.audit.reasons import find_reasons, is_fixed
from contextplane.authoring.source_file import NamedFile
from contextplane.compiler.case import read_case
from contextplane.compiler.overrides import Override, apply_overrides
from contextplane.compiler.report import WITHOUT_TEXT, ContextItem, ItemKind
from contextplane.compiler.source import PackSource, compile_case, list_all_items
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.suggestion import did_you_mean
from contextplane.model.value import Value

__all__ = ["Explanation", "ItemAmbiguous", "ItemUnknown", "explain"]

_MAX_OVERRIDES = 3
_MAX_TRIED = 3_000
_MIN_TRIED = 10
_LARGE = 50
"""With more pieces of evidence than this, fewer sets are tried: each takes longer."""

_ALTERNATIVES = 3
_TRIED_FOR_ANOTHER = 300
"""After the first counterfactual, so many more sets are tried for another."""


class ItemUnknown(ContextPlaneError):
    """Nothing of this name was decided on."""

    code: ClassVar[str] = "why_item_unknown"
    family: ClassVar[Family] = "not_found"


class ItemAmbiguous(ContextPlaneError):
    """A name that several kinds of things have."""

    code: ClassVar[str] = "why_item_ambiguous"
    family: ClassVar[Family] = "usage"


class Explanation(Value, frozen=True):
    """An item, the reasons for it, and its smallest counterfactuals.

    `outcomes`: the item after each counterfactual, None if it does not exist then. `tried`: how many sets were
    compiled. `complete`: all candidates were tried, or a smallest counterfactual was found.
    """

    item: ContextItem
    reasons: tuple[str, ...]
    counterfactuals: tuple[tuple[Override, ...], ...]
    outcomes: tuple[ContextItem | None, ...]
    tried: int
    complete: bool


def explain(source: PackSource, file: NamedFile, name: str, overrides: Sequence[Override] = ()) -> Explanation:
    """Explain an item of a case, compiled with these overrides."""
    compiled = compile_case(source, file, overrides)
    item = _find_item(list_all_items(source, compiled.context), name)
    case = read_case(compiled.value)
    candidates: Sequence[Override] = ()
    if not is_fixed(item):
        candidates = candidate_overrides(source.view(case.environment), compiled.value, compiled.context, item)
    search = _CounterfactualSearch(source, item, candidates)
    smallest = search.smallest(compiled.value)
    counterfactuals = tuple(changes for changes in smallest if search.is_flipped(compiled.value, changes))
    return Explanation(
        item=item,
        reasons=find_reasons(source, case, compiled.context, item),
        counterfactuals=counterfactuals,
        outcomes=tuple(search.outcome(compiled.value, changes) for changes in counterfactuals),
        tried=search.tried,
        complete=search.complete and bool(counterfactuals or not smallest),
    )


def _find_item(items: Sequence[ContextItem], name: str) -> ContextItem:
    """Find an item by name: its id, the last part of a rule's id, or `kind/` and either of them."""
    kind, _, short_name = name.partition("/")
    exact = [item for item in items if item.id == name or (item.kind == kind and short_name in _names(item))]
    matches = exact or [item for item in items if name in _names(item)]
    if not matches:
        known = {item.id for item in items}
        raise ItemUnknown(
            "nothing of this name was decided on", at=name[:120], hint=did_you_mean(name, known, "name one")
        )
    if len(matches) > 1:
        ways = ", ".join(f"{item.kind}/{item.id}" for item in matches[:_ALTERNATIVES])
        raise ItemAmbiguous("several things have this name", at=name[:120], hint=f"say which: {ways}")
    return matches[0]


def _names(item: ContextItem) -> tuple[str, ...]:
    return (item.id, item.id.partition("#")[2]) if item.kind == "rule" else (item.id,)


class _CounterfactualSearch:
    """The search for sets of overrides that flip an item."""

    def __init__(self, source: PackSource, item: ContextItem, candidates: Sequence[Override]) -> None:
        self._source = source
        self._item = item
        self._candidates = candidates
        self.tried = 0
        self.complete = True

    def smallest(self, value: Json) -> tuple[tuple[Override, ...], ...]:
        """The sets of the smallest size that flip the item, each at other places than the others."""
        value = self._without_evidence(value)
        most = max(_MIN_TRIED, _MAX_TRIED * _LARGE // max(_LARGE, _evidence_count(value)))
        for size in range(1, _MAX_OVERRIDES + 1):
            flipping: dict[frozenset[str], tuple[Override, ...]] = {}
            for changes in _override_sets(self._candidates, size):
                places = frozenset(override.at for override in changes)
                if places in flipping:
                    continue  # another value at the same places flips it already
                if self.tried >= most:
                    self.complete = bool(flipping)
                    return tuple(flipping.values())
                self.tried += 1
                if self.is_flipped(value, changes):
                    flipping[places] = changes
                    if len(flipping) == _ALTERNATIVES:
                        return tuple(flipping.values())
                    most = min(most, self.tried + _TRIED_FOR_ANOTHER)
            if flipping:
                return tuple(flipping.values())
        return ()

    def is_flipped(self, value: Json, changes: Sequence[Override]) -> bool:
        """Whether the changes flip the item. If the case does not compile with them, they do not."""
        try:
            after = self.outcome(value, changes)
        except ContextPlaneError:
            return False
        if self._item.kind == "rule" and after is not None and after.inside and self._item.inside:
            # A rule with an `else` always takes effect: it is flipped if it says something else.
            return not {after.words, self._item.words} & WITHOUT_TEXT and after.words != self._item.words
        return (after is not None and after.inside) is not self._item.inside

    def outcome(self, value: Json, changes: Sequence[Override]) -> ContextItem | None:
        """The item with these changes; None if it does not exist."""
        compiled = self._source.compile(read_case(apply_overrides(value, changes, None)))
        key = (self._item.kind, self._item.id)
        return next((item for item in list_all_items(self._source, compiled) if (item.kind, item.id) == key), None)

    def _without_evidence(self, value: Json) -> Json:
        """The case without evidence and memories, if they cannot matter for the item.

        Counterfactuals are verified with the whole case afterwards.
        """
        if not _is_before_evidence(self._item.kind) or not isinstance(value, dict):
            return value
        return {key: member for key, member in value.items() if key not in {"evidence", "memories"}}


def _is_before_evidence(kind: ItemKind) -> bool:
    """Whether items of this kind are decided before evidence and memories are looked at.

    No budget drops a tool before all evidence and memories.
    """
    match kind:
        case "decision" | "rule" | "guardrail" | "gate" | "tool" | "redaction" | "setting":
            return True
        case "evidence" | "memory" | "requirement" | "block" | "bucket" | "task":
            return False
        case unreachable:
            assert_never(unreachable)


def _evidence_count(value: Json) -> int:
    parts = [value.get(name) for name in ("evidence", "memories")] if isinstance(value, dict) else []
    return sum(len(part) for part in parts if isinstance(part, list))


def _override_sets(candidates: Sequence[Override], size: int) -> Iterator[tuple[Override, ...]]:
    """Yield the sets of `size` overrides at different places."""
    return (overrides for overrides in combinations(candidates, size) if len({each.at for each in overrides}) == size)
