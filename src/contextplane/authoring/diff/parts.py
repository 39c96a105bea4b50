"""Comparers of rules, gates, adapters, permissions, and the constraints on an argument.

A function that ends in `_added` or `_removed` takes a part that is on one side only, and returns one difference.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.diff.comparers import (
    Comparer,
    Difference,
    Pair,
    always,
    flag,
    format_transition,
    format_value,
    items,
    max_mode,
    number,
)
from contextplane.authoring.diff.tree import (
    Effect,
    Tree,
    denies,
    gates_of,
    gates_reading,
    intents_of,
    is_rank_as_high,
    may_only_read,
    mode_in,
    opens_intents,
    part_at,
    produced_evidence,
    required_evidence,
    required_rank,
    restricts,
    rules_in,
    settled_intents,
)

__all__ = [
    "adapter_added",
    "adapter_removed",
    "argument_added",
    "argument_enum",
    "argument_equals",
    "argument_max",
    "argument_min",
    "argument_pattern",
    "argument_removed",
    "argument_required",
    "argument_unless_approved",
    "arguments_added",
    "arguments_removed",
    "bundle_added",
    "call_limit",
    "call_limit_added",
    "call_limit_removed",
    "capabilities",
    "capability_description",
    "capability_mode",
    "fact_type",
    "has_liftable_bound",
    "part_added",
    "part_removed",
    "permission_added",
    "permission_allow",
    "permission_intents",
    "permission_removed",
    "required_gate",
    "rule_added",
    "rule_removed",
    "target_added",
    "unless_argument",
    "unless_denied",
]

_ADAPTERS = ("tooling_layer", "adapter_registry")


class part_added:  # noqa: N801  it reads as the entry of a table
    """Returns the difference of a new part whose effect is always the same."""

    def __init__(self, what: str, effect: Effect) -> None:
        self._what, self._effect = what, effect

    def __call__(self, pair: Pair) -> Difference:
        return Difference(effect=self._effect, words=f"new {self._what} {pair.name}")


class part_removed(part_added):  # noqa: N801
    """Returns the difference of a removed part whose effect is always the same."""

    def __call__(self, pair: Pair) -> Difference:
        return Difference(effect=self._effect, words=f"{self._what} {pair.name} is gone")


def rule_added(pair: Pair) -> Difference:
    """Return the difference of a new rule: it narrows if it only restricts decided intents, else widens."""
    narrows = _only_restricts(pair.new, pair.before)
    return Difference(
        effect="narrows" if narrows else "widens", words=f"new rule {pair.name}{_intent_suffix(intents_of(pair.new))}"
    )


def rule_removed(pair: Pair) -> Difference:
    widens = restricts(part_at(pair.old, ("then",))) or restricts(part_at(pair.old, ("else",)))
    return Difference(
        effect="widens" if widens else "changes",
        words=f"rule {pair.name} is gone{_intent_suffix(intents_of(pair.old))}",
    )


def target_added(pair: Pair) -> Difference:
    """Return the difference of a new evaluator target. The pack knows its intent from now on."""
    opens = opens_intents(frozenset({pair.name}), pair.before)
    return Difference(effect="widens" if opens else "narrows", words=f"new evaluator target for {pair.name}")


def bundle_added(pair: Pair) -> Difference:
    rules = part_at(pair.new, ("policy_dsl", "rules"))
    narrows = isinstance(rules, Mapping) and all(_only_restricts(rule, pair.before) for rule in rules.values())
    return Difference(effect="narrows" if narrows else "widens", words=f"new policy bundle {pair.name}")


def required_gate(pair: Pair) -> Iterator[Difference]:
    """Compare the approval gates of a permission or rule. The first narrows, unless approval lifts bounds."""
    old, new = (gates_of({pair.name: side}) for side in (pair.old, pair.new))
    was, now = (", ".join(sorted(gates)) or "none" for gates in (old, new))
    words = f"its approval gate was {was}, now {now}"
    if not old:
        yield Difference(effect="changes" if has_liftable_bound(pair.before) else "narrows", words=words)
    elif old != new:
        # A gate that a rule asks for becomes active for the tools that name it, and then lifts their bounds.
        narrows = old < new and not has_liftable_bound(pair.before, reading=True)
        yield Difference(effect="narrows" if narrows else "widens" if new < old else "changes", words=words)


def unless_denied(comparer: Comparer) -> Comparer:
    """Skip the comparison of a requirement in a branch that denies now: a denial is stricter than any."""

    def compare(pair: Pair) -> Iterator[Difference]:
        was, now = (part_at(tree, pair.path[:-1]) for tree in (pair.before, pair.after))
        is_gate = pair.name == "requires_approval_gate"
        for_reading = is_gate and gates_reading(gates_of(was), pair.before)
        if for_reading or denies(was) or not denies(now):
            yield from comparer(pair)

    return compare


def fact_type(pair: Pair) -> Iterator[Difference]:
    """Compare the type of a declared fact: every integer is a number."""
    effect: Effect = "changes"
    if {pair.old, pair.new} == {"integer", "number"}:
        effect = "narrows" if pair.new == "integer" else "widens"
    yield Difference(effect=effect, words=f"its type was {pair.old}, now {pair.new}")


def adapter_added(pair: Pair) -> Difference:
    effect: Effect = "reads_more" if part_at(pair.new, ("approval_mode",)) == "read_only" else "changes"
    return Difference(effect=effect, words=f"new adapter {pair.name}")


def adapter_removed(pair: Pair) -> Difference:
    return Difference(effect="removes", words=f"adapter {pair.name} is gone")


def capabilities(pair: Pair) -> Iterator[Difference]:
    """Compare the capabilities of an adapter. Declaring one gives nothing to a run; a permission does."""
    adapter = pair.path[-2]
    old, new = (side if isinstance(side, list | tuple) else [] for side in (pair.old, pair.new))
    for capability in new:
        if capability not in old:
            effect: Effect = "reads_more" if _only_reads(pair, adapter, str(capability)) else "changes"
            yield Difference(effect=effect, words=f"declares {capability} as well")
    for capability in old:
        if capability not in new:
            yield Difference(effect="removes", words=f"no longer declares {capability}")


def capability_mode(pair: Pair) -> Iterator[Difference]:
    """Compare the approval mode of a capability; its own, else its adapter's. A new one had none."""
    _, _, adapter, _, capability, _ = pair.path
    if _declares(pair.before, adapter, capability):
        old, new = (mode_in(tree, adapter, capability) for tree in (pair.before, pair.after))
        yield from max_mode(f"what {capability} can do at most")(replace(pair, old=old, new=new))


