"""Comparers of conditions: whether a restriction now holds in more cases, in fewer, or in others.

A condition holds, does not hold, or cannot be evaluated. Which outcome can turn into which other is solved over the
constants of both conditions; a move that is not refuted counts as possible.

A run also restricts where a condition reads a missing fact. So a changed condition must not let a request escape a
restriction by leaving a fact out. Cases are tried for that: those that the constants suggest, each with one or more
facts left out. A case that escapes is a proof; finding none is not.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from contextplane.authoring.diff.comparers import Comparer, Difference, Pair, format_transition
from contextplane.authoring.diff.tree import (
    Tree,
    allows,
    denies,
    intents_of,
    is_at_least_as_strict,
    part_at,
    plain,
    restricts,
    settled_intents,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.json.canonical import Json, canonical
from contextplane.policy.facts import Facts
from contextplane.policy.logic.condition import CompiledCondition, ConditionFailure
from contextplane.policy.logic.expression import logic_problems
from contextplane.policy.logic.solver import Answer, Outcome, TryBudget, VariableUses, solve_outcomes
from contextplane.policy.logic.strict import operation

__all__ = [
    "IsInForce",
    "format_condition",
    "permission_when",
    "restriction_escape",
    "restriction_when",
    "rule_condition",
]

IsInForce = Callable[[bool | ConditionFailure, bool], bool]
"""Whether the restriction is in force, by the outcome of the condition and whether it missed a fact."""

# --- escape by leaving a fact out ---

_CASES = 200
_FACTS = ("request", "user", "agent", "run")
_TEXT_FACTS = {"tenant_id": "tenant", "intent": "intent", "safety_mode": "read_only"}


def restriction_escape(old: Json, new: Json, is_in_force: IsInForce, tries: TryBudget) -> str:
    """Return the facts whose omission restricted before and no longer does; "" when none are found."""
    if logic_problems(old) or logic_problems(new):
        return ""
    uses = VariableUses()
    uses.add(old)
    uses.add(new)
    paths = sorted(uses.paths)
    before, after = CompiledCondition(old), CompiledCondition(new)
    values = [[None, *(candidate for candidate in uses.candidates(path) if candidate is not None)] for path in paths]
    for chosen in itertools.islice(itertools.product(*values), _CASES):
        if tries.spent:
            break
        facts = _facts(paths, chosen) if None in chosen and tries.take() else None
        if (
            facts is not None
            and _restricts_for(before, facts, is_in_force)
            and not _restricts_for(after, facts, is_in_force)
        ):
            return ", ".join(path for path, value in zip(paths, chosen, strict=True) if value is None)
    return ""


def _restricts_for(condition: CompiledCondition, facts: Facts, is_in_force: IsInForce) -> bool:
    answer = condition.judge(facts)
    # Which facts a condition missed that cannot be evaluated makes no difference: that denies.
    missing = answer.missing if isinstance(answer, ConditionFailure) else condition.missing_facts(facts)
    return is_in_force(answer, bool(missing))


def _facts(paths: Sequence[str], values: Sequence[Json]) -> Facts | None:
    """Make facts in which each path leads to its value; None when that is impossible."""
    data: dict[str, Json] = {**{name: {} for name in _FACTS}, **_TEXT_FACTS}
    for path, value in zip(paths, values, strict=True):
        *parents, last = path.split(".")
        place: Json = data
        for step in parents:
            place = place.setdefault(step, {}) if isinstance(place, dict) else None
        if value is not None and isinstance(place, dict):
            place[last] = value
    try:
        return Facts.of(**data)  # type: ignore[arg-type]
    except (ContextPlaneError, TypeError):
        return None


# --- conditions in words ---

_INFIX = frozenset({"==", "===", "!=", "!==", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in"})
_JOINING = frozenset({"and", "or"})
_MAX_DEPTH = 8
"""Deeper parts are shown as JSON: one line of words would not be readable."""


def format_condition(condition: Json, depth: int = 0) -> str:
    """Format a condition for a reviewer: `request.context.refund_amount > 3000`; else as JSON."""
    if not isinstance(condition, dict) or len(condition) != 1 or depth > _MAX_DEPTH:
        return canonical(condition).decode()
    operator, operand_or_list = next(iter(condition.items()))
    operands: list[Json] = operand_or_list if isinstance(operand_or_list, list) else [operand_or_list]
    if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
        return operands[0]
    if operator in _JOINING and len(operands) > 1:
        return f" {operator} ".join(_format_operand(operand, depth) for operand in operands)
    if operator in _INFIX and len(operands) == 2:  # noqa: PLR2004  one on either side
        return f" {operator} ".join(_format_operand(operand, depth) for operand in operands)
    if operator == "!" and len(operands) == 1:
        return f"not {_format_operand(operands[0], depth)}"
    return canonical(condition).decode()


def _format_operand(part: Json, depth: int) -> str:
    """Format a part of a larger condition, in brackets where it would be ambiguous."""
    text = format_condition(part, depth + 1)
    plain = not isinstance(part, dict) or set(part) == {"var"} or (depth == 0 and not _JOINING & set(part))
    return text if plain or text[:1] in "{[" else f"({text})"


# --- the comparers ---

Move = tuple[Outcome, Outcome]
"""The old and the new outcome of a condition, for the same facts."""

_LONGEST = 200
_BOOLEAN_OPERATORS = frozenset({"==", "===", "!=", "!==", "<", "<=", ">", ">=", "!", "!!", "in", "all", "none", "some"})
_OUTCOMES: tuple[Outcome, ...] = (True, False, None)
_HOLDS, _FAILS_NOW = (False, True), (False, None)
_RESTRICTS_MORE = frozenset[Move]({_HOLDS, _FAILS_NOW, (None, True)})
_PERMITS_LESS = frozenset[Move]({(True, False), (True, None), (False, None), (None, False)})


def rule_condition(pair: Pair) -> Iterator[Difference]:
    """Compare the `if` of a rule: more cases for the stricter branch is stricter, fewer is looser.

    The old branches count: a change of a branch is a difference of its own.
    """
    rule = part_at(pair.before, pair.path[:-1])
    then, otherwise = part_at(rule, ("then",)), part_at(rule, ("else",))

    def is_in_force(answer: bool | ConditionFailure, misses_fact: bool) -> bool:  # noqa: FBT001  it is called by place
        if isinstance(answer, ConditionFailure):
            is_harmless = allows(then) and allows(otherwise) and not (restricts(then) or restricts(otherwise))
            return not (misses_fact and is_harmless)
        taken, other = (then, otherwise) if answer else (otherwise, then)
        is_escape = restricts(other) or (allows(taken) and not allows(other))
        return denies(taken) or (misses_fact and is_escape)

    yield _condition_difference(pair, (pair.old, pair.new), _stricter_moves(then, otherwise, pair), is_in_force)


def restriction_when(*, absent: bool) -> Comparer:
    """Compare a condition under which a part restricts; `absent`: its outcome without a condition."""
    return _condition_comparer(absent=absent, stricter=_RESTRICTS_MORE)


def permission_when(*, absent: bool) -> Comparer:
    """Compare a condition under which a part permits; `absent`: its outcome without a condition."""
    return _condition_comparer(absent=absent, stricter=_PERMITS_LESS)


def _condition_comparer(*, absent: bool, stricter: frozenset[Move]) -> Comparer:
    def compare(pair: Pair) -> Iterator[Difference]:
        old, new = (absent if side is None else side for side in (pair.old, pair.new))
        yield _condition_difference(
            pair, (old, new), stricter, _gate_is_active if stricter is _RESTRICTS_MORE else None
        )

    return compare


def _gate_is_active(answer: bool | ConditionFailure, misses_fact: bool) -> bool:  # noqa: FBT001  it is called by place
    """Whether a gate is active. It is, where its condition fails or reads a missing fact."""
    return answer is not False or misses_fact


def _stricter_moves(then: Tree, otherwise: Tree, pair: Pair) -> frozenset[Move]:
    """Return the moves of a rule's condition that can only take something away.

    A condition that cannot be evaluated denies. A new failure where the stricter `then` held is still no tightening:
    its author did not ask for a denial.
    """
    rule = part_at(pair.before, pair.path[:-1])
    is_settled = intents_of(rule) <= settled_intents(pair.before, without=pair.path[-2])
    then_is, otherwise_is = (
        is_at_least_as_strict(branch, other, pair.before, is_settled=is_settled)
        for branch, other in ((then, otherwise), (otherwise, then))
    )
    if then_is and not otherwise_is:
        return frozenset({_HOLDS, _FAILS_NOW} | ({(None, True)} if denies(then) else set()))
    if otherwise_is and not then_is:
        return _PERMITS_LESS if denies(otherwise) else _PERMITS_LESS - {(None, False)}
    return frozenset()


def _condition_difference(
    pair: Pair, states: tuple[Tree, Tree], stricter: frozenset[Move], is_in_force: IsInForce | None
) -> Difference:
    """Return the effect of a changed condition. `is_in_force`: given where a missing fact counts."""
    moves = _moves(*states, pair.tries)
    looser = frozenset((now, was) for was, now in stricter)
    if is_in_force is not None and moves.keys() <= stricter:
        omitted = restriction_escape(plain(states[0]), plain(states[1]), is_in_force, pair.tries)
        if omitted:
            words = f"its condition no longer restricts requests without {omitted}"
            return Difference(effect="changes", words=words)
    if not moves or moves.keys() <= stricter & looser:
        return Difference(effect="metadata", words="its condition is written in another way")
    transition = format_transition(replace(pair, old=_readable(pair.old), new=_readable(pair.new)), longest=_LONGEST)
    cases = f"{_direction(moves)}: {transition}"
    if moves.keys() <= stricter:
        return Difference(effect="narrows", words=f"its condition holds in {cases}")
    if moves.keys() <= looser and "unknown" not in moves.values():
        return Difference(effect="widens", words=f"its condition holds in {cases}")
    if "unknown" in moves.values():
        return Difference(effect="changes", words=f"cannot tell in which cases its condition holds: {transition}")
    return Difference(effect="changes", words=f"its condition holds in {cases}")


def _readable(condition: Tree) -> Tree:
    return None if condition is None else format_condition(plain(condition))


def _moves(old: Tree, new: Tree, tries: TryBudget) -> Mapping[Move, Answer]:
    """Return every move that is possible or cannot be ruled out."""
    before, after = plain(old), plain(new)
    if not (_returns_boolean(before) and _returns_boolean(after)):
        return {(was, now): "unknown" for was in _OUTCOMES for now in _OUTCOMES if was is not now}
    moves: dict[Move, Answer] = {}
    for was in _OUTCOMES:
        for now in _OUTCOMES:
            if was is not now:
                answer = solve_outcomes([(before, frozenset({was})), (after, frozenset({now}))], tries).answer
                if answer != "no":
                    moves[was, now] = answer
    return moves


def _returns_boolean(condition: Json) -> bool:
    """Whether a condition evaluates to true or false, by its form alone."""
    operator, operands = operation(condition)
    if operator in {"and", "or"} and operands:
        return all(map(_returns_boolean, operands))
    if operator in {"if", "?:"} and len(operands) % 2:
        return all(map(_returns_boolean, [*operands[1::2], operands[-1]]))
    return isinstance(condition, bool) or operator in _BOOLEAN_OPERATORS


def _direction(moves: Mapping[Move, Answer]) -> str:
    """Return the first words for a reviewer: whether the condition holds more often or less often."""
    more = any(now is True for _, now in moves)
    fewer = any(was is True for was, _ in moves)
    if more is fewer:
        return "other cases" if more else "the same cases, and cannot be evaluated in others"
    return "more cases" if more else "fewer cases"
