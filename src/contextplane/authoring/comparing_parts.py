"""Comparing parts that come or go as a whole: rules, adapters, permissions, decisions."""

from collections.abc import Iterator, Mapping

from contextplane.authoring.change import Effect
from contextplane.authoring.comparing import Sides, Told
from contextplane.authoring.comparing_logic import restricts
from contextplane.authoring.keyed import Tree, part_at

__all__ = [
    "adapter_added",
    "adapter_removed",
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
]

_BUNDLES = ("policy_layer", "policy_bundles")
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
    narrows = _only_restricts(sides.new, _decided(sides.before)) and not _lets_lift(sides.new, sides.before)
    return Told(effect="narrows" if narrows else "widens", words=f"new rule {sides.name}{_for(_of(sides.new))}")


def rule_removed(sides: Sides) -> Told:
    widens = restricts(part_at(sides.old, ("then",))) or restricts(part_at(sides.old, ("else",)))
    return Told(effect="widens" if widens else "changes", words=f"rule {sides.name} is gone{_for(_of(sides.old))}")


def bundle_added(sides: Sides) -> Told:
    rules = part_at(sides.new, ("policy_dsl", "rules"))
    known = _decided(sides.before)
    narrows = isinstance(rules, Mapping) and all(
        _only_restricts(rule, known) and not _lets_lift(rule, sides.before) for rule in rules.values()
    )
    return Told(effect="narrows" if narrows else "widens", words=f"new policy bundle {sides.name}")


def gate_named(sides: Sides) -> Iterator[Told]:
    """The approval gate that a permission or a rule asks for: one more is stricter, unless an approval lifts bounds."""
    words = f"the approval gate of {sides.way[-2]} was {sides.old or 'none'}, now {sides.new or 'none'}"
    if sides.old is None:
        yield Told(effect="changes" if _liftable(sides.before) else "narrows", words=words)
    else:
        yield Told(effect="widens" if sides.new is None else "changes", words=words)


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
            yield Told(effect=effect, words=f"{adapter} declares {one}")
    for one in old:
        if one not in new:
            yield Told(effect="removes", words=f"{adapter} no longer declares {one}")


def permission_added(sides: Sides) -> Told:
    if part_at(sides.new, ("allow",)) is not True:
        return Told(effect="metadata", words=f"{sides.name} is listed as not allowed")
    return _exposed(sides)


def permission_removed(sides: Sides) -> Told:
    if part_at(sides.old, ("allow",)) is not True:
        return Told(effect="metadata", words=f"{sides.name}, which was not allowed, is no longer listed")
    return Told(effect="removes", words=f"capability {sides.name} is gone{_for(_intents(sides.before))}")


def permission_allow(sides: Sides) -> Iterator[Told]:
    whole = Sides(old=None, new=None, way=sides.way[:-1], before=sides.before, after=sides.after)
    if sides.new is True:
        yield _exposed(whole)
    else:
        yield Told(effect="removes", words=f"capability {whole.name} is no longer allowed")


def _exposed(sides: Sides) -> Told:
    """A capability that runs can use from now on."""
    reads = _only_reads(sides, sides.name.rpartition(".")[0])
    kind = "read" if reads else "write"
    words = f"new {kind} capability {sides.name}{_for(_intents(sides.after))}"
    return Told(effect="reads_more" if reads else "widens", words=words)


def _only_reads(sides: Sides, adapter: str) -> bool:
    """Whether an adapter only reads, now and, if it was there, before."""
    modes = [part_at(tree, (*_ADAPTERS, adapter, "approval_mode")) for tree in (sides.before, sides.after)]
    return modes in (["read_only", "read_only"], [None, "read_only"])


def _only_restricts(rule: Tree, known: frozenset[str]) -> bool:
    branches = [part_at(rule, (name,)) for name in ("then", "else")]
    intents = _of(rule)
    return bool(intents) and intents <= known and any(restricts(one) for one in branches)


def _lets_lift(rule: Tree, before: Tree) -> bool:
    """Whether a new rule lets somebody approve where there are bounds that an approval lifts."""
    gates = [part_at(rule, (branch, "requires_approval_gate")) for branch in ("then", "else")]
    return any(gates) and _liftable(before)


def _liftable(tree: Tree) -> bool:
    """Whether some bound on an argument is one that an approval lifts."""
    permissions = part_at(tree, ("tooling_layer", "permissions"))
    parts = [*(permissions.values() if isinstance(permissions, Mapping) else ())]
    parts += [part_at(rule, (branch,)) for rule in _rules(tree) for branch in ("then", "else")]
    bounds = [part_at(part, ("arg_constraints",)) for part in parts]
    every = [one for group in bounds if isinstance(group, Mapping) for one in group.values()]
    return any(part_at(one, ("unless_approved",)) is True for one in every)


def _intents(tree: Tree) -> frozenset[str]:
    """Every intent that some rule applies to."""
    return frozenset[str]().union(*map(_of, _rules(tree)))


def _decided(tree: Tree) -> frozenset[str]:
    """Every intent for which a rule applies to each request: where none applies, a run may only read."""
    found: frozenset[str] = frozenset()
    for rule in _rules(tree):
        applies_to = part_at(rule, ("applies_to",))
        if isinstance(applies_to, Mapping) and set(applies_to) == {"intent"}:
            found |= _of(rule)
    return found


def _rules(tree: Tree) -> Iterator[Tree]:
    bundles = part_at(tree, _BUNDLES)
    for bundle in bundles.values() if isinstance(bundles, Mapping) else ():
        rules = part_at(bundle, ("policy_dsl", "rules"))
        yield from rules.values() if isinstance(rules, Mapping) else ()


def _of(rule: Tree) -> frozenset[str]:
    named = part_at(rule, ("applies_to", "intent"))
    listed = named if isinstance(named, list | tuple) else [named]
    return frozenset(one for one in listed if isinstance(one, str))


def _for(intents: frozenset[str]) -> str:
    return f" for {', '.join(sorted(intents))}" if intents else ""
