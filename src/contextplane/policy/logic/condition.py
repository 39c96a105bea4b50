"""Conditions: compiled once and judged strictly, many in one call of the engine.

Only true and false are answers. A condition that evaluates to anything else, cannot be evaluated, or takes more work
than its size justifies is a failure; the caller decides what a failure means. A failure names the missing facts that
it comes from, where it comes from those.

The first section computes when the evaluation of a condition reads a fact, as a condition itself: `and`, `or` and `if`
stop when their answer is clear, so what stands after is not always read. All other operators read all of their
operands.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import datalogic_py
import msgspec

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.facts import Facts
from contextplane.policy.logic.elements import element_reads, fail_without
from contextplane.policy.logic.expression import engine, variables
from contextplane.policy.logic.plain_form import Kinds, plain_form
from contextplane.policy.logic.strict import (
    FAILURES,
    MISSING,
    NULL_MET,
    PER_ELEMENT,
    operation,
    reads_without_default,
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
        path = operands[0] if operands else None
        if operator == "var" and isinstance(path, str) and reads_without_default(operands):
            yield from [path] if path else []
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
    """`reads_when` of a variable. A default counts as read when there is nothing at the path, or null."""
    if operands[:1] == [path] and reads_without_default(operands):
        return True
    path_read = reads_when(operands[:1], path)
    default = reads_when(operands[1:], path)
    return _any_of([path_read, _all_of([{"===": [{"var": operands[:1]}, None]}, default])])


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

PART_GRANT = 10
"""The budget of a part, with the checks of its kind."""

_KEPT_RULES = 64
_CONSTANT_WORK = frozenset({"and", "or", "!", "!!", "if", "?:", "var"})
_NOTHING = frozenset[str]()
_VALUES: Kinds = frozenset({str, int, float, bool, type(None), list, dict})
_NOWHERE = frozenset[int]()
_decode = msgspec.json.Decoder().decode
_decode_answers = msgspec.json.Decoder(tuple[list[bool], list[Any]]).decode


class ConditionFailure(Value, frozen=True):
    """Why a condition has no answer. `missing`: the facts that it had missed when it met null."""

    kind: FailureKind
    why: str
    missing: tuple[str, ...] = ()


class CompiledCondition:
    """One compiled condition without problems. `required`: the facts it reads without a default."""

    def __init__(self, expression: Json) -> None:
        self.expression = expression
        self.strict = strict_form(expression)
        self.plain = plain_form(expression)
        self.elements = element_reads(expression)
        self.reads = variables(expression)
        self.required = frozenset(required_paths(expression))
        self.budget = budget_of(expression)
        self._made: dict[str, datalogic_py.Rule] = {}
        self._reads_when: dict[str, Json] = {}

    def judge(self, facts: Facts) -> bool | ConditionFailure:
        """Evaluate the condition by itself."""
        try:
            text, _ = self._compile("", lambda: _attempt(self.strict)).evaluate_metered(facts.data, budget=self.budget)
        except datalogic_py.DataLogicError:
            return _TOO_MUCH_WORK
        result = _decode(text)
        if result != NULL_MET:
            return _outcome(result)
        names = self.may_miss(frozenset(path for path in self.required if self._is_missing(path, facts)))
        return _outcome(result, tuple(name for name in names if self._fails_without(name, facts)))

    def may_miss(self, missing: frozenset[str]) -> list[str]:
        """The names of facts and elements that the evaluation may miss, where these facts are missing."""
        return sorted({*(element.name for element in self.elements), *(missing & self.required)})

    def form_without(self, name: str) -> Json:
        """The strict form, failing with `MISSING` where it reads this name and it is missing."""
        return strict_form(fail_without(self.expression, name))

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
        rule = self._compile(f"reach {path}", lambda: [strict_form(self.reads_when(path))])
        text, _ = rule.evaluate_metered(facts.data)
        return text == "[true]"

    def _fails_without(self, name: str, facts: Facts) -> bool:
        """Whether the evaluation reads this name, and it is missing."""
        rule = self._compile(f"without {name}", lambda: _attempt(self.form_without(name)))
        return bool(_decode(rule.evaluate_metered(facts.data)[0]) == MISSING)

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
    """Conditions that are judged together: in one engine call, and one by one when that fails.

    The call evaluates plain forms where there are any. The values of the facts, which it returns as well, show where
    those do not count.
    """

    def __init__(self, conditions: Sequence[CompiledCondition]) -> None:
        self._conditions = conditions
        self._paths = sorted(frozenset[str]().union(*(condition.reads for condition in conditions)))
        array: list[Json] = [condition.plain.form if condition.plain else condition.strict for condition in conditions]
        plains = [condition.plain for condition in conditions]
        read: list[Json] = [{"var": path} for path in self._paths]
        self._read = engine().compile(read)
        self._rules: dict[Hashable, datalogic_py.Rule] = {}
        self._array = engine().compile([array, read])
        element_checks = [
            (n, element.may_lack) for n, condition in enumerate(conditions) for element in condition.elements
        ]
        self._of_elements = [n for n, _ in element_checks]
        self._readers = [
            [(n, plain.kinds[path]) for n, plain in enumerate(plains) if plain is not None and path in plain.kinds]
            for path in self._paths
        ]
        self._usual = [_VALUES.intersection(*(kinds for _, kinds in readers)) for readers in self._readers]
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
        try:
            text, _ = self._array.evaluate_metered(facts.data, budget=self._budget)
            answers, values = _decode_answers(text)
            doubtful = self._doubtful_places(values)
        except (datalogic_py.DataLogicError, msgspec.ValidationError):
            values = _decode(self._read.evaluate_metered(facts.data)[0])
            answers = [False] * len(self._conditions)
            doubtful = range(len(answers))
        missing = self._missing_paths(values) if None in values else _NOTHING
        failures: dict[int, ConditionFailure] = {}
        for n, answer in self._judge_strictly(tuple(doubtful), missing, facts) if doubtful else ():
            answers[n] = answer is True
            if isinstance(answer, ConditionFailure):
                failures[n] = answer
        may_lack = self._lacking_elements(facts) if self._of_elements else _NOWHERE
        return Judgement(answers, failures, values, missing, may_lack)

    def _judge_strictly(
        self, places: tuple[int, ...], missing: frozenset[str], facts: Facts
    ) -> Iterator[tuple[int, bool | ConditionFailure]]:
        """Evaluate the strict forms of these conditions.

        Together, and each alone if that is more work than is granted to all.
        """
        conditions = self._conditions
        rule = self._rule(places, lambda: [_attempt(conditions[n].strict) for n in places])
        try:
            results = _decode(rule.evaluate_metered(facts.data, budget=self._budget)[0])
        except datalogic_py.DataLogicError:
            yield from ((n, conditions[n].judge(facts)) for n in places)
            return
        met_null = [n for n, result in zip(places, results, strict=True) if result == NULL_MET]
        pairs = tuple((n, name) for n in met_null for name in conditions[n].may_miss(missing))
        lacking: dict[int, list[str]] = {n: [] for n in met_null}
        if pairs:
            rule = self._rule(pairs, lambda: [_attempt(conditions[n].form_without(name)) for n, name in pairs])
            for (n, name), result in zip(pairs, _decode(rule.evaluate_metered(facts.data)[0]), strict=True):
                lacking[n] += [name] if result == MISSING else []
        for n, result in zip(places, results, strict=True):
            yield n, _outcome(result, tuple(lacking.get(n, ())))

    def _rule(self, key: Hashable, forms: Callable[[], Json]) -> datalogic_py.Rule:
        """Compile further forms, once: requests that lack something are much alike."""
        rule = self._rules.get(key)
        if rule is None:
            if len(self._rules) >= _KEPT_RULES:
                self._rules.clear()
            rule = self._rules[key] = engine().compile(forms())
        return rule

    def _doubtful_places(self, values: Sequence[Json]) -> Collection[int]:
        """The places of conditions that a fact of an unusual kind leaves to their strict form."""
        unusual = [
            (type(value), readers)
            for value, usual, readers in zip(values, self._usual, self._readers, strict=True)
            if type(value) not in usual
        ]
        return sorted({n for kind, readers in unusual for n, kinds in readers if kind not in kinds}) if unusual else ()

    def missing_facts(self, places: Sequence[int], judgement: Judgement, facts: Facts) -> Mapping[int, list[str]]:
        """The missing facts that each of the conditions at these places read, sorted.

        How far a failed condition came is not known, unless it met null: all the facts that it could have missed.
        """
        missing = {
            n: set(judgement.failures[n].missing or judgement.missing & self._conditions[n].required)
            for n in places
            if n in judgement.failures
        }
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
        answers: list[Json] = []
        if undecided:
            rule = self._rule(
                ("read", *undecided),
                lambda: [strict_form(self._conditions[n].reads_when(path)) for n, path in undecided],
            )
            answers = _decode(rule.evaluate_metered(facts.data)[0])
        read = {pair for pair, holds in zip(undecided, answers, strict=True) if holds}
        return [pair for pair in pairs if pair in read or self._conditions[pair[0]].reads_when(pair[1]) is True]

    def _lacking_elements(self, facts: Facts) -> frozenset[int]:
        answers: list[bool] = _decode(self._may_lack.evaluate_metered(facts.data)[0])
        return frozenset(n for n, holds in zip(self._of_elements, answers, strict=True) if holds)

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

    Each part counts `PART_GRANT`. An operator that looks into a value may meet a long one and is granted `WALK_GRANT`;
    the body of a loop is granted `ELEMENTS_GRANT` times. The engine charges for every element and for every 64 bytes,
    so what grows during the evaluation runs out as well.
    """
    return min(MAX_BUDGET, 16 + 2 * _work(expression))


def _work(expression: Json) -> int:
    if isinstance(expression, list):
        return PART_GRANT + sum(map(_work, expression))
    if not isinstance(expression, dict):
        return PART_GRANT
    operator, operands = operation(expression)
    parts = [_work(operand) for operand in operands]
    if operator in PER_ELEMENT and len(parts) > 1:
        parts[1] *= ELEMENTS_GRANT
    return sum(parts) + (PART_GRANT if operator in _CONSTANT_WORK else WALK_GRANT)


def _attempt(form: Json) -> Json:
    """A form whose value is a list of the value of this one, or the reason why that has none.

    An error that leaves the engine takes ten times as long.
    """
    return {"try": [[form], {"var": "type"}]}


def _outcome(result: Json, missing: tuple[str, ...] = ()) -> bool | ConditionFailure:
    """The answer or the failure that an attempt resulted in."""
    if isinstance(result, list):
        return as_answer(result[0])
    reason = FAILURES.get(str(result), "an operator in it cannot take what it is given")
    return ConditionFailure(kind="failed", why=f"cannot be evaluated: {reason}", missing=missing)


_TOO_MUCH_WORK = ConditionFailure(kind="too_much_work", why="takes more work than a condition of its size is granted")
