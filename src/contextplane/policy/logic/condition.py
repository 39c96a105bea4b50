"""Conditions: compiled once and judged strictly, many in one call of the engine.

Only true and false are answers. A condition that evaluates to anything else, cannot be evaluated, or takes more work
than its size justifies is a failure; the caller decides what a failure means.

The first section computes when the evaluation of a condition reads a fact, as a condition itself: `and`, `or` and `if`
stop when their answer is clear, so what stands after is not always read. All other operators read all of their
operands.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import datalogic_py
import msgspec

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.facts import Facts
from contextplane.policy.logic.expression import engine, variables
from contextplane.policy.logic.strict import (
    NO_LIST,
    NO_ORDER,
    NO_PLACE,
    ORDERINGS,
    PER_ELEMENT,
    element_reads,
    fail_without,
    operation,
    strict_form,
)

__all__ = [
    "CompiledCondition",
    "ConditionBatch",
    "ConditionFailure",
    "FailureKind",
    "Judgement",
    "budget_of",
    "no_missing_reads",
    "reads_when",
    "required_paths",
]

# --- When a condition reads a fact ---

_MAX_TRACED = 64
"""Of an `and`, `or` or `if` with more parts than this, every part is assumed to be read."""


def required_paths(expression: Json) -> Iterator[str]:
    """The paths of variables without a default. The body of a loop reads elements, and no facts."""
    if isinstance(expression, list):
        for part in expression:
            yield from required_paths(part)
    elif isinstance(expression, dict):
        operator, operands = operation(expression)
        if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            yield operands[0]
        else:
            yield from required_paths(_outside_loops(operator, operands))


def reads_when(expression: Json, path: str) -> Json:
    """An expression that holds exactly when evaluating this one reads the fact at this path.

    Or true, or false. It evaluates nothing that this one does not evaluate, and in the same order: where this one has a
    value, so has it.
    """
    if isinstance(expression, list):
        return _any_of([reads_when(part, path) for part in expression])
    if not isinstance(expression, dict):
        return False
    operator, operands = operation(expression)
    if operator == "var":
        return _variable_reads_when(operands, path)
    if operator in {"and", "or"} and len(operands) <= _MAX_TRACED:
        return _junction_reads_when(operator, operands, path)
    if operator in {"if", "?:"} and len(operands) <= _MAX_TRACED:
        return _choice_reads_when(operands, path)
    return _any_of([reads_when(operand, path) for operand in _outside_loops(operator, operands)])


def no_missing_reads(expression: Json) -> Iterator[Json]:
    """Expressions that all hold exactly where this one reads no missing fact."""
    for path in sorted(set(required_paths(expression))):
        yield {"!": [_all_of([reads_when(expression, path), {"===": [{"var": path}, None]}])]}


def _outside_loops(operator: str, operands: list[Json]) -> list[Json]:
    return [operand for n, operand in enumerate(operands) if n != 1 or operator not in PER_ELEMENT]


def _variable_reads_when(operands: list[Json], path: str) -> Json:
    """`reads_when` of a variable. A default is evaluated when there is nothing at the path."""
    if operands == [path]:
        return True
    path_read = reads_when(operands[:1], path)
    default = reads_when(operands[1:], path)
    return _any_of([path_read, _all_of([{"!!": [{"missing": operands[:1]}]}, default])])


def _junction_reads_when(operator: str, operands: list[Json], path: str) -> Json:
    ways: list[Json] = []
    passed: list[Json] = []
    for operand in operands:
        here = reads_when(operand, path)
        ways.append(_all_of([*passed, here]))
        if here is True:
            break  # an evaluation that comes further has read it already
        passed.append({"!!": [operand]} if operator == "and" else {"!": [operand]})
    return _any_of(ways)


def _choice_reads_when(operands: list[Json], path: str) -> Json:
    if len(operands) < 2:  # noqa: PLR2004
        return reads_when(operands, path)
    test, then, *others = operands
    first, chosen, other = reads_when(test, path), reads_when(then, path), _choice_reads_when(others, path)
    if first is True or (chosen is False and other is False):
        return first
    return _any_of([first, {"if": [test, chosen, other]}])


def _any_of(parts: Sequence[Json]) -> Json:
    open_parts = [part for part in parts if part is not False]
    if not open_parts or any(part is True for part in open_parts):
        return bool(open_parts)
    return open_parts[0] if len(open_parts) == 1 else {"or": open_parts}


def _all_of(parts: Sequence[Json]) -> Json:
    open_parts = [part for part in parts if part is not True]
    if not open_parts or any(part is False for part in open_parts):
        return not open_parts
    return open_parts[0] if len(open_parts) == 1 else {"and": open_parts}


# --- Compiled conditions ---

FailureKind = Literal["failed", "too_much_work", "not_boolean"]

ELEMENTS_GRANT = 1_000
"""The number of elements that a loop may visit within its budget."""

WALK_GRANT = 20_000
"""The budget of an operator that looks into a value, per element of a list or 64 bytes of text."""

MAX_BUDGET = 100_000
"""The largest budget of one condition, of any size."""

_CONSTANT_WORK = frozenset({"and", "or", "!", "!!", "if", "?:", "var"})
_NOTHING = frozenset[str]()
_NOWHERE = frozenset[int]()
_REFUSED = {
    NO_LIST: "cannot be evaluated: it goes through what is no list",
    NO_ORDER: "cannot be evaluated: true and false have no order",
    NO_PLACE: "cannot be evaluated: it searches what is neither a list nor a text",
}
_decode = msgspec.json.Decoder().decode
_decode_answers = msgspec.json.Decoder(tuple[list[bool], list[Any]]).decode


class ConditionFailure(Value, frozen=True):
    """Why a condition has no answer."""

    kind: FailureKind
    why: str


class CompiledCondition:
    """One compiled condition without problems. `required`: the facts it reads without a default."""

    def __init__(self, expression: Json) -> None:
        self.expression = expression
        self.strict = strict_form(expression)
        self.elements = element_reads(expression)
        self.reads = variables(expression)
        self.required = frozenset(required_paths(expression))
        self.budget = budget_of(expression)
        self._made: dict[str, datalogic_py.Rule] = {}
        self._reads_when: dict[str, Json] = {}

    def judge(self, facts: Facts) -> bool | ConditionFailure:
        """Evaluate the condition by itself."""
        try:
            text, _ = self._compile("", lambda: [self.strict]).evaluate_metered(facts.data, budget=self.budget)
        except datalogic_py.DataLogicError as error:
            return _failure(error)
        return as_answer(_decode(text)[0])

    def missing_facts(self, facts: Facts) -> list[str]:
        """Paths the evaluation reads that are absent and have no default. The condition has an answer."""
        required = [
            path for path in sorted(self.required) if self._is_missing(path, facts) and self._reaches(path, facts)
        ]
        return sorted({*required, *self.missing_element_facts(facts)})

    def missing_element_facts(self, facts: Facts) -> list[str]:
        """What the evaluation reads of list elements that lack it. The condition has an answer."""
        return [
            name
            for name in dict.fromkeys(element.name for element in self.elements)
            if self._fails_without(name, facts)
        ]

    def reads_when(self, path: str) -> Json:
        """When the condition reads this fact: true, false, or an expression. Cached."""
        condition = self._reads_when.get(path)
        if condition is None:
            condition = self._reads_when[path] = reads_when(self.expression, path)
        return condition

    def _is_missing(self, path: str, facts: Facts) -> bool:
        text, _ = self._compile(f"var {path}", lambda: {"var": path}).evaluate_metered(facts.data)
        return text == "null"

    def _reaches(self, path: str, facts: Facts) -> bool:
        text, _ = self._compile(f"reach {path}", lambda: [self.reads_when(path)]).evaluate_metered(facts.data)
        return text == "[true]"

    def _fails_without(self, name: str, facts: Facts) -> bool:
        rule = self._compile(f"without {name}", lambda: strict_form(fail_without(self.expression, name)))
        try:
            rule.evaluate_metered(facts.data)
        except datalogic_py.DataLogicError:
            return True  # nothing else in it can fail
        return False

    def _compile(self, name: str, expression: Callable[[], Json]) -> datalogic_py.Rule:
        """Compile when first needed: most conditions are only ever judged together with others."""
        rule = self._made.get(name)
        if rule is None:
            rule = self._made[name] = engine().compile(expression())
        return rule


class Judgement(NamedTuple):
    """The results of conditions, in their order.

    `answers` holds false for a condition whose place is in `failures`. `values` are those of the facts that the
    conditions read, `missing` the paths of the absent ones. `may_lack` are the places of conditions that may have read
    something of an element that lacks it.
    """

    answers: Sequence[bool]
    failures: Mapping[int, ConditionFailure]
    values: Sequence[Json]
    missing: frozenset[str]
    may_lack: frozenset[int]

    @property
    def has_missing(self) -> bool:
        """Whether something absent may have been read."""
        return bool(self.missing or self.may_lack)


class ConditionBatch:
    """Conditions that are judged together: in one engine call, and one by one when that fails."""

    def __init__(self, conditions: Sequence[CompiledCondition]) -> None:
        self._conditions = conditions
        self._paths = sorted(frozenset[str]().union(*(condition.reads for condition in conditions)))
        array: list[Json] = [condition.strict for condition in conditions]
        read: list[Json] = [{"var": path} for path in self._paths]
        self._read = engine().compile(read)
        self._last_pairs: tuple[tuple[tuple[int, str], ...], datalogic_py.Rule] | None = None
        self._array = engine().compile([array, read])
        element_checks = [
            (n, element.may_lack) for n, condition in enumerate(conditions) for element in condition.elements
        ]
        self._of_elements = [n for n, _ in element_checks]
        self._may_lack = engine().compile([may_lack for _, may_lack in element_checks])
        # The smallest budget of those that look into values: together none can do what it could not do alone. The
        # others cannot exceed their budget.
        walking = [condition.budget for condition in conditions if condition.budget > WALK_GRANT]
        self._budget = (
            min(walking, default=0)
            + sum(condition.budget for condition in conditions if condition.budget <= WALK_GRANT)
            + len(read)
        )

    def judge(self, facts: Facts) -> Judgement:
        """Evaluate all conditions over the facts."""
        failures: dict[int, ConditionFailure] = {}
        try:
            text, _ = self._array.evaluate_metered(facts.data, budget=self._budget)
            answers, values = _decode_answers(text)
        except (datalogic_py.DataLogicError, msgspec.ValidationError):
            values = _decode(self._read.evaluate_metered(facts.data)[0])
            answers = []
            for n, condition in enumerate(self._conditions):
                answer = condition.judge(facts)
                answers.append(answer is True)
                if isinstance(answer, ConditionFailure):
                    failures[n] = answer
        missing = self._missing_paths(values) if None in values else _NOTHING
        may_lack = self._lacking_elements(facts) if self._of_elements else _NOWHERE
        return Judgement(answers, failures, values, missing, may_lack)

    def missing_facts(self, places: Sequence[int], judgement: Judgement, facts: Facts) -> Mapping[int, list[str]]:
        """The missing facts that each of the conditions at these places read, sorted.

        How far a failed condition came is not known: all the facts that it could have missed.
        """
        missing = {n: set(judgement.missing & self._conditions[n].required) for n in places if n in judgement.failures}
        answered = [n for n in places if n not in judgement.failures]
        for n, path in self._facts_read(answered, judgement.missing, facts) if judgement.missing else ():
            missing.setdefault(n, set()).add(path)
        for n in judgement.may_lack.intersection(answered):
            missing.setdefault(n, set()).update(self._conditions[n].missing_element_facts(facts))
        return {n: sorted(names) for n, names in missing.items() if names}

    def _facts_read(self, places: Sequence[int], paths: frozenset[str], facts: Facts) -> list[tuple[int, str]]:
        """Which of these facts each of the conditions at these places reads. All of them have an answer."""
        pairs = [(n, path) for n in places for path in sorted(paths & self._conditions[n].required)]
        undecided = tuple(pair for pair in pairs if not isinstance(self._conditions[pair[0]].reads_when(pair[1]), bool))
        read = self._pairs_read(undecided, facts) if undecided else set()
        return [pair for pair in pairs if pair in read or self._conditions[pair[0]].reads_when(pair[1]) is True]

    def _lacking_elements(self, facts: Facts) -> frozenset[int]:
        answers: list[bool] = _decode(self._may_lack.evaluate_metered(facts.data)[0])
        return frozenset(n for n, holds in zip(self._of_elements, answers, strict=True) if holds)

    def _pairs_read(self, pairs: tuple[tuple[int, str], ...], facts: Facts) -> set[tuple[int, str]]:
        # Read once: a concurrent request may replace it meanwhile.
        last = self._last_pairs
        if last is None or last[0] != pairs:
            last = self._last_pairs = (
                pairs,
                engine().compile([self._conditions[n].reads_when(path) for n, path in pairs]),
            )
        answers: list[bool] = _decode(last[1].evaluate_metered(facts.data)[0])
        return {pair for pair, holds in zip(pairs, answers, strict=True) if holds}

    def _missing_paths(self, values: Sequence[Json]) -> frozenset[str]:
        return frozenset(path for path, value in zip(self._paths, values, strict=True) if value is None)


def as_answer(result: Json) -> bool | ConditionFailure:
    """The result as an answer: anything but true and false is a failure, also where JSONLogic is lax."""
    if isinstance(result, bool):
        return result
    kind = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return ConditionFailure(kind="not_boolean", why=f"is {kind.get(type(result), 'null')}, neither true nor false")


def budget_of(expression: Json) -> int:
    """The operations that a condition may take, from its size alone.

    Each part counts once. An operator that looks into a value may meet a long one and is granted `WALK_GRANT`; the body
    of a loop is granted `ELEMENTS_GRANT` times. The engine charges for every element and for every 64 bytes, so what
    grows during the evaluation runs out as well.
    """
    return min(MAX_BUDGET, 16 + 2 * _work(expression))


def _work(expression: Json) -> int:
    if isinstance(expression, list):
        return 1 + sum(map(_work, expression))
    if not isinstance(expression, dict):
        return 1
    operator, operands = operation(expression)
    parts = [_work(operand) for operand in operands]
    if operator in PER_ELEMENT and len(parts) > 1:
        parts[1] *= ELEMENTS_GRANT
    return sum(parts) + (1 if operator in _CONSTANT_WORK else WALK_GRANT)


def _failure(error: datalogic_py.DataLogicError) -> ConditionFailure:
    if error.error_type == "BudgetExceeded":
        return ConditionFailure(kind="too_much_work", why="takes more work than a condition of its size is granted")
    for refused, why in _REFUSED.items():
        if error.operator == "throw" and f'"{refused}"' in str(error):
            return ConditionFailure(kind="failed", why=why)
    operator = _failed_operator(error)
    cause = f": {operator} cannot take what it is given" if operator else ""
    return ConditionFailure(kind="failed", why=f"cannot be evaluated{cause}")


def _failed_operator(error: datalogic_py.DataLogicError) -> str | None:
    """The operator that failed. An addition of the strict form belongs to the order around it."""
    above = error.path[-2]["operator"] if error.path and len(error.path) > 1 else None
    return above if error.operator == "+" and above in ORDERINGS else error.operator
