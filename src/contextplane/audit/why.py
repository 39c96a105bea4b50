"""Why something is in or out of a compiled context, and the fewest changes of the request that would flip it.

Every set of changes is tried by compiling, small sets first: so a set that flips it is verified, and none that is
smaller does. When too many would have to be tried, it is said that it cannot be told.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import ClassVar

from contextplane.audit.counterfactuals import changes_worth_trying
from contextplane.audit.reasons import full_account, never_turned, reasons_of
from contextplane.authoring.source_file import Authored
from contextplane.authoring.suggest import nearest
from contextplane.compiler.case import read_case
from contextplane.compiler.overrides import Knob, turned
from contextplane.compiler.report import UNTOLD, Item
from contextplane.compiler.source import PackSource, compiled_case
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = ["ItemAmbiguous", "ItemUnknown", "Why", "why"]

_MOST_TOGETHER = 3
_MOST_TRIED = 3_000
_LEAST_TRIED = 10
_LARGE = 50
"""With more evidence than this, fewer sets are tried: each takes longer."""

_BEFORE_EVIDENCE = frozenset({"decision", "rule", "guardrail", "gate", "tool", "redaction", "setting"})
"""What is decided before evidence and memories are looked at. No budget takes a tool away before all of these."""

_ALTERNATIVES = 3
_TRIED_FOR_ANOTHER = 300
"""When there is one that flips it, so many more are tried for another."""


class ItemUnknown(ContextPlaneError):
    """Nothing of this name was decided on."""

    code: ClassVar[str] = "why_item_unknown"
    family: ClassVar[Family] = "not_found"


class ItemAmbiguous(ContextPlaneError):
    """A name that several kinds of things have."""

    code: ClassVar[str] = "why_item_ambiguous"
    family: ClassVar[Family] = "usage"


class Why(Value, frozen=True):
    """What it is, what had a say in it, and sets of changes that flip it, each as small as any.

    `becomes`: what is then said of it, for each of them. `tried` sets were compiled. `complete`: all that are worth
    trying were, or a smallest one was found.
    """

    item: Item
    reasons: tuple[str, ...]
    flips: tuple[tuple[Knob, ...], ...]
    becomes: tuple[Item | None, ...]
    tried: int
    complete: bool


def why(source: PackSource, file: Authored, name: str, knobs: Sequence[Knob] = ()) -> Why:
    """Ask of one item of a case, as it is with the knobs turned."""
    found = compiled_case(source, file, knobs)
    item = _named(full_account(source, found.context), name)
    case = read_case(found.value)
    intents = source.view(case.environment).known_intents
    changes: Sequence[Knob] = ()
    if not never_turned(item):
        changes = changes_worth_trying(source.pack, intents, found.value, found.context, item)
    search = _Search(source, item, changes)
    smallest = search.smallest(found.value)
    flips = tuple(overrides for overrides in smallest if search.flips(found.value, overrides))
    return Why(
        item=item,
        reasons=reasons_of(source, case, found.context, item),
        flips=flips,
        becomes=tuple(search.after(found.value, flip) for flip in flips),
        tried=search.tried,
        complete=search.complete and bool(flips or not smallest),
    )


def _named(items: Sequence[Item], name: str) -> Item:
    """The item of this name: its id, the last part of a rule's, or either after its kind and `/`."""
    kind, _, rest = name.partition("/")
    exact = [item for item in items if item.id == name or (item.kind == kind and rest in _names(item))]
    found = exact or [item for item in items if name in _names(item)]
    if not found:
        known = {item.id for item in items}
        raise ItemUnknown("nothing of this name was decided on", at=name[:120], hint=nearest(name, known, "name one"))
    if len(found) > 1:
        ways = ", ".join(f"{item.kind}/{item.id}" for item in found[:_ALTERNATIVES])
        raise ItemAmbiguous("several things have this name", at=name[:120], hint=f"say which: {ways}")
    return found[0]


def _names(item: Item) -> tuple[str, ...]:
    return (item.id, item.id.partition("#")[2]) if item.kind == "rule" else (item.id,)


class _Search:
    """The search for sets of changes that turn one item round."""

    def __init__(self, source: PackSource, item: Item, changes: Sequence[Knob]) -> None:
        self._source = source
        self._item = item
        self._changes = changes
        self.tried = 0
        self.complete = True

    def smallest(self, value: Json) -> tuple[tuple[Knob, ...], ...]:
        """Sets that flip it, of the smallest size that does, each at other places than the others."""
        value = self._lightened(value)
        most = max(_LEAST_TRIED, _MOST_TRIED * _LARGE // max(_LARGE, _weight(value)))
        for size in range(1, _MOST_TOGETHER + 1):
            found: dict[frozenset[str], tuple[Knob, ...]] = {}
            for together in _sets(self._changes, size):
                places = frozenset(override.at for override in together)
                if places in found:
                    continue  # another value at the same places flips it already
                if self.tried >= most:
                    self.complete = bool(found)
                    return tuple(found.values())
                self.tried += 1
                if self.flips(value, together):
                    found[places] = together
                    if len(found) == _ALTERNATIVES:
                        return tuple(found.values())
                    most = min(most, self.tried + _TRIED_FOR_ANOTHER)
            if found:
                return tuple(found.values())
        return ()

    def flips(self, value: Json, changes: Sequence[Knob]) -> bool:
        """Whether it is the other way round then. When nothing is compiled any more, it is neither."""
        try:
            after = self.after(value, changes)
        except ContextPlaneError:
            return False
        if self._item.kind == "rule" and after is not None and after.inside and self._item.inside:
            # A rule that says one thing or another always takes effect: it is turned round when it says the other.
            return not {after.words, self._item.words} & UNTOLD and after.words != self._item.words
        return (after is not None and after.inside) is not self._item.inside

    def after(self, value: Json, changes: Sequence[Knob]) -> Item | None:
        """The item as it is with these changes; None when it is not there."""
        compiled = self._source.compile(read_case(turned(value, changes, None)))
        item = self._item
        after = [one for one in full_account(self._source, compiled) if (one.kind, one.id) == (item.kind, item.id)]
        return after[0] if after else None

    def _lightened(self, value: Json) -> Json:
        """The case without what cannot matter for the item. What is found is verified with the whole."""
        if self._item.kind not in _BEFORE_EVIDENCE or not isinstance(value, dict):
            return value
        return {key: one for key, one in value.items() if key not in {"evidence", "memories"}}


def _weight(value: Json) -> int:
    parts = [value.get(name) for name in ("evidence", "memories")] if isinstance(value, dict) else []
    return sum(len(part) for part in parts if isinstance(part, list))


def _sets(changes: Sequence[Knob], size: int) -> Iterator[tuple[Knob, ...]]:
    """Changes at different places, so many together."""
    return (
        combination for combination in combinations(changes, size) if len({knob.at for knob in combination}) == size
    )
