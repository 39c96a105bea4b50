"""Decision diagrams: what conditions come to, for all facts at once. Pure.

A diagram asks for the value of one fact after the other, and ends in a result. The values of a fact are grouped into
classes that no part of the conditions tells apart: a class for each constant that the fact is compared with, between
each two of them, on either side, and for each other kind, absence included. So a diagram covers every request.

A part that is not analysed (a sum, a loop, a comparison of two facts) is a question of its own, which every result that
its operator can have may answer. A diagram with such a question covers more than can happen: what it rules out is
impossible, and what it leaves open may be.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Literal

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json, canonical
from contextplane.policy.logic.elements import element_reads
from contextplane.policy.logic.expression import logic_problems, variables
from contextplane.policy.logic.strict import literal_names, operation
from contextplane.policy.logic.value_classes import (
    FAILED,
    FALSE,
    FULL,
    MET_NULL,
    MISSED,
    NULL,
    OTHER,
    RESULTS,
    TRUE,
    Axis,
    IsPossible,
    Scope,
    constant_result,
    fact_axis,
    fact_test,
    unknown_axis,
)

__all__ = ["STATES", "DiagramTooLarge", "Diagrams", "State", "state_of", "truth_of"]

State = Literal["true", "false", "true_missing", "false_missing", "unknown", "failed"]
"""What a run makes of a condition. `true_missing`, `false_missing`: it came to that with null in place of a missing
fact. `unknown`: it met that null, and has no answer. `failed`: it cannot be evaluated, or is neither true nor false."""

STATES: tuple[State, ...] = ("true", "false", "true_missing", "false_missing", "unknown", "failed")


class DiagramTooLarge(ContextPlaneError):
    """A diagram with more nodes than are granted. What it would show is unknown."""

    code: ClassVar[str] = "diagram_too_large"
    family: ClassVar[Family] = "refused"

    def __init__(self) -> None:
        super().__init__("the conditions have too many cases to be compared", hint="read fewer facts in one condition")


_KEEP = -1
"""In place of a diagram: the result of the test itself."""

_TRUTHY = frozenset({TRUE, FULL})
_ERRORS = frozenset({FAILED, MET_NULL})


def state_of(result: int) -> State:
    """What a run makes of a condition with this result."""
    value, missed = result % MISSED, result >= MISSED
    if value in {TRUE, FALSE}:
        name: State = "true" if value == TRUE else "false"
        return f"{name}_missing" if missed else name  # type: ignore[return-value]
    return "unknown" if value == MET_NULL and missed else "failed"


def truth_of(result: int) -> bool | None:
    """Whether a part with this result holds, as an operand of `and`; None: it cannot be evaluated."""
    value = result % MISSED
    return None if value in _ERRORS or value == OTHER else value in _TRUTHY


# --- Diagrams ---

MAX_STEPS = 20_000
"""The steps that are granted to one set of conditions."""

_MOST_AXES = 200

_JOINING = frozenset({"and", "or"})
_CHOICES = frozenset({"if", "?:"})
_MAX_TRACED = 64


class Diagrams:
    """Diagrams of some conditions, over the same questions in the same order.

    `scope`: the values that facts have where the conditions count. `is_possible`: whether a fact can have a value, or
    be missing (null). `exact`: every part was analysed, so that all that a diagram leaves open can happen.
    """

    def __init__(
        self, expressions: Sequence[Json], scope: Scope | None = None, *, is_possible: IsPossible | None = None
    ) -> None:
        self._left = MAX_STEPS
        self._axes: list[Axis] = []
        self._places: dict[bytes, int] = {}
        self._nodes: list[tuple[int, tuple[int, ...]]] = []
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._selected: dict[tuple[int, int, int], int] = {}
        self._mapped: dict[tuple[str, int], int] = {}
        self.exact = True
        for expression in expressions:
            if logic_problems(expression):
                raise DiagramTooLarge
        self._ask(expressions, scope or {}, is_possible)
        self.roots = tuple(self._diagram(expression) for expression in expressions)

    def joint_results(self, first: int, second: int) -> frozenset[tuple[int, int]]:
        """The pairs of results that two diagrams can come to for the same facts."""
        known: dict[tuple[int, int], frozenset[tuple[int, int]]] = {}

        def visit(a: int, b: int) -> frozenset[tuple[int, int]]:
            if a < RESULTS and b < RESULTS:
                return frozenset({(a, b)})
            pairs = known.get((a, b))
            if pairs is None:
                self._count()
                axis = min(self._axis(a), self._axis(b))
                parts = (visit(*both) for both in zip(self._below(a, axis), self._below(b, axis), strict=True))
                pairs = known[a, b] = frozenset[tuple[int, int]]().union(*parts)
            return pairs

        return visit(first, second)

    def joint_states(self, first: int, second: int) -> frozenset[tuple[State, State]]:
        """The pairs of states that two conditions can be in for the same facts."""
        return frozenset((state_of(a), state_of(b)) for a, b in self.joint_results(first, second))

    def find(self, demands: Sequence[tuple[int, Callable[[int], bool]]]) -> dict[str, Json] | None:
        """Values of facts for which each of these diagrams comes to a demanded result; None: impossible.

        A fact that is not named may have any value. The values of parts that are not analysed are left open.
        """
        node = TRUE
        for root, is_demanded in demands:
            node = self._select(self._map_results(root, is_demanded), node, FALSE)
        if node == FALSE:
            return None
        values: dict[str, Json] = {}
        while node != TRUE:
            axis, children = self._nodes[node - RESULTS]
            # No node has false children only: it would be false itself.
            place = next(n for n, child in enumerate(children) if child != FALSE)
            if self._axes[axis].values:
                values[self._axes[axis].path] = self._axes[axis].values[place]
            node = children[place]
        return values

    def _map_results(self, root: int, is_demanded: Callable[[int], bool]) -> int:
        """The diagram that is true where this one comes to a demanded result, else false."""
        known: dict[int, int] = {}

        def visit(node: int) -> int:
            if node < RESULTS:
                return TRUE if is_demanded(node) else FALSE
            mapped = known.get(node)
            if mapped is None:
                self._count()
                axis, children = self._nodes[node - RESULTS]
                mapped = known[node] = self._node(axis, tuple(visit(child) for child in children))
            return mapped

        return visit(root)

    # --- Questions ---

    def _ask(self, expressions: Sequence[Json], scope: Scope, is_possible: IsPossible | None) -> None:
        """Collect the questions of all conditions, in the order in which they are read."""
        tests: dict[str, dict[bytes, Json]] = {}
        order: dict[str | bytes, Json] = {}
        for part in (part for expression in expressions for part in _leaves(expression)):
            test, key = fact_test(part), canonical(part)
            if test is None:
                order.setdefault(key, part)
            else:
                order.setdefault(test.path, None)
                tests.setdefault(test.path, {})[key] = part
        paths = [name for name in order if isinstance(name, str)]
        if any(longer.startswith(f"{path}.") for path in paths for longer in paths):
            self.exact = False  # not every value of a path fits to one of a path within it
        for name, part in order.items():
            if isinstance(name, bytes):
                self._add_unknown(part)
                continue
            axis = fact_axis(name, [*tests[name]], scope, is_possible)
            if axis is not None:
                self._add(axis)
            else:
                for unsolved in tests[name].values():
                    self._add_unknown(unsolved)

    def _add_unknown(self, part: Json) -> None:
        self.exact = False
        self._add(unknown_axis(part))

    def _add(self, axis: Axis) -> None:
        if len(self._axes) >= _MOST_AXES:
            raise DiagramTooLarge
        self._places |= dict.fromkeys(axis.results, len(self._axes))
        self._axes.append(axis)

    # --- From an expression to its diagram ---

    def _diagram(self, expression: Json) -> int:
        if _is_constant(expression):
            return constant_result(expression)
        operator, operands = _junction(expression)
        if operator in _JOINING:
            node = self._truth(operands[-1])
            for operand in reversed(operands[:-1]):
                test = self._truth(operand)
                node = self._select(test, node, _KEEP) if operator == "and" else self._select(test, _KEEP, node)
            return node
        if operator in {"!", "!!"}:
            yes, no = (FALSE, TRUE) if operator == "!" else (TRUE, FALSE)
            return self._select(self._truth(operands[0]), yes, no)
        if operator in _CHOICES:
            node = self._diagram(operands[-1]) if len(operands) % 2 else NULL
            for n in reversed(range(0, len(operands) - 1, 2)):
                node = self._select(self._truth(operands[n]), self._diagram(operands[n + 1]), node)
            return node
        key = canonical(expression)
        place = self._places[key]
        return self._node(place, self._axes[place].results[key])

    def _truth(self, expression: Json) -> int:
        """The diagram of a part in a place where its truth counts: a text or a number is an error there."""
        return self._map("truth", self._diagram(expression))

    def _map(self, kind: Literal["truth", "missed"], node: int) -> int:
        if node < RESULTS:
            if kind == "missed":
                return node | MISSED
            return FAILED + (node & MISSED) if node % MISSED == OTHER else node
        mapped = self._mapped.get((kind, node))
        if mapped is None:
            self._count()
            axis, children = self._nodes[node - RESULTS]
            mapped = self._mapped[kind, node] = self._node(axis, tuple(self._map(kind, child) for child in children))
        return mapped

    def _select(self, test: int, yes: int, no: int) -> int:
        """The diagram of `yes` where the test holds, of `no` where not, and of the test where it fails."""
        if test < RESULTS:
            truth = truth_of(test)
            chosen = _KEEP if truth is None else yes if truth else no
            if chosen == _KEEP:
                return test
            return self._map("missed", chosen) if test >= MISSED else chosen
        selected = self._selected.get((test, yes, no))
        if selected is None:
            self._count()
            axis = min(map(self._axis, (test, yes, no)))
            rows = zip(*(self._below(node, axis) for node in (test, yes, no)), strict=True)
            selected = self._node(axis, tuple(self._select(*row) for row in rows))
            self._selected[test, yes, no] = selected
        return selected

    def _axis(self, node: int) -> int:
        return len(self._axes) if node < RESULTS else self._nodes[node - RESULTS][0]

    def _below(self, node: int, axis: int) -> Sequence[int]:
        """The diagrams below a node by the answers to one question."""
        if self._axis(node) == axis:
            return self._nodes[node - RESULTS][1]
        count = len(next(iter(self._axes[axis].results.values())))
        return (node,) * count

    def _node(self, axis: int, children: tuple[int, ...]) -> int:
        """The node with these children, once; a question that decides nothing is left out."""
        if all(child == children[0] for child in children):
            return children[0]
        key = (axis, children)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._nodes) + RESULTS
            self._nodes.append(key)
        return number

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise DiagramTooLarge


def _junction(expression: Json) -> tuple[str, list[Json]]:
    """The operator and the operands of a part that is made of truths; an empty operator for others."""
    operator, operands = operation(expression)
    if operator == "missing":
        names = literal_names(operator, operands) or []
        return ("or", [{"missing": [name]} for name in names]) if len(names) > 1 else ("", [])
    is_traced = operator in {"!", "!!"} or (operator in _JOINING | _CHOICES and len(operands) <= _MAX_TRACED)
    return (operator, operands) if is_traced else ("", [])


def _leaves(expression: Json) -> Iterator[Json]:
    """The parts that are not made of truths and read something, in the order in which they are read."""
    operator, operands = _junction(expression)
    if operator:
        for operand in operands:
            yield from _leaves(operand)
    elif not _is_constant(expression):
        yield expression


def _is_constant(expression: Json) -> bool:
    return not isinstance(expression, dict | list) or not (variables(expression) or element_reads(expression))
