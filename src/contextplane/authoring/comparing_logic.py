"""Comparing conditions by what they do: whether a restriction now holds in more cases, in fewer, or in others.

A condition holds, does not hold, or cannot be evaluated. Which of these can turn into which other is solved over the
conditions' own constants; what is not refuted there counts as possible.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.comparing import Comparer, Sides, Told, moved
from contextplane.authoring.keyed import Tree, part_at, plain
from contextplane.authoring.left_out import Held, lets_off
from contextplane.authoring.spoken import spoken
from contextplane.authoring.strictness import allows, at_least_as_strict, denies, restricts
from contextplane.authoring.tree_rules import intents_of, settled
from contextplane.model.canonical import Json
from contextplane.policy.condition import Failure
from contextplane.policy.operators import operation
from contextplane.policy.solving import Answer, Outcome, Tries, solve_outcomes

__all__ = ["condition_of_rule", "restriction_when", "right_when"]

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
