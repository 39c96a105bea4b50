"""Which branch of a rule is the stricter one: what it takes away, the other takes away too, or more."""

from collections.abc import Mapping

from contextplane.authoring.keyed import Tree, part_at, plain
from contextplane.model.canonical import canonical
from contextplane.model.context_pack.terms import APPROVAL_MODES

__all__ = ["allows", "asked_for_reading", "asks_no_less", "at_least_as_strict", "denies", "restricts"]

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
        part_at(one, ("requires_approval_gate",)) == gate and _reads(str(part_at(one, ("adapter_id",))), tree)
        for one in (permissions.values() if isinstance(permissions, Mapping) else ())
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
