"""What a rule does in each state of its condition, and which of two states is the stricter."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from contextplane.authoring.diff.tree import (
    Tree,
    allows,
    denies,
    gates_of,
    gates_reading,
    is_rank_as_high,
    may_only_read,
    part_at,
    plain,
    required_rank,
    restricts,
)
from contextplane.model.json.canonical import canonical
from contextplane.policy.logic.diagram import State

__all__ = ["PackLaw", "RuleForce", "force_of", "is_as_strict"]

_COMPARED = frozenset({"allow", "reason", "requires", "prohibits", "approval_mode", "requires_approval_gate"})


class RuleForce(NamedTuple):
    """What a rule does in one state. Of the other members of its branches, each must be kept as it is.

    `reasons` are what it tells the model, and restrict nothing.
    """

    allows: bool
    denies: bool
    requires: frozenset[str]
    prohibits: frozenset[str]
    gates: frozenset[str]
    others: frozenset[tuple[str, ...]]
    reasons: frozenset[str]
    rank: float | None


class PackLaw(NamedTuple):
    """What of the pack decides which force is stricter.

    `is_settled`: another rule allows or denies in each case. Otherwise nothing is allowed without an explicit `allow`,
    and a branch with one is looser than a branch without. `lifts`, `lifts_reading`: an approval lifts a bound of some
    tool, or of one that only reads.
    """

    tree: Tree
    is_settled: bool
    lifts: bool
    lifts_reading: bool


def force_of(rule: Tree, state: State, tree: Tree) -> RuleForce:
    """Return what a rule does in a state. Undecided, it has the restrictions of both branches."""
    then, otherwise = part_at(rule, ("then",)), part_at(rule, ("else",))
    branches = [branch for branch in (then, otherwise) if branch is not None]
    if state in {"true", "false"}:
        taken = then if state == "true" else otherwise
        branches = [] if taken is None else [taken]
        is_allowed, is_denied = allows(taken), denies(taken)
    elif state == "failed":
        is_allowed, is_denied = False, True
    else:
        is_allowed = allows(then) and allows(otherwise)
        taken, other = (then, otherwise) if state == "true_missing" else (otherwise, then)
        is_denied = denies(taken) or restricts(other) or (state == "unknown" and restricts(taken))
    ranks = [rank for rank in (required_rank(branch, rule, tree) for branch in branches) if rank is not None]
    return RuleForce(
        allows=is_allowed,
        denies=is_denied,
        requires=_union(branches, "requires"),
        prohibits=_union(branches, "prohibits"),
        gates=frozenset[str]().union(*map(gates_of, branches)),
        others=frozenset(member for branch in branches for member in _other_members(branch)),
        reasons=_union(branches, "reason"),
        rank=max(ranks, default=None),
    )


def is_as_strict(force: RuleForce, other: RuleForce, law: PackLaw) -> bool:
    """Whether a run under the first force can do nothing that it could not under the other.

    A run that is denied may still read: what prohibits, bounds or gates a tool that reads counts there as well.
    """
    if (other.denies and not force.denies) or (force.allows and not other.allows and not law.is_settled):
        return False
    if not other.others <= force.others:
        return False
    added = force.gates - other.gates
    if added and (law.lifts_reading if force.denies else law.lifts):
        return False
    dropped, permitted = other.gates - force.gates, other.prohibits - force.prohibits
    if force.denies:
        return not gates_reading(dropped, law.tree) and not any(may_only_read(tool, law.tree) for tool in permitted)
    return (
        not dropped and not permitted and other.requires <= force.requires and is_rank_as_high(force.rank, other.rank)
    )


def _union(branches: Sequence[Tree], name: str) -> frozenset[str]:
    return frozenset(entry for branch in branches for entry in _entries(part_at(branch, (name,))))


def _entries(side: Tree) -> Iterator[str]:
    """Yield each entry of a list, or the value that stands alone: a name as it is, anything else as JSON."""
    for entry in side if isinstance(side, list | tuple) else () if side is None else (side,):
        yield entry if isinstance(entry, str) else canonical(plain(entry)).decode()


def _other_members(branch: Tree, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the path to, and the value of, each further member of a branch: above all, its bounds."""
    if isinstance(branch, Mapping) and len(path) <= 1:
        for name, part in branch.items():
            if path or name not in _COMPARED:
                yield from _other_members(part, *path, name)
    elif path:
        yield (*path, canonical(plain(branch)).decode())
