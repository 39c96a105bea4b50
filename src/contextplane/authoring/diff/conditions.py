"""Comparers of conditions: whether a restriction now holds in more cases, in fewer, or in others.

For each request a condition is in one of six states: true or false, either with a missing fact read, without an answer,
or failed. The diagrams of the old and the new condition show which states can be together. Each move from one state to
another is judged by what the engine does in both. So a difference that narrows is proven for every request, with every
fact given, missing or of another kind. A move that is not ruled out counts as possible, and where a condition is not
analysed completely, a move that loosens is no more than that: the effect is unknown.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.diff.comparers import Comparer, Difference, Pair, format_transition
from contextplane.authoring.diff.parts import has_liftable_bound
from contextplane.authoring.diff.rule_states import PackLaw, force_of, is_as_strict
from contextplane.authoring.diff.tree import Effect, Tree, intents_of, part_at, plain, settled_intents
from contextplane.model.json.canonical import Json, canonical
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.logic.condition import required_paths
from contextplane.policy.logic.diagram import STATES, Diagrams, DiagramTooLarge, State, state_of

__all__ = ["format_condition", "gate_when", "guardrail_when", "permission_when", "rule_condition"]

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

Move = tuple[State, State]
"""The old and the new state of a condition, for the same request."""

IsNarrower = Callable[[State, State], bool]
"""Whether a move from the first state to the second lets a run do no more than before."""

_LONGEST = 200
_HOLDS: frozenset[State] = frozenset({"true", "true_missing"})
_MISSES: frozenset[State] = frozenset({"true_missing", "false_missing", "unknown"})
_ELIGIBLE: Mapping[State, int] = {**dict.fromkeys(STATES, 0), "true_missing": 1, "true": 2}
"""How eligible a decision is by the state of its condition."""


def rule_condition(pair: Pair) -> Iterator[Difference]:
    """Compare the `if` of a rule: by what the rule does in the old and in the new state of its condition.

    The old branches count: a change of a branch is a difference of its own.
    """
    rule = part_at(pair.before, pair.path[:-1])
    trees = (pair.before, pair.after)
    law = PackLaw(
        tree=pair.before,
        is_settled=bool(intents_of(rule)) and intents_of(rule) <= settled_intents(pair.before, without=pair.path[-2]),
        lifts=any(map(has_liftable_bound, trees)),
        lifts_reading=any(has_liftable_bound(tree, reading=True) for tree in trees),
    )
    forces = {state: force_of(rule, state, pair.before) for state in STATES}

    def is_narrower(old: State, new: State) -> bool:
        return is_as_strict(forces[new], forces[old], law)

    def gives_same_reason(old: State, new: State) -> bool:
        return forces[old].reasons == forces[new].reasons

    yield _condition_difference(
        pair, pair.old, pair.new, is_narrower, scope=_scope_of(rule), gives_same_reason=gives_same_reason
    )


def guardrail_when(pair: Pair) -> Iterator[Difference]:
    """Compare the `when` of a guardrail. Without one, no condition triggers it."""
    old, new = (False if side is None else side for side in (pair.old, pair.new))
    yield _condition_difference(pair, old, new, lambda was, now: was == "false" or now != "false")


def gate_when(pair: Pair) -> Iterator[Difference]:
    """Compare the `when` of an approval gate, which is active unless that is false.

    Without one it always is. Where an approval lifts a bound, an active gate is a way around it: then the gate must be
    active in the same cases.
    """
    old, new = (True if side is None else side for side in (pair.old, pair.new))
    lifts = any(map(has_liftable_bound, (pair.before, pair.after)))

    def is_narrower(was: State, now: State) -> bool:
        return (was == "false") is (now == "false") if lifts else was == "false" or now != "false"

    suffix = ", and an approval lifts a bound of this pack" if lifts else ""
    yield _condition_difference(pair, old, new, is_narrower, suffix=suffix)


def permission_when(*, absent: bool) -> Comparer:
    """Compare a condition under which a part permits; `absent`: its value without a condition."""

    def compare(pair: Pair) -> Iterator[Difference]:
        old, new = (absent if side is None else side for side in (pair.old, pair.new))
        yield _condition_difference(pair, old, new, lambda was, now: _ELIGIBLE[now] <= _ELIGIBLE[was])

    return compare


def _scope_of(rule: Tree) -> dict[str, frozenset[str]]:
    """Return the values of facts for which a rule applies: elsewhere, its condition does not count."""
    scope: dict[str, frozenset[str]] = {}
    for key, path in SCOPE_FACTS.items():
        named = part_at(rule, ("applies_to", key))
        values = named if isinstance(named, list | tuple) else [] if named is None else [named]
        if values:
            scope[path] = frozenset(map(str, values))
    return scope


def _condition_difference(  # noqa: PLR0913  a comparison, and what its words need
    pair: Pair,
    old: Tree,
    new: Tree,
    is_narrower: IsNarrower,
    *,
    scope: Mapping[str, frozenset[str]] | None = None,
    suffix: str = "",
    gives_same_reason: Callable[[State, State], bool] | None = None,
) -> Difference:
    """Return the effect of a changed condition."""
    transition = format_transition(replace(pair, old=_readable(pair.old), new=_readable(pair.new)), longest=_LONGEST)
    try:
        diagrams = Diagrams([plain(old), plain(new)], scope)
        moves = [move for move in sorted(diagrams.joint_states(*diagrams.roots)) if move[0] != move[1]]
    except DiagramTooLarge:
        return _unknown_effect(transition)
    loosening = [move for move in moves if not is_narrower(*move)]
    tightening = [move for move in moves if not is_narrower(move[1], move[0])]
    if not loosening and not tightening:
        if gives_same_reason is not None and not all(gives_same_reason(*move) for move in moves):
            return Difference(effect="wording", words=f"its condition gives other reasons: {transition}")
        return Difference(effect="metadata", words="its condition is written in another way")
    if loosening and not diagrams.exact:
        return _unknown_effect(transition)
    if loosening and all(was in _MISSES for was, _ in loosening):
        omitted = _omitted_facts(diagrams, loosening[0], plain(old))
        if omitted:
            words = f"its condition no longer restricts requests without {', '.join(omitted)}: {transition}"
            return Difference(effect="changes", words=words)
    effect: Effect = "narrows" if not loosening else "changes" if tightening else "widens"
    words = f"its condition holds in {_direction(moves)}: {transition}{suffix if loosening else ''}"
    return Difference(effect=effect, words=words)


def _unknown_effect(transition: str) -> Difference:
    words = f"cannot tell in which cases its condition holds: {transition}"
    return Difference(effect="changes", words=words, undecided=True)


def _omitted_facts(diagrams: Diagrams, move: Move, old: Json) -> list[str]:
    """Return the facts that are missing in a request for which this move happens."""
    values = diagrams.find([(root, _is_state(state)) for root, state in zip(diagrams.roots, move, strict=True)])
    required = set(required_paths(old))
    return sorted(path for path, value in (values or {}).items() if value is None and path in required)


def _is_state(state: State) -> Callable[[int], bool]:
    return lambda result: state_of(result) == state


def _readable(condition: Tree) -> Tree:
    return None if condition is None else format_condition(plain(condition))


def _direction(moves: Collection[Move]) -> str:
    """Return the first words for a reviewer: whether the condition holds more often or less often."""
    more = any(now in _HOLDS and was not in _HOLDS for was, now in moves)
    fewer = any(was in _HOLDS and now not in _HOLDS for was, now in moves)
    if more is fewer:
        return "other cases" if more else "the same cases, and in others it misses a fact or fails"
    return "more cases" if more else "fewer cases"
