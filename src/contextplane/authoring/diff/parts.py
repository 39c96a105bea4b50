"""Comparing parts that come or go as a whole: rules, adapters, permissions, decisions.

Comparing the constraints on one argument of a call, in words that name the argument.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.diff.change import Effect
from contextplane.authoring.diff.comparers import Comparer, Sides, Told, flag, items, shown
from contextplane.authoring.diff.tree import (
    Tree,
    asked_for_reading,
    asks_no_less,
    decided,
    denies,
    intents_of,
    part_at,
    restricts,
    rules_in,
    settled,
)

__all__ = [
    "adapter_added",
    "adapter_removed",
    "argument_choices",
    "argument_greatest",
    "argument_least",
    "argument_lifted",
    "argument_pattern",
    "argument_required",
    "bundle_added",
    "capabilities",
    "gate_named",
    "part_added",
    "part_removed",
    "permission_added",
    "permission_allow",
    "permission_removed",
    "rule_added",
    "rule_removed",
    "unless_denied",
]

_ADAPTERS = ("tooling_layer", "adapter_registry")


class part_added:  # noqa: N801  it reads as the entry of a table
    """A new part of which the effect is always the same."""

    def __init__(self, what: str, effect: Effect) -> None:
        self._what, self._effect = what, effect

    def __call__(self, sides: Sides) -> Told:
        return Told(effect=self._effect, words=f"new {self._what} {sides.name}")


class part_removed(part_added):  # noqa: N801
    """A part that is gone, of which the effect is always the same."""

    def __call__(self, sides: Sides) -> Told:
        return Told(effect=self._effect, words=f"{self._what} {sides.name} is gone")


def rule_added(sides: Sides) -> Told:
    """A rule that only restricts what was decided before narrows. Anything else can allow what nothing allowed."""
    narrows = _only_restricts(sides.new, sides.before)
    return Told(effect="narrows" if narrows else "widens", words=f"new rule {sides.name}{_for(intents_of(sides.new))}")


def rule_removed(sides: Sides) -> Told:
    widens = restricts(part_at(sides.old, ("then",))) or restricts(part_at(sides.old, ("else",)))
    return Told(
        effect="widens" if widens else "changes", words=f"rule {sides.name} is gone{_for(intents_of(sides.old))}"
    )


def bundle_added(sides: Sides) -> Told:
    rules = part_at(sides.new, ("policy_dsl", "rules"))
    narrows = isinstance(rules, Mapping) and all(_only_restricts(rule, sides.before) for rule in rules.values())
    return Told(effect="narrows" if narrows else "widens", words=f"new policy bundle {sides.name}")


def gate_named(sides: Sides) -> Iterator[Told]:
    """The approval gate that a permission or a rule asks for: one more is stricter, unless an approval lifts bounds."""
    words = f"its approval gate was {sides.old or 'none'}, now {sides.new or 'none'}"
    if sides.old is None:
        yield Told(effect="changes" if _liftable(sides.before) else "narrows", words=words)
    else:
        yield Told(effect="widens" if sides.new is None else "changes", words=words)


def unless_denied(comparer: Comparer) -> Comparer:
    """What a branch asks for. Where it denies from now on, it asks for nothing, and that is stricter than all of it."""

    def compare(sides: Sides) -> Iterator[Told]:
        was, now = (part_at(tree, sides.way[:-1]) for tree in (sides.before, sides.after))
        is_gate = sides.name == "requires_approval_gate"
        for_reading = is_gate and sides.old is not None and asked_for_reading(sides.old, sides.before)
        if for_reading or denies(was) or not denies(now):
            yield from comparer(sides)

    return compare


def adapter_added(sides: Sides) -> Told:
    effect: Effect = "reads_more" if part_at(sides.new, ("approval_mode",)) == "read_only" else "changes"
    return Told(effect=effect, words=f"new adapter {sides.name}")


def adapter_removed(sides: Sides) -> Told:
    return Told(effect="removes", words=f"adapter {sides.name} is gone")


def capabilities(sides: Sides) -> Iterator[Told]:
    """What an adapter declares. A permission exposes it; declaring alone gives nothing to a run."""
    adapter = sides.way[-2]
    old, new = (side if isinstance(side, list | tuple) else [] for side in (sides.old, sides.new))
    effect: Effect = "reads_more" if _only_reads(sides, adapter) else "changes"
    for one in new:
        if one not in old:
            yield Told(effect=effect, words=f"declares {one} as well")
    for one in old:
        if one not in new:
            yield Told(effect="removes", words=f"no longer declares {one}")


def permission_added(sides: Sides) -> Told:
    if part_at(sides.new, ("allow",)) is not True:
        return Told(effect="metadata", words=f"{sides.name} is listed as not allowed")
    return _exposed(sides)


def permission_removed(sides: Sides) -> Told:
    if part_at(sides.old, ("allow",)) is not True:
        return Told(effect="metadata", words=f"{sides.name}, which was not allowed, is no longer listed")
    return Told(effect="removes", words=f"capability {sides.name} is gone{_for(_intents(sides.before))}")


def permission_allow(sides: Sides) -> Iterator[Told]:
    whole = replace(sides, old=None, new=None, way=sides.way[:-1])
    if sides.new is True:
        yield _exposed(whole)
    else:
        yield Told(effect="removes", words=f"capability {whole.name} is no longer allowed", named=True)


def _exposed(sides: Sides) -> Told:
    """A capability that runs can use from now on."""
    reads = _only_reads(sides, sides.name.rpartition(".")[0])
    kind = "read" if reads else "write"
    words = f"new {kind} capability {sides.name}{_for(_intents(sides.after))}"
    return Told(effect="reads_more" if reads else "widens", words=words, named=True)


def _only_reads(sides: Sides, adapter: str) -> bool:
    """Whether an adapter only reads, now and, if it was there, before."""
    modes = [part_at(tree, (*_ADAPTERS, adapter, "approval_mode")) for tree in (sides.before, sides.after)]
    return modes in (["read_only", "read_only"], [None, "read_only"])


def _only_restricts(rule: Tree, before: Tree) -> bool:
    """Whether a new rule can only take away: it allows nothing that was not decided without it, and lifts no bound."""
    branches = [part_at(rule, (name,)) for name in ("then", "else")]
    intents = intents_of(rule)
    allows = any(part_at(branch, ("allow",)) is True for branch in branches)
    known = settled(before) if allows else decided(before)
    restricting = bool(intents) and intents <= known and any(restricts(branch) for branch in branches)
    return restricting and all(map(asks_no_less, branches)) and not _lets_lift(rule, before)


def _lets_lift(rule: Tree, before: Tree) -> bool:
    """Whether a new rule lets somebody approve where there are bounds that an approval lifts."""
    gates = [part_at(rule, (branch, "requires_approval_gate")) for branch in ("then", "else")]
    return any(gates) and _liftable(before)


def _liftable(tree: Tree) -> bool:
    """Whether some bound on an argument is one that an approval lifts."""
    permissions = part_at(tree, ("tooling_layer", "permissions"))
    parts = [*(permissions.values() if isinstance(permissions, Mapping) else ())]
    parts += [part_at(rule, (branch,)) for _, rule in rules_in(tree) for branch in ("then", "else")]
    bounds = [part_at(part, ("arg_constraints",)) for part in parts]
    every = [one for group in bounds if isinstance(group, Mapping) for one in group.values()]
    return any(part_at(one, ("unless_approved",)) is True for one in every)


def _intents(tree: Tree) -> frozenset[str]:
    """Every intent that some rule applies to."""
    return frozenset[str]().union(*(intents_of(rule) for _, rule in rules_in(tree)))


def _for(intents: frozenset[str]) -> str:
    return f" for {', '.join(sorted(intents))}" if intents else ""


_OPPOSITE: dict[Effect, Effect] = {"narrows": "widens", "widens": "narrows"}


def argument_least(sides: Sides) -> Iterator[Told]:
    """The least value that an argument may have: the higher, the stricter."""
    yield _bound(sides, looser="may now be as low as", stricter="must now be at least", higher="narrows")


def argument_greatest(sides: Sides) -> Iterator[Told]:
    """The greatest value that an argument may have: the lower, the stricter."""
    yield _bound(sides, looser="may now be up to", stricter="must now be at most", higher="widens")


def _bound(sides: Sides, *, looser: str, stricter: str, higher: Effect) -> Told:
    """A bound that may be absent: one that comes narrows, one that goes widens."""
    old, new, name = sides.old, sides.new, _argument(sides)
    if new is None:
        return Told(effect="widens", words=f"{name} has lost its bound of {shown(old)}")
    if old is None:
        return Told(effect="narrows", words=f"{name} {stricter} {shown(new)} (had no such bound)")
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return Told(effect="changes", words=f"{name} {stricter} {shown(new)} (was {shown(old)})")
    effect: Effect = higher if new > old else _OPPOSITE[higher]
    return Told(
        effect=effect, words=f"{name} {looser if effect == 'widens' else stricter} {shown(new)} (was {shown(old)})"
    )


def argument_choices(sides: Sides) -> Iterator[Told]:
    """A closed set of values that may be absent: the fewer, the stricter."""
    name = _argument(sides)
    if sides.new is None:
        yield Told(effect="widens", words=f"{name} may now be anything (was one of {shown(sides.old)})")
    elif sides.old is None:
        yield Told(effect="narrows", words=f"{name} must now be one of {shown(sides.new)} (was anything)")
    else:
        yield from items(f"value of {name}", more="widens", less="narrows")(sides)


def argument_required(sides: Sides) -> Iterator[Told]:
    words = f"{_argument(sides)} is {'now' if sides.new is True else 'no longer'} required"
    for difference in flag("", true="narrows", false="widens", absent=False)(sides):
        yield Told(effect=difference.effect, words=words)


def argument_pattern(sides: Sides) -> Iterator[Told]:
    """A pattern that comes narrows, one that goes widens; of another one it cannot be told."""
    name = _argument(sides)
    if sides.new is None:
        yield Told(effect="widens", words=f"{name} need no longer match {shown(sides.old)}")
    elif sides.old is None:
        yield Told(effect="narrows", words=f"{name} must now match {shown(sides.new)}")
    else:
        yield Told(effect="changes", words=f"{name} must now match {shown(sides.new)} (was {shown(sides.old)})")


def argument_lifted(sides: Sides) -> Iterator[Told]:
    """A flag that weakens the constraint it is part of, and nothing where that comes or goes as a whole."""
    if None in [part_at(tree, sides.way[:-1]) for tree in (sides.before, sides.after)]:
        return
    lifts = "an approval now lifts" if sides.new is True else "no approval lifts any more"
    for difference in flag("", true="widens", false="narrows", absent=False)(sides):
        yield Told(effect=difference.effect, words=f"{lifts} what bounds the {_argument(sides)}")


def _argument(sides: Sides) -> str:
    return f"argument {sides.way[-2]}"
