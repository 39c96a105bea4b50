"""A pack as a tree whose lists of parts are keyed by their ids, so that moving a part is no change.

The rules of a pack as a tree: which intents each is for, and which intents are decided whatever else is written.

Which branch of a rule is the stricter one: what it takes away, the other takes away too, or more.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from contextplane.model.json.canonical import Json, canonical
from contextplane.model.terms import APPROVAL_MODES

__all__ = [
    "Tree",
    "allows",
    "asked_for_reading",
    "asks_no_less",
    "at_least_as_strict",
    "decided",
    "denies",
    "id_fields",
    "identity",
    "intents_of",
    "keyed",
    "part_at",
    "plain",
    "restricts",
    "rules_in",
    "settled",
]

Tree: TypeAlias = "Mapping[str, Tree] | Json"
"""Objects and keyed lists are mappings; whatever else is a JSON value."""

_KEYED_LISTS: dict[str, tuple[str, ...]] = {
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
    "must_refuse": ("id",),
    "must_escalate": ("id",),
}
"""The lists whose entries have an id, and the fields that it consists of."""


def id_fields(name: str) -> tuple[str, ...] | None:
    """The fields that the ids in a list of this name consist of; None for a list whose entries have none."""
    return _KEYED_LISTS.get(name)


def keyed(value: Json, name: str = "") -> Tree:
    """The tree of a document, or of the part of it that stands under `name`. A bare id is a part that says no more."""
    if isinstance(value, dict):
        return {key: keyed(one, key) for key, one in value.items()}
    fields = id_fields(name)
    if fields is None or not isinstance(value, list | tuple):
        return value
    tree: dict[str, Tree] = {}
    for n, one in enumerate(value):
        key = identity(one, fields)
        # Two with one id are an error of their own; here neither hides the other.
        tree[key if key not in tree else f"{key}#{n}"] = keyed({fields[0]: one} if isinstance(one, str) else one)
    return tree


def part_at(tree: Tree, way: tuple[str, ...]) -> Tree:
    """The part that a way leads to, None where there is none."""
    for step in way:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(step)
    return tree


def plain(tree: Tree) -> Json:
    """A part as plain data, keyed lists as objects."""
    return {key: plain(one) for key, one in tree.items()} if isinstance(tree, Mapping) else tree


def identity(value: Json, fields: tuple[str, ...]) -> str:
    """The id of an entry; a bare text is its own."""
    return ".".join(str(value.get(field, "")) for field in fields) if isinstance(value, dict) else str(value)


_BUNDLES = ("policy_layer", "policy_bundles")


def rules_in(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Every rule with its id."""
    bundles = part_at(tree, _BUNDLES)
    for bundle in bundles.values() if isinstance(bundles, Mapping) else ():
        rules = part_at(bundle, ("policy_dsl", "rules"))
        yield from rules.items() if isinstance(rules, Mapping) else ()


def intents_of(rule: Tree) -> frozenset[str]:
    named = part_at(rule, ("applies_to", "intent"))
    listed = named if isinstance(named, list | tuple) else [named]
    return frozenset(one for one in listed if isinstance(one, str))


def decided(tree: Tree) -> frozenset[str]:
    """Every intent for which a rule applies to each request: where none applies, a run may only read."""
    return frozenset[str]().union(*(intents_of(rule) for _, rule in rules_in(tree) if _always_applies(rule)))


def settled(tree: Tree, *, without: str = "") -> frozenset[str]:
    """Every intent that some rule allows or denies in each case, so that nothing more follows from one more `allow`.

    `without`: a rule that is not asked.
    """
    return frozenset[str]().union(
        *(
            intents_of(rule)
            for name, rule in rules_in(tree)
            if name != without and _always_applies(rule) and _always_says(rule)
        )
    )


def _always_applies(rule: Tree) -> bool:
    applies_to = part_at(rule, ("applies_to",))
    return isinstance(applies_to, Mapping) and set(applies_to) == {"intent"}


def _always_says(rule: Tree) -> bool:
    return all(isinstance(part_at(rule, (branch, "allow")), bool) for branch in ("then", "else"))


