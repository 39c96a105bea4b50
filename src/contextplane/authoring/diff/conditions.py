"""Comparing conditions by what they do: whether a restriction now holds in more cases, in fewer, or in others.

A condition holds, does not hold, or cannot be evaluated. Which of these can turn into which other is solved over the
conditions' own constants; what is not refuted there counts as possible.

Whether a changed condition lets off whoever leaves a fact out: nobody escapes a restriction that way.

A run restricts where its condition comes to read a fact that is missing. What a condition reads depends on the others,
so cases are tried: those that its own constants suggest, each with one or more facts left out. A case that is found is
one; that none is found is no proof.

A condition as a reviewer reads it: `request.context.refund_amount > 3000`.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from contextplane.authoring.diff.comparers import Comparer, Sides, Told, moved
from contextplane.authoring.diff.tree import (
    Tree,
    allows,
    at_least_as_strict,
    denies,
    intents_of,
    part_at,
    plain,
    restricts,
    settled,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.json.canonical import Json, canonical
from contextplane.policy.facts import Facts
from contextplane.policy.logic.condition import Condition, Failure
from contextplane.policy.logic.expression import logic_problems
from contextplane.policy.logic.solver import Answer, Outcome, Tries, Uses, solve_outcomes
from contextplane.policy.logic.strict import operation

__all__ = ["Held", "condition_of_rule", "lets_off", "restriction_when", "right_when", "spoken"]

Held = Callable[[bool | Failure, bool], bool]
"""Whether the restriction is in force, by what the condition comes to and whether it came to read a missing fact."""

_CASES = 200
_FACTS = ("request", "user", "agent", "run")
_GIVEN = {"tenant_id": "tenant", "intent": "intent", "safety_mode": "read_only"}


def lets_off(old: Json, new: Json, held: Held, tries: Tries) -> str:
    """The facts that could be left out with a restriction before, and without one now; nothing when none is found."""
    if logic_problems(old) or logic_problems(new):
        return ""
    uses = Uses()
    uses.see(old)
    uses.see(new)
    paths = sorted(uses.paths)
    before, after = Condition(old), Condition(new)
    values = [[None, *(candidate for candidate in uses.candidates(path) if candidate is not None)] for path in paths]
    for chosen in itertools.islice(itertools.product(*values), _CASES):
        if tries.spent:
            break
        facts = _facts(paths, chosen) if None in chosen and tries.take() else None
        if facts is not None and _in_force(before, facts, held) and not _in_force(after, facts, held):
            return ", ".join(path for path, value in zip(paths, chosen, strict=True) if value is None)
    return ""


def _in_force(condition: Condition, facts: Facts, held: Held) -> bool:
    answer = condition.judge(facts)
    # What cannot be evaluated cannot be asked either what it comes to read.
    return held(answer, not isinstance(answer, Failure) and bool(condition.missing(facts)))


def _facts(paths: Sequence[str], values: Sequence[Json]) -> Facts | None:
    """A request in which each path leads to its value; None where there can be none."""
    data: dict[str, Json] = {**{name: {} for name in _FACTS}, **_GIVEN}
    for path, value in zip(paths, values, strict=True):
        *way, last = path.split(".")
        place: Json = data
        for step in way:
            place = place.setdefault(step, {}) if isinstance(place, dict) else None
        if value is not None and isinstance(place, dict):
            place[last] = value
    try:
        return Facts.of(**data)  # type: ignore[arg-type]
    except (ContextPlaneError, TypeError):
        return None


_BETWEEN = frozenset({"==", "===", "!=", "!==", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in"})
_JOINING = frozenset({"and", "or"})
_DEEPEST = 8
"""Whatever lies deeper is shown as it is written: nobody reads it in one line."""


def spoken(condition: Json, depth: int = 0) -> str:
    """A condition in one line. What has no shorter form is shown as it is written."""
    if not isinstance(condition, dict) or len(condition) != 1 or depth > _DEEPEST:
        return canonical(condition).decode()
    operator, given = next(iter(condition.items()))
    operands: list[Json] = given if isinstance(given, list) else [given]
    if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
        return operands[0]
    if operator in _JOINING and len(operands) > 1:
        return f" {operator} ".join(_within(operand, depth) for operand in operands)
    if operator in _BETWEEN and len(operands) == 2:  # noqa: PLR2004  one on either side
        return f" {operator} ".join(_within(operand, depth) for operand in operands)
    if operator == "!" and len(operands) == 1:
        return f"not {_within(operands[0], depth)}"
    return canonical(condition).decode()


def _within(part: Json, depth: int) -> str:
    """A part of a larger condition: in brackets, where it could be read otherwise."""
    text = spoken(part, depth + 1)
    plain = not isinstance(part, dict) or set(part) == {"var"} or (depth == 0 and not _JOINING & set(part))
    return text if plain or text[:1] in "{[" else f"({text})"


Move = tuple[Outcome, Outcome]
"""What a condition came to, and what it comes to now."""

_LONGEST = 200
_ANSWERING = frozenset({"==", "===", "!=", "!==", "<", "<=", ">", ">=", "!", "!!", "in", "all", "none", "some"})
_OUTCOMES: tuple[Outcome, ...] = (True, False, None)
_HOLDS, _FAILS_NOW = (False, True), (False, None)
_RESTRICTS_MORE = frozenset[Move]({_HOLDS, _FAILS_NOW, (None, True)})
_PERMITS_LESS = frozenset[Move]({(True, False), (True, None), (False, None), (None, False)})


def condition_of_rule(sides: Sides) -> Iterator[Told]:
    """The `if` of a rule: more cases for the stricter branch is stricter, fewer is looser.

    What the branches did before counts: what became of them is a difference of its own.
    """
    rule = part_at(sides.before, sides.way[:-1])
    then, otherwise = part_at(rule, ("then",)), part_at(rule, ("else",))

    def held(answer: bool | Failure, lacks: bool) -> bool:  # noqa: FBT001  it is called by place
        taken, other = (then, otherwise) if answer is True else (otherwise, then)
        gained = restricts(other) or (allows(taken) and not allows(other))
        return isinstance(answer, Failure) or denies(taken) or (lacks and gained)

    yield _told(sides, (sides.old, sides.new), _stricter_moves(then, otherwise, sides), held)


def restriction_when(*, absent: bool) -> Comparer:
    """A condition under which something restricts; `absent`: what holds where there is none."""
    return _when(absent=absent, stricter=_RESTRICTS_MORE)


def right_when(*, absent: bool) -> Comparer:
    """A condition under which something is permitted."""
    return _when(absent=absent, stricter=_PERMITS_LESS)


def _when(*, absent: bool, stricter: frozenset[Move]) -> Comparer:
    def compare(sides: Sides) -> Iterator[Told]:
        old, new = (absent if side is None else side for side in (sides.old, sides.new))
        yield _told(sides, (old, new), stricter, _asks if stricter is _RESTRICTS_MORE else None)

    return compare


def _asks(answer: bool | Failure, lacks: bool) -> bool:  # noqa: FBT001  it is called by place
    """A gate is active where its condition cannot be told."""
    return answer is not False or lacks


def _stricter_moves(then: Tree, otherwise: Tree, sides: Sides) -> frozenset[Move]:
    """The moves of a rule's condition that can only take something away.

    What cannot be evaluated denies. That it newly does so where the stricter `then` held is no tightening, all the
    same: whoever wrote it did not ask for a denial.
    """
    rule = part_at(sides.before, sides.way[:-1])
    is_settled = intents_of(rule) <= settled(sides.before, without=sides.way[-2])
    then_is, otherwise_is = (
        at_least_as_strict(one, other, sides.before, is_settled=is_settled)
        for one, other in ((then, otherwise), (otherwise, then))
    )
    if then_is and not otherwise_is:
        return frozenset({_HOLDS, _FAILS_NOW} | ({(None, True)} if denies(then) else set()))
    if otherwise_is and not then_is:
        return _PERMITS_LESS if denies(otherwise) else _PERMITS_LESS - {(None, False)}
    return frozenset()


def _told(sides: Sides, states: tuple[Tree, Tree], stricter: frozenset[Move], held: Held | None) -> Told:
    """What became of a condition. `held`: when what it restricts is in force, where a missing fact counts."""
    moves = _moves(*states, sides.tries)
    looser = frozenset((now, was) for was, now in stricter)
    if held is not None and moves.keys() <= stricter:
        left_out = lets_off(plain(states[0]), plain(states[1]), held, sides.tries)
        if left_out:
            words = f"its condition no longer restricts whoever leaves out {left_out}"
            return Told(effect="changes", words=words)
    if not moves or moves.keys() <= stricter & looser:
        return Told(effect="metadata", words="its condition is written in another way")
    read = moved(replace(sides, old=_read(sides.old), new=_read(sides.new)), longest=_LONGEST)
    cases = f"{_direction(moves)}: {read}"
    if moves.keys() <= stricter:
        return Told(effect="narrows", words=f"its condition holds in {cases}")
    if moves.keys() <= looser and "unknown" not in moves.values():
        return Told(effect="widens", words=f"its condition holds in {cases}")
    if "unknown" in moves.values():
        return Told(effect="changes", words=f"cannot tell in which cases its condition holds: {read}")
    return Told(effect="changes", words=f"its condition holds in {cases}")


def _read(condition: Tree) -> Tree:
    return None if condition is None else spoken(plain(condition))


def _moves(old: Tree, new: Tree, tries: Tries) -> Mapping[Move, Answer]:
    """Every move that is possible, or that cannot be ruled out."""
    before, after = plain(old), plain(new)
    if not (_answers(before) and _answers(after)):
        return {(was, now): "unknown" for was in _OUTCOMES for now in _OUTCOMES if was is not now}
    found: dict[Move, Answer] = {}
    for was in _OUTCOMES:
        for now in _OUTCOMES:
            if was is not now:
                answer = solve_outcomes([(before, frozenset({was})), (after, frozenset({now}))], tries).answer
                if answer != "no":
                    found[was, now] = answer
    return found


def _answers(condition: Json) -> bool:
    """Whether it comes to true or false, told by its form: a run takes nothing else for an answer."""
    operator, operands = operation(condition)
    if operator in {"and", "or"} and operands:
        return all(map(_answers, operands))
    if operator in {"if", "?:"} and len(operands) % 2:
        return all(map(_answers, [*operands[1::2], operands[-1]]))
    return isinstance(condition, bool) or operator in _ANSWERING


def _direction(moves: Mapping[Move, Answer]) -> str:
    """What a reviewer reads first: whether it holds more often or less often."""
    more = any(now is True for _, now in moves)
    fewer = any(was is True for was, _ in moves)
    if more is fewer:
        return "other cases" if more else "the same cases, and cannot be evaluated in others"
    return "more cases" if more else "fewer cases"