def capability_description(pair: Pair) -> Iterator[Difference]:
    """Compare what a model is told that a capability does."""
    yield from always("wording", f"the description of {pair.path[-2]}")(pair)


def permission_added(pair: Pair) -> Difference:
    if part_at(pair.new, ("allow",)) is not True:
        return Difference(effect="metadata", words=f"{pair.name} is listed as not allowed")
    return _exposed_capability(pair)


def permission_removed(pair: Pair) -> Difference:
    if part_at(pair.old, ("allow",)) is not True:
        return Difference(effect="metadata", words=f"{pair.name}, which was not allowed, is no longer listed")
    return _withdrawn_capability(pair, f"is gone{_intent_suffix(_intents(pair.before))}")


def permission_allow(pair: Pair) -> Iterator[Difference]:
    whole = replace(pair, old=None, new=None, path=pair.path[:-1])
    if pair.new is True:
        yield _exposed_capability(whole)
    else:
        yield _withdrawn_capability(whole, "is no longer allowed")


def _withdrawn_capability(pair: Pair, how: str) -> Difference:
    """Return the difference of a capability that runs can no longer use.

    A request may attest required evidence that nothing in the pack produces. So withdrawing the only tool that produces
    it is no narrowing.
    """
    words = f"capability {pair.name} {how}"
    lost = sorted((required_evidence(pair.after) & produced_evidence(pair.before)) - produced_evidence(pair.after))
    if lost:
        words += f", and nothing else produces {', '.join(lost)}: a request could attest it"
    return Difference(effect="changes" if lost else "removes", words=words, named=True)


