"""Conditions, compiled once and judged strictly: true, false, or a failure. Many are judged in one call of the engine.

Only true and false are answers. What evaluates to anything else is a failure, and so is what cannot be evaluated or
takes more work than its size justifies. What a failure means is decided by whoever asks.

Whether the evaluation of a condition comes to read a fact, as a condition itself. Pure.

`and`, `or` and `if` stop when their answer is clear, so what stands after is not always read. All other operators read
all of their operands.
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
    ORDERING,
    PER_ELEMENT,
    element_reads,
    failing_without,
    operation,
    strict,
)

__all__ = [
    "Condition",
    "Conditions",
    "Failure",
    "FailureKind",
    "Judgement",
    "budget_of",
    "nothing_missed",
    "plain_paths",
    "reach",
]

_MANY = 64
"""Of an `and`, an `or` or an `if` with more parts than this, every part is taken to be read."""


def plain_paths(expression: Json) -> Iterator[str]:
    """The paths of variables without a default. What a loop does with an element reads that element, and no fact."""
    if isinstance(expression, list):
        for one in expression:
            yield from plain_paths(one)
    elif isinstance(expression, dict):
        operator, operands = operation(expression)
        if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            yield operands[0]
        else:
            yield from plain_paths(_outside_loops(operator, operands))


def reach(expression: Json, path: str) -> Json:
    """An expression that holds exactly when evaluating this one reads the fact at this path; or true, or false.

    It evaluates nothing that this one does not evaluate, and in the same order: where this one has a value, so has it.
    """
    if isinstance(expression, list):
        return _either([reach(one, path) for one in expression])
    if not isinstance(expression, dict):
        return False
    operator, operands = operation(expression)
    if operator == "var":
        return _of_variable(operands, path)
    if operator in {"and", "or"} and len(operands) <= _MANY:
        return _until_clear(operator, operands, path)
    if operator in {"if", "?:"} and len(operands) <= _MANY:
        return _of_choice(operands, path)
    return _either([reach(outside_loop, path) for outside_loop in _outside_loops(operator, operands)])


def nothing_missed(expression: Json) -> Iterator[Json]:
    """Expressions that all hold exactly where this one comes to read no fact that is missing."""
    for path in sorted(set(plain_paths(expression))):
        yield {"!": [_both([reach(expression, path), {"===": [{"var": path}, None]}])]}


def _outside_loops(operator: str, operands: list[Json]) -> list[Json]:
    return [one for n, one in enumerate(operands) if n != 1 or operator not in PER_ELEMENT]


def _of_variable(operands: list[Json], path: str) -> Json:
    """A default is evaluated when there is nothing at the path."""
    if operands == [path]:
        return True
    asked = reach(operands[:1], path)
    default = reach(operands[1:], path)
    return _either([asked, _both([{"!!": [{"missing": operands[:1]}]}, default])])


def _until_clear(operator: str, operands: list[Json], path: str) -> Json:
    ways: list[Json] = []
    passed: list[Json] = []
    for operand in operands:
        here = reach(operand, path)
        ways.append(_both([*passed, here]))
        if here is True:
            break  # whoever comes further came past here
        passed.append({"!!": [operand]} if operator == "and" else {"!": [operand]})
    return _either(ways)


def _of_choice(operands: list[Json], path: str) -> Json:
    if len(operands) < 2:  # noqa: PLR2004
        return reach(operands, path)
    asked, then, *others = operands
    first, chosen, other = reach(asked, path), reach(then, path), _of_choice(others, path)
    if first is True or (chosen is False and other is False):
        return first
    return _either([first, {"if": [asked, chosen, other]}])


def _either(parts: Sequence[Json]) -> Json:
    told = [part for part in parts if part is not False]
    if not told or any(one is True for one in told):
        return bool(told)
    return told[0] if len(told) == 1 else {"or": told}


def _both(parts: Sequence[Json]) -> Json:
    told = [part for part in parts if part is not True]
    if not told or any(one is False for one in told):
        return not told
    return told[0] if len(told) == 1 else {"and": told}


FailureKind = Literal["failed", "too_much_work", "not_boolean"]

ELEMENTS = 1_000
"""How many elements a loop is granted."""

WALKED = 20_000
"""How much an operator that looks into a value is granted: elements of a list, or 64 bytes of text each."""

MOST = 100_000
"""What one condition is granted at most, whatever its size."""

_LOOKS_AT_NOTHING = frozenset({"and", "or", "!", "!!", "if", "?:", "var"})
_NOTHING = frozenset[str]()
_NOWHERE = frozenset[int]()
_REFUSED = {
    NO_LIST: "cannot be evaluated: it goes through what is no list",
    NO_ORDER: "cannot be evaluated: true and false have no order",
    NO_PLACE: "cannot be evaluated: it searches what is neither a list nor a text",
}
_decode = msgspec.json.Decoder().decode
_decode_answers = msgspec.json.Decoder(tuple[list[bool], list[Any]]).decode


class Failure(Value, frozen=True):
    """Why a condition has no answer."""

    kind: FailureKind
    why: str


class Condition:
    """One compiled condition, without problems. `plain` are the facts that it reads and has no default for."""

    def __init__(self, expression: Json) -> None:
        self.expression = expression
        self.strict = strict(expression)
        self.elements = element_reads(expression)
        self.reads = variables(expression)
        self.plain = frozenset(plain_paths(expression))
        self.budget = budget_of(expression)
        self._made: dict[str, datalogic_py.Rule] = {}
        self._reach: dict[str, Json] = {}

    def judge(self, facts: Facts) -> bool | Failure:
        """What it comes to for itself."""
        try:
            text, _ = self._compiled("", lambda: [self.strict]).evaluate_metered(facts.data, budget=self.budget)
        except datalogic_py.DataLogicError as error:
            return _failure(error)
        return answer(_decode(text)[0])

    def missing(self, facts: Facts) -> list[str]:
        """What it comes to read and does not find, where it has an answer. What it has a default for is not missing."""
        plain = [path for path in sorted(self.plain) if self._is_missing(path, facts) and self._reaches(path, facts)]
        return sorted({*plain, *self.missing_of_elements(facts)})

    def missing_of_elements(self, facts: Facts) -> list[str]:
        """What it comes to read of an element that lacks it, where it has an answer."""
        return [
            name
            for name in dict.fromkeys(element.name for element in self.elements)
            if self._fails_without(name, facts)
        ]

    def reach(self, path: str) -> Json:
        """When it reads this fact: always, never, or when an expression holds."""
        found = self._reach.get(path)
        if found is None:
            found = self._reach[path] = reach(self.expression, path)
        return found

    def _is_missing(self, path: str, facts: Facts) -> bool:
        text, _ = self._compiled(f"var {path}", lambda: {"var": path}).evaluate_metered(facts.data)
        return text == "null"

    def _reaches(self, path: str, facts: Facts) -> bool:
        text, _ = self._compiled(f"reach {path}", lambda: [self.reach(path)]).evaluate_metered(facts.data)
        return text == "[true]"

    def _fails_without(self, name: str, facts: Facts) -> bool:
        rule = self._compiled(f"without {name}", lambda: strict(failing_without(self.expression, name)))
        try:
            rule.evaluate_metered(facts.data)
        except datalogic_py.DataLogicError:
            return True  # there is nothing else that it could fail of
        return False

    def _compiled(self, name: str, expression: Callable[[], Json]) -> datalogic_py.Rule:
        """Compiled when first needed: most conditions are only ever judged together with others."""
        rule = self._made.get(name)
        if rule is None:
            rule = self._made[name] = engine().compile(expression())
        return rule


class Judgement(NamedTuple):
    """What conditions came to, in their order: false stands in `answers` for each that has a failure by its place.

    `values` are those of the facts that the conditions read, `missing` those of them that are not there. `perhaps` are
    the places of conditions that may have read something of an element that lacks it.
    """

    answers: Sequence[bool]
    failures: Mapping[int, Failure]
    values: Sequence[Json]
    missing: frozenset[str]
    perhaps: frozenset[int]

    @property
    def lacks(self) -> bool:
        """Whether something may have been read that is not there."""
        return bool(self.missing or self.perhaps)


class Conditions:
    """Conditions that are judged together: one array of one engine call, and one by one when that fails."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._conditions = conditions
        self._paths = sorted(frozenset[str]().union(*(condition.reads for condition in conditions)))
        array: list[Json] = [condition.strict for condition in conditions]
        read: list[Json] = [{"var": path} for path in self._paths]
        self._read = engine().compile(read)
        self._asked: tuple[tuple[tuple[int, str], ...], datalogic_py.Rule] | None = None
        self._array = engine().compile([array, read])
        perhaps = [(n, read.perhaps) for n, condition in enumerate(conditions) for read in condition.elements]
        self._of_elements = [n for n, _ in perhaps]
        self._perhaps = engine().compile([one for _, one in perhaps])
        # No more than any of them is granted alone: so together none can do what it could not do alone. Those that look
        # into no value cannot exceed what they are granted.
        walking = [condition.budget for condition in conditions if condition.budget > WALKED]
        self._budget = (
            min(walking, default=0)
            + sum(condition.budget for condition in conditions if condition.budget <= WALKED)
            + len(read)
        )

    def judge(self, facts: Facts) -> Judgement:
        failures: dict[int, Failure] = {}
        try:
            text, _ = self._array.evaluate_metered(facts.data, budget=self._budget)
            answers, values = _decode_answers(text)
        except (datalogic_py.DataLogicError, msgspec.ValidationError):
            values = _decode(self._read.evaluate_metered(facts.data)[0])
            answers = []
            for n, condition in enumerate(self._conditions):
                failure = condition.judge(facts)
                answers.append(failure is True)
                if isinstance(failure, Failure):
                    failures[n] = failure
        missing = self._missing(values) if None in values else _NOTHING
        perhaps = self._lacking(facts) if self._of_elements else _NOWHERE
        return Judgement(answers, failures, values, missing, perhaps)

    def missed(self, places: Sequence[int], judged: Judgement, facts: Facts) -> Mapping[int, list[str]]:
        """What each of the conditions at these places came to read and did not find, in order.

        Of one that failed it cannot be told how far it came: all the facts that it could have missed.
        """
        found = {n: set(judged.missing & self._conditions[n].plain) for n in places if n in judged.failures}
        answered = [n for n in places if n not in judged.failures]
        for n, path in self._reached(answered, judged.missing, facts) if judged.missing else ():
            found.setdefault(n, set()).add(path)
        for n in judged.perhaps.intersection(answered):
            found.setdefault(n, set()).update(self._conditions[n].missing_of_elements(facts))
        return {n: sorted(names) for n, names in found.items() if names}

    def _reached(self, places: Sequence[int], paths: frozenset[str], facts: Facts) -> list[tuple[int, str]]:
        """Of the conditions at these places, all of which have an answer: which of these facts each comes to read."""
        pairs = [(n, path) for n in places for path in sorted(paths & self._conditions[n].plain)]
        asked = tuple(pair for pair in pairs if not isinstance(self._conditions[pair[0]].reach(pair[1]), bool))
        held = self._held(asked, facts) if asked else set()
        return [pair for pair in pairs if pair in held or self._conditions[pair[0]].reach(pair[1]) is True]

    def _lacking(self, facts: Facts) -> frozenset[int]:
        answers: list[bool] = _decode(self._perhaps.evaluate_metered(facts.data)[0])
        return frozenset(n for n, holds in zip(self._of_elements, answers, strict=True) if holds)

    def _held(self, asked: tuple[tuple[int, str], ...], facts: Facts) -> set[tuple[int, str]]:
        # Held here as well: a request beside this one may keep another in its place meanwhile.
        kept = self._asked
        if kept is None or kept[0] != asked:
            kept = self._asked = asked, engine().compile([self._conditions[n].reach(path) for n, path in asked])
        answers: list[bool] = _decode(kept[1].evaluate_metered(facts.data)[0])
        return {one for one, holds in zip(asked, answers, strict=True) if holds}

    def _missing(self, values: Sequence[Json]) -> frozenset[str]:
        return frozenset(path for path, value in zip(self._paths, values, strict=True) if value is None)


