"""Laws of the policy gate about facts: what a condition compares the clock with."""

import re
from collections.abc import Iterator
from datetime import date

from contextplane.authoring.conditions import PlacedCondition, conditions
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import DecisionDocument, Subject
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.policy.clock import CLOCK_FACTS, CLOCK_NUMBERS, CLOCK_TEXTS, LOCAL_CLOCK, is_timezone
from contextplane.policy.logic.solver import path_of
from contextplane.policy.logic.strict import COMPARISONS, ORDERINGS, operation

__all__ = ["DECISION_LAWS", "LAWS"]

_CLOCK_VALUES = (
    'compare run.as_of with a moment in UTC ("2026-12-01T00:00:00Z"), run.date with a date ("2026-12-24"), '
    "run.weekday with 1 (Monday) to 7, run.hour with 0 to 23"
)


def clocks_are_compared_with_times(subject: DecisionDocument) -> Iterator[Violation]:
    """Every clock fact is compared with what a clock can show: all else is never so, or an error."""
    for condition in _clock_conditions(subject):
        for at, path, constant in _clock_comparisons(condition.expression):
            cause = f"the condition of {condition.name} compares {path} with {ascii(constant)[:60]}, which it never is"
            yield Violation(at=condition.at + at, cause=cause, cure=_CLOCK_VALUES)


def clocks_have_a_timezone(subject: Subject) -> Iterator[Violation]:
    """A pack that reads the weekday, the hour or the date has a timezone whose rules are known."""
    timezone = subject.pack.pack_meta.environment_defaults.timezone
    readers = [
        condition.name for condition in _clock_conditions(subject) if not LOCAL_CLOCK.isdisjoint(condition.reads)
    ]
    if readers and not is_timezone(timezone):
        yield Violation(
            at="/pack_meta/environment_defaults/timezone",
            cause=f"the rules of the timezone {timezone!r} are unknown, so what {readers[0]} reads is always missing",
            cure="name a timezone of IANA, such as Asia/Kolkata",
        )


def _clock_conditions(subject: DecisionDocument) -> Iterator[PlacedCondition]:
    for condition in subject.compute_once(conditions):
        if not condition.problems and not CLOCK_FACTS.isdisjoint(condition.reads):
            yield condition


def _clock_comparisons(expression: Json, at: str = "") -> Iterator[tuple[str, str, Json]]:
    """Yield each impossible comparison of a clock fact: its place, the fact, and the constant."""
    operator, operands = operation(expression)
    paths = [path for operand in operands if (path := path_of(operand)) in CLOCK_FACTS and path is not None]
    if paths and operator in COMPARISONS | {"in"}:
        for path in paths:
            for constant in _constants(operator, operands):
                if not _can_show(path, constant, ordered=operator in ORDERINGS):
                    yield at, path, constant
    if isinstance(expression, dict):
        for name, value in expression.items():
            yield from _clock_comparisons(value, at + pointer([name]))
    elif isinstance(expression, list):
        for n, value in enumerate(expression):
            yield from _clock_comparisons(value, f"{at}/{n}")


def _constants(operator: str, operands: list[Json]) -> list[Json]:
    """The constants that a fact is compared with. A search within the text of a fact compares with none."""
    if operator == "in":
        return operands[1] if len(operands) > 1 and isinstance(operands[1], list) else []
    return [operand for operand in operands if not isinstance(operand, dict)]


def _can_show(path: str, constant: Json, *, ordered: bool) -> bool:
    """Whether the clock can show this value, or be ordered with it. Null asks whether there is a clock."""
    if constant is None or isinstance(constant, dict):
        return True
    if path in CLOCK_NUMBERS:
        if isinstance(constant, bool) or not isinstance(constant, int | float):
            return False
        return ordered or constant in CLOCK_NUMBERS[path]
    return isinstance(constant, str) and re.fullmatch(CLOCK_TEXTS[path], constant) is not None and _exists(constant)


def _exists(text: str) -> bool:
    """Whether a date, or a moment, is one of the calendar."""
    try:
        date.fromisoformat(text[:10])
        Timestamp.parse(text if "T" in text else f"{text}T00:00:00Z")
    except (ValueError, InvalidTimestamp):
        return False
    return True


DECISION_LAWS: tuple[Law[DecisionDocument], ...] = (
    Law(gate="policy", code="clock_value_impossible", check=clocks_are_compared_with_times),
)
"""The laws that hold for a decision catalog as well."""

LAWS: tuple[Law[Subject], ...] = (
    *DECISION_LAWS,
    Law(gate="policy", code="clock_timezone_unknown", check=clocks_have_a_timezone),
)
