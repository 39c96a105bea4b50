"""The public JSONLogic suite, written down as data: both evaluators answer as it says."""

import itertools
import json
from pathlib import Path
from typing import Any

import datalogic_py

from contextplane.policy.logic.expression import engine, logic_problems
from contextplane.policy.logic.strict import OPERATORS, strict_form
from tests.support.cases import cases
from tests.support.oracle_logic import Unanswerable, evaluate

CASES = Path(__file__).resolve().parents[2] / "cases" / "jsonlogic"
SUITE: list[dict[str, Any]] = [
    case for path in sorted(CASES.glob("*.json")) for case in json.loads(path.read_text(encoding="utf-8"))
]


def shown(case: dict[str, Any]) -> str:
    return json.dumps([case["rule"], case["data"]])[:90]


def same(any_: Any, other: Any) -> bool:  # noqa: ANN401  any JSON
    return json.dumps(any_) == json.dumps(other) or (
        any_ == other and isinstance(any_, float | int) and not isinstance(any_, bool)
    )


def first(rule: Any, data: Any) -> Any:  # noqa: ANN401
    """The value of a rule in its strict form."""
    try:
        return json.loads(engine().compile([strict_form(rule)]).evaluate_metered(data)[0])[0]
    except datalogic_py.DataLogicError:
        return "error"


def second(rule: Any, data: Any) -> Any:  # noqa: ANN401
    """The value of a rule in the second evaluator."""
    try:
        return evaluate(rule, data, set())
    except Unanswerable:
        return "error"


@cases("case", SUITE, ids=shown)
def test_the_engine_answers_as_the_public_suite_says_and_strictly_or_with_an_error(case: dict[str, Any]) -> None:
    assert same(json.loads(engine().compile([case["rule"]]).evaluate_metered(case["data"])[0])[0], case["want"])
    assert same(first(case["rule"], case["data"]), case.get("here", case["want"]))


@cases("case", SUITE, ids=shown)
def test_the_second_evaluator_answers_as_the_public_suite_says_or_with_an_error(case: dict[str, Any]) -> None:
    assert same(second(case["rule"], case["data"]), case.get("here", case["want"]))


PLAIN: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    2.5,
    -3,
    "",
    "x",
    "1",
    "2.5",
    "true",
    "false",
    "xy",
    " 1",
    [],
    [1],
    [1, "x"],
    [None, 2],
    "1d",
    "24h",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00+01:00",
    ["1d", 1.0],
    2**53 - 1,
    1.0,
    1e-7,
    0.00001,
]
OBJECTS: list[Any] = [{}, {"k": 1}, {"k": [1, {"l": "x"}]}, {"timestamp": "1d"}, {"datetime": "2026-01-01T00:00:00Z"}]
PAIRED = ["==", "!=", "===", "!==", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "max", "min", "in", "and", "or"]
SINGLE = ["!", "!!", "+", "*", "max", "min", "missing"]
BODIES: list[Any] = [True, {"==": [{"var": ""}, 1]}, {"<": [{"var": ""}, 2]}, {"var": "k"}]
QUESTIONS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({operator: [{"var": "a"}, {"var": "b"}]}, [*PLAIN, *OBJECTS], [*PLAIN, *OBJECTS]) for operator in PAIRED
]
QUESTIONS += [({operator: [{"var": "a"}, {"var": "b"}]}, PLAIN, PLAIN) for operator in ("cat", "merge")]
QUESTIONS += [({operator: [{"var": "a"}]}, [*PLAIN, *OBJECTS], [None]) for operator in SINGLE]
QUESTIONS += [
    ({operator: [{"var": "a"}, body]}, [*PLAIN, *OBJECTS], [None])
    for operator in ("map", "filter", "all", "none", "some")
    for body in BODIES
]
QUESTIONS += [
    (rule, [*PLAIN, *OBJECTS], [None])
    for operator in ("==", "!=", "===", "!==", "<", "<=", ">", ">=", "in", "+", "and", "or")
    for constant in (None, True, False, 2, "x", "1", "", "1d", [], ["1d", "x", 2])
    for rule in ({operator: [{"var": "a"}, constant]}, {operator: [constant, {"var": "a"}]})
]
QUESTIONS += [({operator: [0, {"var": "a"}, {"var": "b"}]}, PLAIN, PLAIN) for operator in ("<", "<=")]
QUESTIONS += [({"<": [{"var": "a"}, "x", {"var": "b"}]}, PLAIN, PLAIN)]
QUESTIONS += [
    ({operator: [{"if": [True, {"var": "a"}]}, {"var": "b"}]}, PLAIN, PLAIN)
    for operator in ("<", "==", "===", "in", "+", "merge", "cat")
]
QUESTIONS += [
    ({"if": [{"var": "a"}, {"missing": ["a", "b"]}, {"missing_some": [1, ["a", "b"]]}]}, [*PLAIN, *OBJECTS], PLAIN)
]
QUESTIONS += [
    ({"reduce": [{"var": "a"}, {"+": [{"var": "current"}, {"var": "accumulator"}]}, {"var": "b"}]}, PLAIN, PLAIN)
]
QUESTIONS += [({"substr": [{"var": "a"}, -2, 1]}, ["", "x", "xyz"], [None])]


@cases(("rule", "left", "right"), QUESTIONS, ids=lambda value: json.dumps(value)[:40])
def test_the_two_evaluators_agree_on_values_of_every_kind(
    rule: dict[str, Any], left: list[Any], right: list[Any]
) -> None:
    for a, b in itertools.product(left, right):
        data = {"a": a, "b": b}
        assert same(first(rule, data), second(rule, data)), (a, b, first(rule, data), second(rule, data))


def test_the_cases_use_every_operator_that_a_pack_may_use() -> None:
    used: set[str] = set()
    todo: list[Any] = [case["rule"] for case in SUITE]
    while todo:
        operator = todo.pop()
        if isinstance(operator, dict):
            used |= operator.keys()
            todo += operator.values()
        elif isinstance(operator, list):
            todo += operator
    assert used == OPERATORS


def test_every_case_of_the_suite_is_within_the_fence() -> None:
    refused = [case["rule"] for case in SUITE if isinstance(case["rule"], dict) and logic_problems(case["rule"])]
    assert refused == []
