"""Mutations of the conditions of a pack: of rules, gates and guardrails.

Whether another condition widens depends on the branches and on all other rules. So these are candidates: one counts
only if some request gains by it, which `pack_powers` finds out.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tests.support.pack_mutations import Edit, Mutation, Path, branches, conditions, put, rules

__all__ = ["condition_mutations"]

Json = Any
OTHER = {">": ">=", ">=": ">", "<": "<=", "<=": "<"}
REVERSED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "!=", "!=": "=="}
TRUE: Json = {"==": [1, 1]}
FALSE: Json = {"==": [1, 2]}


def _places(condition: Json, at: Path = ()) -> Iterator[tuple[Path, str, list[Json]]]:
    """Yield each operator in a condition after its place."""
    if isinstance(condition, dict):
        for operator, argument in condition.items():
            operands = argument if isinstance(argument, list) else [argument]
            yield at, operator, operands
            for n, operand in enumerate(operands if isinstance(argument, list) else []):
                yield from _places(operand, (*at, operator, n))


def flip_comparison(condition: Json) -> Iterator[Json]:
    for at, operator, operands in _places(condition):
        for table in (OTHER, REVERSED):
            if operator in table:
                yield put(condition, at, {table[operator]: operands})


def move_constant(condition: Json) -> Iterator[Json]:
    for at, operator, operands in _places(condition):
        for n, operand in enumerate(operands if operator in REVERSED else []):
            for moved in _moved(operand):
                yield put(condition, (*at, operator, n), moved)


def _moved(constant: Json) -> list[Json]:
    if isinstance(constant, bool):
        return [not constant]
    if isinstance(constant, int | float):
        return [constant + 1, constant - 1, constant + 1000, constant - 1000]
    return [f"{constant}x", "staging"] if isinstance(constant, str) else []


def change_members(condition: Json) -> Iterator[Json]:
    """Add a member to a list that something is searched in, or take one out."""
    for at, operator, operands in _places(condition):
        if operator == "in" and isinstance(operands[-1], list):
            members = operands[-1]
            added: Json = 6 if isinstance(members[0], int) else "intern"
            yield put(condition, (*at, "in", 1), [*members, added])
            for n in range(len(members)):
                yield put(condition, (*at, "in", 1), members[:n] + members[n + 1 :])


def drop_operand(condition: Json) -> Iterator[Json]:
    for at, operator, operands in _places(condition):
        if operator in {"and", "or"}:
            for n in range(len(operands)):
                rest = operands[:n] + operands[n + 1 :]
                yield put(condition, at, {operator: rest} if len(rest) > 1 else rest[0])


def exchange_connective(condition: Json) -> Iterator[Json]:
    for at, operator, operands in _places(condition):
        if operator in {"and", "or"}:
            yield put(condition, at, {"or" if operator == "and" else "and": operands})


def reorder(condition: Json) -> Iterator[Json]:
    """Read the facts in another order: then another missing fact is met first."""
    for at, operator, operands in _places(condition):
        if operator in {"and", "or"}:
            yield put(condition, at, {operator: operands[::-1]})
            yield put(condition, at, {operator: operands[1:] + operands[:1]})


def settle(condition: Json) -> Iterator[Json]:
    """Decide a condition, or a part of it, for good; or reverse it."""
    for at, operator, _ in _places(condition):
        if operator not in {"var", "missing"}:
            yield put(condition, at, TRUE)
            yield put(condition, at, FALSE)
            yield put(condition, at, {"!": [_part(condition, at)]})


def _part(condition: Json, at: Path) -> Json:
    for step in at:
        condition = condition[step]
    return condition


def default_fact(condition: Json) -> Iterator[Json]:
    """Give a fact a default, or take it out, so that leaving the fact out is no longer noticed."""
    for at, operator, operands in _places(condition):
        if operator == "var" and operands[0] not in {"", "intent"}:
            for default in (0, 1, 100, True, False, "employee", "standard", "staging", "public", "sre", "engineer"):
                yield put(condition, at, {"var": [operands[0], default]})


def exchange_fact(condition: Json) -> Iterator[Json]:
    """Read what the request says in place of a claim of the user or of the clock, or another fact."""
    for at, operator, operands in _places(condition):
        if operator == "var" and isinstance(operands[0], str) and operands[0]:
            name = operands[0].rpartition(".")[2]
            if operands[0].startswith(("user.", "run.")):
                yield put(condition, at, {"var": f"request.context.{name}"})
            elif operands[0] != "intent":
                yield put(condition, at, {"var": f"request.context.{name}_x"})


def add_way_out(condition: Json) -> Iterator[Json]:
    escape: Json = {"==": [{"var": ["request.context.override", False]}, True]}
    yield {"or": [escape, condition]}
    yield {"or": [condition, escape]}
    yield {"and": [{"!": [escape]}, condition]}


CANDIDATES: tuple[Callable[[Json], Iterator[Json]], ...] = (
    flip_comparison,
    move_constant,
    change_members,
    drop_operand,
    exchange_connective,
    reorder,
    settle,
    default_fact,
    exchange_fact,
    add_way_out,
)


def condition_mutations(pack: Json) -> Iterator[Mutation]:
    """Yield every candidate: another condition, or branches that change places."""
    for path, condition in conditions(pack):
        seen = [condition]
        for candidate in CANDIDATES:
            for other in candidate(condition):
                if other not in seen:
                    seen.append(other)
                    yield Mutation(candidate.__name__, (Edit(path, other),))
    for path, rule in rules(pack):
        swapped = {**rule, "then": rule.get("else", {}), "else": rule["then"]}
        yield Mutation("swap_branches", (Edit(path, swapped),))
    for path, branch in branches(pack):
        other = "else" if path[-1] == "then" else "then"
        yield Mutation("repeat_branch", (Edit((*path[:-1], other), branch),))
