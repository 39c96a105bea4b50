"""A pack as a tree whose lists of parts are keyed by their ids, so that moving a part is no change."""

from collections.abc import Mapping
from typing import TypeAlias

from contextplane.model.canonical import Json

__all__ = ["Tree", "id_fields", "identity", "keyed", "part_at", "plain"]

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
