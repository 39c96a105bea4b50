"""A pack as a tree, its lists indexed by the ids of their entries, so that moving a part is no change.

Beside it, what comparers ask of the rules in a tree: the intents of each, the intents that are decided in any case, and
which branch of a rule is the stricter one.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from contextplane.authoring.evidence import POLICY_EVAL, default_evidence_name, snake_case
from contextplane.model.json.canonical import Json
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.value import Value

__all__ = [
    "Change",
    "Effect",
    "Tree",
    "allows",
    "denies",
    "gates_of",
    "gates_reading",
    "id_fields",
    "identity",
    "index_by_id",
    "intents_of",
    "is_rank_as_high",
    "may_only_read",
    "mode_in",
    "opens_intents",
    "part_at",
    "plain",
    "produced_evidence",
    "required_evidence",
    "required_rank",
    "restricts",
    "rules_in",
    "settled_intents",
]

Tree: TypeAlias = "Mapping[str, Tree] | Json"
"""Objects and indexed lists are mappings; anything else is a JSON value."""

_ID_FIELDS: dict[str, tuple[str, ...]] = {
    "policy_bundles": ("bundle_id",),
    "rules": ("rule_id",),
    "approval_gates": ("gate_id",),
    "adapter_registry": ("adapter_id",),
    "permissions": ("adapter_id", "capability"),
    "decision_specs": ("decision_key",),
    "eval_targets": ("intent",),
    "release_gates": ("metric",),
    "task_templates": ("template_id",),
    "intents": ("intent_id",),
    "request_facts": ("intent",),
    "facts": ("path",),
    "must_refuse": ("id",),
    "must_escalate": ("id",),
    "limits": ("per", "period", "sum_of"),
}
"""The lists whose entries have an id, and the fields that make up the id."""


def id_fields(name: str) -> tuple[str, ...] | None:
    """Return the fields that make up the id of an entry of this list; None when its entries have no id."""
    return _ID_FIELDS.get(name)


def index_by_id(value: Json, name: str = "") -> Tree:
    """Make the tree of a document, or of its part `name`. A bare id becomes a part with only an id."""
    if isinstance(value, dict):
        return {key: index_by_id(member, key) for key, member in value.items()}
    fields = id_fields(name)
    if fields is None or not isinstance(value, list | tuple):
        return value
    tree: dict[str, Tree] = {}
    for n, entry in enumerate(value):
        key = identity(entry, fields)
        # Two entries with one id are an error of another law; here neither hides the other.
        tree[key if key not in tree else f"{key}#{n}"] = index_by_id(
            {fields[0]: entry} if isinstance(entry, str) else entry
        )
    return tree


def part_at(tree: Tree, path: tuple[str, ...]) -> Tree:
    """Return the part at a path; None when there is none."""
    for step in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(step)
    return tree


def plain(tree: Tree) -> Json:
    """Return a part as plain data, indexed lists as objects."""
    return {key: plain(part) for key, part in tree.items()} if isinstance(tree, Mapping) else tree


def identity(value: Json, fields: tuple[str, ...]) -> str:
    """Return the id of an entry; a bare text is its own id."""
    return ".".join(str(value.get(field, "")) for field in fields) if isinstance(value, dict) else str(value)


# --- rules and the intents that they decide ---

_BUNDLES = ("policy_layer", "policy_bundles")
_INTENT_LISTS = (("evaluation_layer", "eval_targets"), ("task_layer", "task_templates"))


def rules_in(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Yield every rule after its id."""
    bundles = part_at(tree, _BUNDLES)
    for bundle in bundles.values() if isinstance(bundles, Mapping) else ():
        rules = part_at(bundle, ("policy_dsl", "rules"))
        yield from rules.items() if isinstance(rules, Mapping) else ()


def intents_of(rule: Tree) -> frozenset[str]:
    named = part_at(rule, ("applies_to", "intent"))
    intents = named if isinstance(named, list | tuple) else [named]
    return frozenset(intent for intent in intents if isinstance(intent, str))


def opens_intents(intents: frozenset[str], tree: Tree) -> bool:
    """Whether one of these intents was unknown, and a rule for every intent gives it something.

    A request for an unknown intent is refused before any rule is evaluated.
    """
    rules = [rule for _, rule in rules_in(tree)]
    if not any(not intents_of(rule) and _gives(rule) for rule in rules):
        return False
    parts = [part_at(tree, path) for path in _INTENT_LISTS]
    entries = [entry for part in parts if isinstance(part, Mapping) for entry in part.values()]
    named = frozenset(name for entry in entries if isinstance(name := part_at(entry, ("intent",)), str))
    return not intents <= named.union(*map(intents_of, rules))


def _gives(rule: Tree) -> bool:
    """Whether a rule allows in some case, or leads to a decision, which tools may be left by."""
    return part_at(rule, ("decision_binding",)) is not None or any(
        allows(part_at(rule, (branch,))) for branch in ("then", "else")
    )


def settled_intents(tree: Tree, *, without: str = "") -> frozenset[str]:
    """Return the intents that an unconditional rule decides, so that another `allow` changes nothing.

    `without`: the id of a rule to ignore.
    """
    return frozenset[str]().union(
        *(
            intents_of(rule)
            for name, rule in rules_in(tree)
            if name != without and _always_applies(rule) and _always_decides(rule)
        )
    )


def _always_applies(rule: Tree) -> bool:
    applies_to = part_at(rule, ("applies_to",))
    return isinstance(applies_to, Mapping) and set(applies_to) == {"intent"}