def permission_intents(pair: Pair) -> Iterator[Difference]:
    """Compare the intents of a permission; without any, it is for all.

    A permission that denies is a restriction, so fewer intents widen it.
    """
    old, new = (frozenset(side) if isinstance(side, Mapping) else frozenset[str]() for side in (pair.old, pair.new))
    allows = all(part_at(tree, (*pair.path[:-1], "allow")) is True for tree in (pair.before, pair.after))
    gained = old and (not new or new - old)
    lost = new and (not old or old - new)
    if gained and lost:
        effect: Effect = "changes"
    else:
        effect = "widens" if bool(gained) is allows else "narrows"
    if old != new:
        yield Difference(effect=effect, words=f"the intents {_format_intents(old)} -> {_format_intents(new)}")


def kept_on_deny(pair: Pair) -> Iterator[Difference]:
    """Compare what stays when the intent of a decision is denied: nothing, unless it says otherwise."""
    old, new = (side or "none" for side in (pair.old, pair.new))
    if old != new:
        effect: Effect = "widens" if new == "read" else "narrows"
        yield Difference(effect=effect, words=f"what stays when it is denied {old} -> {new}")


def _format_intents(intents: frozenset[str]) -> str:
    return ", ".join(sorted(intents)) or "all"


def _exposed_capability(pair: Pair) -> Difference:
    """Return the difference of a capability that runs can use from now on."""
    adapter, _, capability = pair.name.rpartition(".")
    reads = _only_reads(pair, adapter, capability)
    kind = "read" if reads else "write"
    words = f"new {kind} capability {pair.name}{_intent_suffix(_intents(pair.after))}"
    return Difference(effect="reads_more" if reads else "widens", words=words, named=True)


def _only_reads(pair: Pair, adapter: str, capability: str) -> bool:
    """Whether a capability only reads, now and, if it was declared, before."""
    trees = [pair.before] * _declares(pair.before, adapter, capability) + [pair.after]
    return all(mode_in(tree, adapter, capability) == "read_only" for tree in trees)


def _declares(tree: Tree, adapter: str, capability: str) -> bool:
    declared = part_at(tree, (*_ADAPTERS, adapter, "capabilities"))
    return isinstance(declared, list | tuple) and capability in declared


def _only_restricts(rule: Tree, before: Tree) -> bool:
    """Whether a new rule only restricts: it allows nothing that was undecided before, and lifts no bound."""
    branches = [part_at(rule, (name,)) for name in ("then", "else")]
    intents = intents_of(rule)
    allows = any(part_at(branch, ("allow",)) is True for branch in branches)
    settled = not allows or (bool(intents) and intents <= settled_intents(before))
    restricting = settled and any(restricts(branch) for branch in branches)
    lowers_no_mode = all(is_rank_as_high(required_rank(branch, rule, before), None) for branch in branches)
    if opens_intents(intents, before):
        return False
    return restricting and lowers_no_mode and not _enables_approval(rule, before) and not _adds_decision(rule, before)


def _adds_decision(rule: Tree, before: Tree) -> bool:
    """Whether a new rule binds an intent to a decision that it did not lead to: it may reach more tools."""
    binding, intents = part_at(rule, ("decision_binding",)), intents_of(rule)
    bound = [intents_of(other) for _, other in rules_in(before) if part_at(other, ("decision_binding",)) == binding]
    return binding is not None and not any(not others or (intents and intents <= others) for others in bound)


def _enables_approval(rule: Tree, before: Tree) -> bool:
    """Whether a new rule requires an approval in a pack with bounds that an approval lifts."""
    gates = [part_at(rule, (branch, "requires_approval_gate")) for branch in ("then", "else")]
    return any(gates) and has_liftable_bound(before)


