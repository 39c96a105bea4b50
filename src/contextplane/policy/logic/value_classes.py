"""Classes of values of a fact that no part of a condition tells apart. Pure.

A part that compares one fact with constants can only distinguish values at those constants. So there is a class for
each of them, between each two, on either side, and for each other kind, absence included.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import NamedTuple

import datalogic_py
import msgspec

from contextplane.model.json.canonical import Json, canonical
from contextplane.model.terms import APPROVAL_MODES
from contextplane.policy.clock import CLOCK_NUMBERS
from contextplane.policy.facts import TEXT_FACTS
from contextplane.policy.logic.condition import required_paths
from contextplane.policy.logic.elements import element_reads
from contextplane.policy.logic.expression import engine, is_number
from contextplane.policy.logic.strict import (
    COMPARISONS,
    NULL_MET,
    ORDERINGS,
    literal_names,
    operation,
    possible_kinds,
    reads_without_default,
    strict_form,
)

__all__ = [
    "EMPTY",
    "FAILED",
    "FALSE",
    "FULL",
    "HUGE",
    "MET_NULL",
    "MISSED",
    "NULL",
    "OTHER",
    "RESULTS",
    "TRUE",
    "Axis",
    "IsPossible",
    "Scope",
    "SingleFactTest",
    "constant_result",
    "fact_axis",
    "fact_test",
    "facts_of",
    "numbers_around",
    "unknown_axis",
]

Scope = Mapping[str, frozenset[str]]
"""The values that facts have wherever a rule applies."""

IsPossible = Callable[[str, Json], bool]
"""Whether the fact at a path can have a value; null where it is missing."""

# --- Results, as numbers ---

TRUE, FALSE, NULL, EMPTY, FULL, OTHER, FAILED, MET_NULL = range(8)
"""The value of a part: true, false, null, an empty list, another list, anything else, an error, or null was met."""

MISSED = 8
"""Added to a value when a missing fact was read before."""

RESULTS = 16
"""Every result is a number below."""

_KINDS: Mapping[str, tuple[int, ...]] = {
    "null": (NULL,),
    "boolean": (TRUE, FALSE),
    "array": (EMPTY, FULL),
    "number": (OTHER,),
    "string": (OTHER,),
    "object": (OTHER,),
}


# --- The values of facts, in classes ---

HUGE = 2.0**50
"""From here on, neighbouring numbers are not distinguished."""

_MOST_NEEDLES = 4
_MARK = "\u0001"
_NEXT = "\0"
_EVERY_KIND: tuple[Json, ...] = (None, "", _NEXT, f"{_MARK}other", 0, True, False, [], [0], {"k": 0})
_ALWAYS_GIVEN = frozenset({"intent", "tenant_id", "safety_mode"})
_OBJECTS = frozenset({"request", "user", "agent", "run"})
_TWO = 2


class SingleFactTest(NamedTuple):
    """A part that reads one fact and compares it with constants; `searched`: it searches the fact for one."""

    path: str
    constants: tuple[Json, ...]
    searched: bool = False


def numbers_around(numbers: Sequence[float]) -> Iterator[float]:
    """Each number, one between each two, and one beyond either end."""
    if not numbers:
        return
    yield numbers[0] - 1
    for low, high in pairwise(numbers):
        yield low
        yield (low + high) / 2
    yield numbers[-1]
    yield numbers[-1] + 1


def _read(part: Json) -> tuple[str, list[Json]] | None:
    """The path and the default of a variable whose value depends on nothing else; None for any other part."""
    operator, operands = operation(part)
    path = operands[0] if operator == "var" and operands else None
    if not isinstance(path, str) or not path or any(step[:1].isdigit() for step in path.split(".")):
        return None  # in a list null may stand, which has no default
    default = [] if reads_without_default(operands) else operands[1:]
    return (path, default) if all(map(_is_literal, default)) else None


def _is_literal(value: Json) -> bool:
    return not isinstance(value, dict) and not (isinstance(value, list) and not all(map(_is_scalar, value)))


def _is_scalar(value: Json) -> bool:
    return not isinstance(value, dict | list)


def fact_test(part: Json) -> SingleFactTest | None:
    """What a part reads and compares; None where that is not analysed."""
    operator, operands = operation(part)
    if operator == "var":
        variable = _read(part)
        return (
            None if variable is None else SingleFactTest(variable[0], (True, False, *filter(_is_scalar, variable[1])))
        )
    if operator == "missing":
        names = literal_names(operator, operands) or []
        return SingleFactTest(names[0], ()) if len(names) == 1 and _read({"var": names[0]}) else None
    if operator == "in" and len(operands) == _TWO:
        return _search_test(*operands)
    return _comparison_test(operands) if operator in COMPARISONS else None


def _comparison_test(operands: list[Json]) -> SingleFactTest | None:
    constants = [operand for operand in operands if _is_scalar(operand)]
    paths: set[str] = set()
    for operand in operands:
        variable = _read(operand)
        if variable is not None:
            paths.add(variable[0])
            constants += variable[1]
        elif not _is_scalar(operand):
            return None
    return (
        SingleFactTest(paths.pop(), tuple(constants)) if len(paths) == 1 and all(map(_is_scalar, constants)) else None
    )


def _search_test(needle: Json, place: Json) -> SingleFactTest | None:
    variable = _read(needle)
    if variable is not None and isinstance(place, list) and all(map(_is_scalar, place)):
        return SingleFactTest(variable[0], (*place, *variable[1])) if all(map(_is_scalar, variable[1])) else None
    variable = _read(place)
    return (
        SingleFactTest(variable[0], (needle,), searched=True) if variable is not None and _is_scalar(needle) else None
    )


def _values(parts: Sequence[Json]) -> list[Json] | None:
    """Values of every class that these parts tell apart; None where that is not known."""
    tests = [test for part in parts if (test := fact_test(part)) is not None]
    constants = [constant for test in tests for constant in test.constants if not test.searched]
    needles = [test.constants[0] for test in tests if test.searched]
    if any(is_number(constant) and abs(constant) >= HUGE for constant in [*constants, *needles]):
        return None
    numbers = sorted({float(constant) for constant in constants if is_number(constant)})
    texts = sorted({constant for constant in constants if isinstance(constant, str) and constant})
    near = list(numbers_around(numbers))
    whole = [float(rounded) for number in near for rounded in (math.floor(number), math.ceil(number))]
    values = [*near, *whole, *(text for known in texts for text in (known, known + _NEXT)), *_EVERY_KIND]
    if needles:
        distinct = list({canonical(needle): needle for needle in needles}.values())
        if len(distinct) > _MOST_NEEDLES or any(operation(part)[0] in ORDERINGS for part in parts):
            return None
        values.append([f"{_MARK}other"])
        for size in range(1, len(distinct) + 1):
            for chosen in combinations(distinct, size):
                held = [needle for needle in chosen if isinstance(needle, str)]
                values += [list(chosen), _MARK.join(["", *held, ""])]
    return values


def _possible_values(path: str, values: Sequence[Json], known: frozenset[str] | None) -> list[Json]:
    """The values that a fact can have at all; `known`: those that it has where a rule applies."""
    if path == "safety_mode":
        values = [*values, *APPROVAL_MODES]
    if known is not None:
        values = [*values, *sorted(known)]
    return [value for value in values if _is_possible(path, value, known)]


def _is_possible(path: str, value: Json, known: frozenset[str] | None) -> bool:
    if known is not None:
        return value in known if isinstance(value, str) else False
    if value is None:
        return path not in _ALWAYS_GIVEN and path not in _OBJECTS
    if path in TEXT_FACTS:
        return isinstance(value, str) and bool(value) and (path != "safety_mode" or value in APPROVAL_MODES)
    if path in _OBJECTS or path == "request.context":
        return isinstance(value, dict)
    return path != "request.context.signals" or (isinstance(value, list) and all(isinstance(v, str) for v in value))


class Axis(NamedTuple):
    """A question of a diagram: which class the value of a fact is in, or which result a part has.

    `values` has a value of each class of its fact; it is empty for a part that is not analysed. `results` has, for each
    part that the question decides, the result by class.
    """

    path: str
    values: tuple[Json, ...]
    results: Mapping[bytes, tuple[int, ...]]


def fact_axis(path: str, parts: Sequence[bytes], scope: Scope, is_possible: IsPossible | None = None) -> Axis | None:
    """The classes of values of a fact, and what each of these parts comes to in each; None where unknown.

    The parts are given as canonical JSON.
    """
    if is_possible is None:
        return _general_axis(path, tuple(parts), scope.get(path))
    return _axis(path, tuple(parts), scope.get(path), is_possible)


@lru_cache(1024)
def _general_axis(path: str, parts: tuple[bytes, ...], known: frozenset[str] | None) -> Axis | None:
    """`fact_axis` for any request, cached: several laws ask for the same condition."""
    return _axis(path, parts, known, lambda _path, _value: True)


def _axis(path: str, keys: Sequence[bytes], known: frozenset[str] | None, is_possible: IsPossible) -> Axis | None:
    parts: list[Json] = [msgspec.json.decode(key) for key in keys]
    values = [None, *CLOCK_NUMBERS[path]] if path in CLOCK_NUMBERS else _values(parts)
    if values is None:
        return None
    rules = [_part_rule(key) for key in keys]
    reads = [any(True for _ in required_paths(part)) for part in parts]
    classes: dict[tuple[int, ...], Json] = {}
    for value in _possible_values(path, values, known):
        if is_possible(path, value):
            facts = facts_of({path: value})
            missed = [MISSED if value is None and read else 0 for read in reads]
            results = [_result(rule.evaluate_metered(facts)[0]) for rule in rules]
            classes.setdefault(tuple(map(sum, zip(results, missed, strict=True))), value)
    if not classes:
        return None
    columns = zip(*classes, strict=True)
    return Axis(path, tuple(classes.values()), dict(zip(keys, columns, strict=True)))


_RESULT_OF: Mapping[str, int] = {"[true]": TRUE, "[false]": FALSE, "[null]": NULL, f'"{NULL_MET}"': MET_NULL}


def _result(attempt: str) -> int:
    """The result of a part, from the JSON of a list of its value, or of the reason why it has none."""
    result = _RESULT_OF.get(attempt)
    if result is not None:
        return result
    decoded = msgspec.json.decode(attempt)
    if not isinstance(decoded, list):
        return FAILED
    return (FULL if decoded[0] else EMPTY) if isinstance(decoded[0], list) else OTHER


@lru_cache(4096)
def _part_rule(part: bytes) -> datalogic_py.Rule:
    """The compiled form of a part, given as canonical JSON: the same parts are asked for again and again."""
    return engine().compile({"try": [[strict_form(msgspec.json.decode(part))], {"var": "type"}]})


def facts_of(values: Mapping[str, Json]) -> dict[str, Json]:
    """Facts in which each path leads to its value; null leaves the variable out, as if missing."""
    facts: dict[str, Json] = {}
    for path, value in values.items():
        if value is None:
            continue
        *way, last = path.split(".")
        place = facts
        for step in way:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break  # a longer path through a scalar value: the longer one is missing
            place = inner
        else:
            place[last] = value
    return facts


def unknown_axis(part: Json) -> Axis:
    """A question that any result of this part may answer."""
    values = {value for kind in possible_kinds(part) for value in _KINDS[kind]} | {FAILED}
    if operation(part)[0] != "var":
        values.add(MET_NULL)
    results = sorted(values)
    if any(True for _ in required_paths(part)) or element_reads(part):
        results += [value + MISSED for value in results]
    return Axis("", (), {canonical(part): tuple(results)})


def constant_result(expression: Json) -> int:
    """The result of a part that reads nothing."""
    return _result(_part_rule(canonical(expression)).evaluate_metered({})[0])