def answer(result: Json) -> bool | Failure:
    """Only true and false are answers: a text, a number, a list or null is none, however JSONLogic would take it."""
    if isinstance(result, bool):
        return result
    kind = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return Failure(kind="not_boolean", why=f"is {kind.get(type(result), 'null')}, neither true nor false")


def budget_of(expression: Json) -> int:
    """How many operations a condition may take, from its size alone.

    Each part counts once. An operator that looks into a value may meet a long one and is granted `WALKED`; what a loop
    does with each element is granted `ELEMENTS` times. The engine charges for every element and for every 64 bytes, so
    what grows while it is evaluated runs out as well.
    """
    return min(MOST, 16 + 2 * _work(expression))


def _work(expression: Json) -> int:
    if isinstance(expression, list):
        return 1 + sum(map(_work, expression))
    if not isinstance(expression, dict):
        return 1
    operator, operands = operation(expression)
    parts = [_work(operand) for operand in operands]
    if operator in PER_ELEMENT and len(parts) > 1:
        parts[1] *= ELEMENTS
    return sum(parts) + (1 if operator in _LOOKS_AT_NOTHING else WALKED)


def _failure(error: datalogic_py.DataLogicError) -> Failure:
    if error.error_type == "BudgetExceeded":
        return Failure(kind="too_much_work", why="takes more work than a condition of its size is granted")
    for refused, why in _REFUSED.items():
        if error.operator == "throw" and f'"{refused}"' in str(error):
            return Failure(kind="failed", why=why)
    operator = _operator(error)
    cause = f": {operator} cannot take what it is given" if operator else ""
    return Failure(kind="failed", why=f"cannot be evaluated{cause}")


def _operator(error: datalogic_py.DataLogicError) -> str | None:
    """The operator that failed. What the strict form adds to an operand belongs to the order that it stands in."""
    above = error.path[-2]["operator"] if error.path and len(error.path) > 1 else None
    return above if error.operator == "+" and above in ORDERING else error.operator