def has_liftable_bound(tree: Tree, *, reading: bool = False) -> bool:
    """Whether an approval lifts some bound on an argument; `reading`: of a tool that may only read.

    The bounds of a rule hold for every tool.
    """
    permissions = part_at(tree, ("tooling_layer", "permissions"))
    named = permissions.items() if isinstance(permissions, Mapping) else ()
    parts = [permission for tool, permission in named if not reading or may_only_read(tool, tree)]
    parts += [part_at(rule, (branch,)) for _, rule in rules_in(tree) for branch in ("then", "else")]
    return any(_is_liftable(part_at(part, ("arg_constraints",))) for part in parts)


def _is_liftable(bounds: Tree) -> bool:
    """Whether an approval lifts one of these bounds, at any depth: they may be scoped to capabilities."""
    if not isinstance(bounds, Mapping):
        return False
    return bounds.get("unless_approved") is True or any(map(_is_liftable, bounds.values()))


def _intents(tree: Tree) -> frozenset[str]:
    """Return every intent that some rule applies to."""
    return frozenset[str]().union(*(intents_of(rule) for _, rule in rules_in(tree)))


def _intent_suffix(intents: frozenset[str]) -> str:
    return f" for {', '.join(sorted(intents))}" if intents else ""


# --- the arguments that a capability lists ---


def arguments_added(pair: Pair) -> Difference:
    """Return the difference of a capability that lists its arguments from now on: calls have no others."""
    listed = pair.new.items() if isinstance(pair.new, Mapping) else ()
    words = ", ".join(_listed_argument(name, argument) for name, argument in listed)
    return Difference(effect="changes", words=f"{pair.path[-2]} now lists its arguments: {words or 'none'}")


def arguments_removed(pair: Pair) -> Difference:
    return Difference(effect="changes", words=f"{pair.path[-2]} no longer lists its arguments")


def argument_added(pair: Pair) -> Difference:
    words = f"new argument {_listed_argument(pair.name, pair.new)} of {pair.path[-3]}"
    return Difference(effect="changes", words=words)


def argument_removed(pair: Pair) -> Difference:
    return Difference(effect="changes", words=f"argument {pair.name} of {pair.path[-3]} is gone")


def _listed_argument(name: str, argument: Tree) -> str:
    """Describe an argument: `order_id (string, required)`."""
    required = ", required" if part_at(argument, ("required",)) is True else ""
    return f"{name} ({format_value(part_at(argument, ('type',)))}{required})"


# --- constraints on an argument ---

_OPPOSITE: dict[Effect, Effect] = {"narrows": "widens", "widens": "narrows"}


def argument_min(pair: Pair) -> Iterator[Difference]:
    """Compare the least value of an argument: the higher, the stricter."""
    yield _bound_difference(pair, looser="may now be as low as", stricter="must now be at least", higher="narrows")


def argument_max(pair: Pair) -> Iterator[Difference]:
    """Compare the greatest value of an argument: the lower, the stricter."""
    yield _bound_difference(pair, looser="may now be up to", stricter="must now be at most", higher="widens")


def _bound_difference(pair: Pair, *, looser: str, stricter: str, higher: Effect) -> Difference:
    """Compare a bound that may be absent: adding one narrows, removing one widens."""
    old, new, name = pair.old, pair.new, _argument(pair)
    if new is None:
        return Difference(effect="widens", words=f"{name} has lost its bound of {format_value(old)}")
    if old is None:
        return Difference(effect="narrows", words=f"{name} {stricter} {format_value(new)} (had no such bound)")
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return Difference(effect="changes", words=f"{name} {stricter} {format_value(new)} (was {format_value(old)})")
    effect: Effect = higher if new > old else _OPPOSITE[higher]
    return Difference(
        effect=effect,
        words=f"{name} {looser if effect == 'widens' else stricter} {format_value(new)} (was {format_value(old)})",
    )