_RESTRICTIONS = ("requires", "prohibits", "approval_mode", "requires_approval_gate", "arg_constraints")
_ADAPTERS = ("tooling_layer", "adapter_registry")
_PERMISSIONS = ("tooling_layer", "permissions")


def denies(effect: Tree) -> bool:
    """Whether a `then` or an `else` denies: only reading is possible then, and nothing is decided."""
    return part_at(effect, ("allow",)) is False


def allows(effect: Tree) -> bool:
    """Whether a `then` or an `else` says outright that it allows."""
    return part_at(effect, ("allow",)) is True


def restricts(effect: Tree) -> bool:
    """Whether a `then` or an `else` takes something away."""
    return denies(effect) or any(part_at(effect, (name,)) for name in _RESTRICTIONS)


def at_least_as_strict(one: Tree, other: Tree, tree: Tree, *, is_settled: bool) -> bool:
    """Whether a run under the one branch can do nothing that it could not under the other. `tree` is the pack.

    `is_settled`: another rule allows or denies in each case. Otherwise nothing allows where no rule says so, and a
    branch that says it is looser than one that is silent.
    """
    if denies(other) and not denies(one):
        return False
    if not is_settled and allows(one) and not allows(other):
        return False
    if not _prohibited(other, tree, denied=denies(one)) <= _entries(part_at(one, ("prohibits",))):
        return False
    if not _same_bounds(part_at(one, ("arg_constraints",)), part_at(other, ("arg_constraints",))):
        return False
    return _asks_as_much(one, other, tree)


def _asks_as_much(one: Tree, other: Tree, tree: Tree) -> bool:
    """Evidence, a mode and a gate count for what writes: a denial is stricter than all of them."""
    ours, theirs = (part_at(side, ("requires_approval_gate",)) for side in (one, other))
    if denies(one):
        return theirs is None or theirs == ours or not asked_for_reading(theirs, tree)
    return (
        (theirs is None or theirs == ours)
        and _entries(part_at(other, ("requires",))) <= _entries(part_at(one, ("requires",)))
        and asks_no_less(one, part_at(other, ("approval_mode",)))
    )


def _prohibited(effect: Tree, tree: Tree, *, denied: bool) -> frozenset[str]:
    """What a branch prohibits; where the run is denied anyway, only what reads still counts."""
    named = _entries(part_at(effect, ("prohibits",)))
    return frozenset(one for one in named if not denied or _reads(one.rpartition(".")[0], tree))


def asked_for_reading(gate: Tree, tree: Tree) -> bool:
    """Whether a gate stands before something that only reads, which a run may do where it is denied."""
    permissions = part_at(tree, _PERMISSIONS)
    return any(
        part_at(permission, ("requires_approval_gate",)) == gate
        and _reads(str(part_at(permission, ("adapter_id",))), tree)
        for permission in (permissions.values() if isinstance(permissions, Mapping) else ())
    )


def _reads(adapter: str, tree: Tree) -> bool:
    """Whether an adapter may be one that only reads: one that nobody declares may be, too."""
    mode = part_at(tree, (*_ADAPTERS, adapter, "approval_mode"))
    return mode is None or mode == "read_only"


def _same_bounds(ours: Tree, theirs: Tree) -> bool:
    """Whether every argument that the others bound is bound by us in the same way."""
    named = theirs if isinstance(theirs, Mapping) else {}
    return all(canonical(plain(part_at(ours, (name,)))) == canonical(plain(one)) for name, one in named.items())


def asks_no_less(effect: Tree, mode: Tree = None) -> bool:
    """Whether a branch asks for a mode that is no lower than this; where none is asked for, the tool's own holds."""
    asked = part_at(effect, ("approval_mode",))
    if mode is None:
        return asked is None or asked == APPROVAL_MODES[-1]
    ladder: list[Tree] = list(APPROVAL_MODES)
    return asked in ladder and mode in ladder and ladder.index(asked) >= ladder.index(mode)


def _entries(side: Tree) -> frozenset[str]:
    return frozenset(map(str, side)) if isinstance(side, list | tuple) else frozenset()