def _always_decides(rule: Tree) -> bool:
    return all(isinstance(part_at(rule, (branch, "allow")), bool) for branch in ("then", "else"))


# --- evidence ---


def required_evidence(tree: Tree) -> frozenset[str]:
    """Return the names of evidence that a decision or a branch of a rule requires."""
    specs = part_at(tree, ("decision_layer", "decision_specs"))
    parts = [part_at(spec, ("required_evidence",)) for spec in (specs.values() if isinstance(specs, Mapping) else ())]
    parts += [part_at(rule, (branch, "requires")) for _, rule in rules_in(tree) for branch in ("then", "else")]
    return frozenset[str]().union(*map(_entries, parts))


def produced_evidence(tree: Tree) -> frozenset[str]:
    """Return the names of evidence that the engine, the graph or a permitted tool produces."""
    permissions = part_at(tree, _PERMISSIONS)
    entities = _entries(part_at(tree, ("intelligence_refs", "ontology", "entity_types")))
    names = {POLICY_EVAL, *map(snake_case, entities)}
    for permission in permissions.values() if isinstance(permissions, Mapping) else ():
        if part_at(permission, ("allow",)) is True:
            adapter, capability = (str(part_at(permission, (name,))) for name in ("adapter_id", "capability"))
            names |= _entries(part_at(permission, ("produces",))) or {default_evidence_name(adapter, capability)}
    return frozenset(names)


# --- which branch is stricter ---

_RESTRICTIONS = ("requires", "prohibits", "approval_mode", "requires_approval_gate", "arg_constraints")
_ADAPTERS = ("tooling_layer", "adapter_registry")
_PERMISSIONS = ("tooling_layer", "permissions")


def denies(effect: Tree) -> bool:
    """Whether a branch denies: then a run may only read, and decides nothing."""
    return part_at(effect, ("allow",)) is False


def allows(effect: Tree) -> bool:
    """Whether a branch allows explicitly."""
    return part_at(effect, ("allow",)) is True


def restricts(effect: Tree) -> bool:
    """Whether a branch restricts a run."""
    return denies(effect) or any(part_at(effect, (name,)) for name in _RESTRICTIONS)


def gates_of(part: Tree) -> frozenset[str]:
    """Return the approval gates that a branch or a permission names: one, or a list."""
    named = part_at(part, ("requires_approval_gate",))
    return frozenset({named}) if isinstance(named, str) else _entries(named)


def gates_reading(gates: frozenset[str], tree: Tree) -> bool:
    """Whether one of these gates guards a tool that only reads, which a denied run may still call."""
    permissions = part_at(tree, _PERMISSIONS)
    return any(
        not gates.isdisjoint(gates_of(permission)) and may_only_read(name, tree)
        for name, permission in (permissions.items() if isinstance(permissions, Mapping) else ())
    )


def may_only_read(tool: str, tree: Tree) -> bool:
    """Whether a tool may be one that only reads; an undeclared one may be."""
    # The second permission of a capability, for other intents, stands under its id and a number.
    adapter, _, capability = tool.partition("#")[0].rpartition(".")
    mode = mode_in(tree, adapter, capability)
    return mode is None or mode == "read_only"


def mode_in(tree: Tree, adapter: str, capability: str) -> Tree:
    """Return the approval mode that holds for a capability: its own, else that of its adapter."""
    mode = part_at(tree, (*_ADAPTERS, adapter, "capability_specs", capability, "approval_mode"))
    return part_at(tree, (*_ADAPTERS, adapter, "approval_mode")) if mode is None else mode


def _entries(side: Tree) -> frozenset[str]:
    return frozenset(map(str, side)) if isinstance(side, list | tuple) else frozenset()


_HIGHEST = len(APPROVAL_MODES) - 1


def required_rank(effect: Tree, rule: Tree, tree: Tree) -> float | None:
    """Return the place of the mode that a branch requires, capped by its decision; None without one."""
    modes: list[Tree] = list(APPROVAL_MODES)
    mode, binding = part_at(effect, ("approval_mode",)), part_at(rule, ("decision_binding",))
    if mode not in modes:
        return None
    rank = modes.index(mode)
    if not isinstance(binding, str):
        return rank
    most = part_at(tree, ("decision_layer", "decision_specs", binding, "approval_mode"))
    # A decision of a catalog is not at hand, and may cap the highest mode.
    return min(rank, modes.index(most)) if most in modes else min(rank, _HIGHEST - 0.5)


def is_rank_as_high(rank: float | None, other: float | None) -> bool:
    """Whether requiring the first mode leaves no tool a lower one than requiring the second.

    Where no rule requires a mode, that of the tool holds. So only the highest is sure to be as high as none, and none
    is as high as no other: another rule may require a lower one.
    """
    if other is None:
        return rank is None or rank == _HIGHEST
    return rank is not None and rank >= other


Effect = Literal["metadata", "narrows", "wording", "reads_more", "locale", "endpoint", "removes", "changes", "widens"]
"""The effect of a change. `metadata`: none at run time. `narrows`: less is possible than before. `wording`: the model
reads another text, and nothing that is enforced changes. `reads_more`: one more read-only source. `locale`, `endpoint`:
another default, another address. `removes`: a capability is gone. `widens`: more is possible. `changes`: something
else, or the effect is unknown."""


class Change(Value, frozen=True):
    """One change. `at` is its place, with ids for positions; `words` describe it for a reviewer.

    `undecided`: its effect cannot be told. It counts as `changes`.
    """

    layer: str
    at: str
    effect: Effect
    words: str
    undecided: bool = False