def argument_enum(pair: Pair) -> Iterator[Difference]:
    """Compare a closed set of values that may be absent: the fewer, the stricter."""
    name = _argument(pair)
    if pair.new is None:
        yield Difference(effect="widens", words=f"{name} may now be anything (was one of {format_value(pair.old)})")
    elif pair.old is None:
        yield Difference(effect="narrows", words=f"{name} must now be one of {format_value(pair.new)} (was anything)")
    else:
        yield from items(f"value of {name}", more="widens", less="narrows")(pair)


def argument_equals(pair: Pair) -> Iterator[Difference]:
    """Compare the one value of an argument: adding one narrows, removing one widens, another one changes."""
    name = _argument(pair)
    if pair.new is None:
        yield Difference(effect="widens", words=f"{name} need no longer equal {format_value(pair.old)}")
    else:
        words = f"{name} must now equal {format_value(pair.new)}"
        was = "" if pair.old is None else f" (was {format_value(pair.old)})"
        yield Difference(effect="changes" if was else "narrows", words=words + was)


def argument_required(pair: Pair) -> Iterator[Difference]:
    words = f"{_argument(pair)} is {'now' if pair.new is True else 'no longer'} required"
    for difference in flag("", true="narrows", false="widens", absent=False)(pair):
        yield Difference(effect=difference.effect, words=words)


def argument_pattern(pair: Pair) -> Iterator[Difference]:
    """Compare patterns: adding one narrows, removing one widens, another one has an unknown effect."""
    name = _argument(pair)
    if pair.new is None:
        yield Difference(effect="widens", words=f"{name} need no longer match {format_value(pair.old)}")
    elif pair.old is None:
        yield Difference(effect="narrows", words=f"{name} must now match {format_value(pair.new)}")
    else:
        yield Difference(
            effect="changes", words=f"{name} must now match {format_value(pair.new)} (was {format_value(pair.old)})"
        )


def argument_unless_approved(pair: Pair) -> Iterator[Difference]:
    """Compare the flag that lets an approval lift a constraint; skip one that is added or removed whole."""
    if None in [part_at(tree, pair.path[:-1]) for tree in (pair.before, pair.after)]:
        return
    lifts = "an approval now lifts" if pair.new is True else "no approval lifts any more"
    for difference in flag("", true="widens", false="narrows", absent=False)(pair):
        yield Difference(effect=difference.effect, words=f"{lifts} what bounds the {_argument(pair)}")


def call_limit(pair: Pair) -> Iterator[Difference]:
    """Compare the most of a limit of calls: the lower, the stricter."""
    yield from number(f"the most {_limit_words(pair.path[-2])}", higher="widens", lower="narrows")(pair)


def call_limit_added(pair: Pair) -> Difference:
    return Difference(effect="narrows", words=f"new limit {_limit_words(pair.name)}")


def call_limit_removed(pair: Pair) -> Difference:
    return Difference(effect="widens", words=f"the limit {_limit_words(pair.name)} is gone")


def _limit_words(name: str) -> str:
    """Describe what a limit of this id bounds: `of calls per user in 24h`."""
    per, period, argument = name.split("#", maxsplit=1)[0].split(".", maxsplit=2)
    return f"of {argument or 'calls'} per {per}" + (f" in {period}" if period else "")


def unless_argument(comparer: Comparer) -> Comparer:
    """Compare a bound, or as a whole an argument of a capability that has the name of a bound."""

    def compare(pair: Pair) -> Iterator[Difference]:
        if not any(map(_is_constraint, (pair.old, pair.new))):
            yield from comparer(pair)
            return
        words = f"what bounds the argument {pair.name} of {pair.path[-2]} {format_transition(pair)}"
        effect: Effect = "narrows" if pair.old is None else "widens" if pair.new is None else "changes"
        yield Difference(effect=effect, words=words)

    return compare


def _is_constraint(side: Tree) -> bool:
    """Whether something under the name of a bound is a constraint of its own, and not a fact."""
    return isinstance(side, Mapping) and set(side) != {"var"}


def _argument(pair: Pair) -> str:
    *_, above, name, argument, _ = pair.path
    return f"argument {argument} of {name}" if above == "arg_constraints" else f"argument {argument}"
