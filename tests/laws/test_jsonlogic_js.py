"""Our JSONLogic beside json-logic-js: the same value, or an error, a refusal or a missing fact. Never another value.

The differences are data, `tests/cases/jsonlogic-differences.json`; the section of docs/policy.md is made from it.
`make laws` fetches json-logic-js from the npm registry. Elsewhere a sample runs if `JSON_LOGIC_JS` names its logic.js,
or if an earlier `make laws` left it in build/.
"""

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datalogic_py
import pytest
from hypothesis import settings

from contextplane.policy.logic.condition import CompiledCondition
from contextplane.policy.logic.expression import computed_names, engine, logic_problems
from contextplane.policy.logic.strict import strict_form
from tests.support.policy_cases import Dice, seeded

Json = Any
ROOT = Path(__file__).resolve().parents[2]
DIFFERENCES: list[dict[str, Json]] = json.loads(
    (ROOT / "tests/cases/jsonlogic-differences.json").read_text(encoding="utf-8")
)
IS_WHOLE = settings().max_examples > 1_000
EXPRESSIONS = 24_000 if IS_WHOLE else 400
PLACE = ROOT / "build" / "json-logic-js"
SCRIPT = """
const logic = require(process.argv[1]);
const cases = JSON.parse(require('fs').readFileSync(0));
const odd = (key, value) => typeof value === 'number' && !isFinite(value) ? {odd: String(value)}
  : typeof value === 'function' || value === undefined ? {odd: typeof value} : value;
const answers = cases.map(([rule, data]) => {
  try { return {value: logic.apply(rule, data)}; } catch (error) { return {error: String(error)}; }
});
console.log(JSON.stringify(answers, odd));
"""

VALUES: list[Json] = [
    *(None, True, False, 0, 1, -1, 2.5, 1.0, 12, 2**53 - 1, 0.00001, 1e-7),
    *("", "x", "xy", "1", "12", "2.5", " 1", "true", "false", "null", "1d", "24h", "2026-01-01T00:00:00Z"),
    *("2026-01-01T01:00:00+01:00", "\u00e9", "\uffff"),
    *([], [1], ["x", "1d"], [None, 1.0, [2]], {}, {"k": 1}, {"timestamp": "1d"}),
]
CONSTANTS = [value for value in VALUES if not isinstance(value, dict)]
BINARY = [
    *("==", "!=", "===", "!==", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "max", "min", "in", "and", "or"),
    *("cat", "merge", "if", "?:", "var", "missing", "missing_some", "substr"),
    *("map", "filter", "all", "some", "none", "reduce", "!", "!!"),
]
UNARY = ["!", "!!", "+", "-", "*", "max", "min", "cat", "merge", "missing", "and", "or", "if", "var"]
A, B = {"var": "a"}, {"var": "b"}


@pytest.fixture(scope="module")
def module() -> str:
    """The path of json-logic-js."""
    if shutil.which("node") is None:
        pytest.skip("node is not here")
    named = os.environ.get("JSON_LOGIC_JS")
    script = Path(named) if named else PLACE / "node_modules" / "json-logic-js" / "logic.js"
    if not script.is_file() and IS_WHOLE and shutil.which("npm") is not None:
        PLACE.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(PLACE)]
        subprocess.run([*install, "json-logic-js@2.0.5"], capture_output=True, check=False, timeout=120)
    if not script.is_file():
        pytest.skip("json-logic-js is not here")
    return str(script)


def theirs(module: str, cases: list[tuple[Json, Json]]) -> list[dict[str, Json]]:
    """What json-logic-js makes of each rule and data: its value, or an error."""
    node = shutil.which("node") or ""
    done = subprocess.run(
        [node, "-e", SCRIPT, module], input=json.dumps(cases).encode(), capture_output=True, check=True, timeout=600
    )
    answers: list[dict[str, Json]] = json.loads(done.stdout)
    return answers


def ours(rule: Json, data: Json) -> dict[str, Json]:
    """What a policy makes of it: a value and the facts that were missing, an error, or a refusal."""
    if logic_problems(rule) or list(computed_names(rule)):
        return {"refused": True}
    try:
        value = json.loads(engine().compile([strict_form(rule)]).evaluate_metered(data)[0])[0]
    except datalogic_py.DataLogicError:
        return {"error": True}
    facts: Any = SimpleNamespace(data=data)
    return {"value": value, "missing": CompiledCondition(rule).missing_facts(facts)}


def same(a: Json, b: Json) -> bool:
    """Equal as JSON: 1 is 1.0, and true is no number."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def silent(module: str, cases: list[tuple[Json, Json]]) -> list[tuple[Json, Json]]:
    """The cases in which ours is another value, and nothing says so."""
    differing = []
    for (rule, data), their in zip(cases, theirs(module, cases), strict=True):
        our = ours(rule, data)
        is_same = "value" in their and "value" in our and same(our["value"], their["value"])
        if "value" in our and not our["missing"] and not is_same:
            differing.append((rule, data))
    return differing


def listed() -> set[str]:
    return {
        json.dumps([example["rule"], example["data"]])
        for difference in DIFFERENCES
        if difference["here"] == "value"
        for example in difference["examples"]
    }


def unlisted(differing: list[tuple[Json, Json]]) -> list[tuple[Json, Json]]:
    return [case for case in differing if json.dumps(case) not in listed()]


def with_values(**values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def pairs() -> list[tuple[Json, Json]]:
    """Every pair of values under every operator, as facts and as constants; every value alone."""
    cases: list[tuple[Json, Json]] = []
    for a, b in itertools.product(VALUES, repeat=2):
        data = with_values(a=a, b=b)
        cases += [({operator: [A, B]}, data) for operator in BINARY]
    for operator, a, b in itertools.product(BINARY, VALUES, CONSTANTS):
        cases.append(({operator: [A, b]}, with_values(a=a)))
        if not isinstance(a, dict):
            cases.append(({operator: [a, b]}, {"x": 1, "xy": [1, None], "1": "one"}))
    for operator, a in itertools.product(UNARY, VALUES):
        cases.append(({operator: [A]}, with_values(a=a)))
    return cases


def test_no_pair_of_values_has_another_value_under_any_operator(module: str) -> None:
    cases = pairs()
    step = 1 if IS_WHOLE else 40
    assert len(cases) > 100 * len(VALUES)
    assert unlisted(silent(module, cases[::step])) == []


PATHS = ["a", "b", "list", "list.0", "o.k", "o", "items", "gone"]
TEXTS: list[Json] = ["", "x", "1", "1d", "24h", "high"]
DRAWN: list[Json] = [0, 1, 2.5, -3, True, False, None, *TEXTS, [], [1, "x"], [True, None]]


def drawn(dice: Dice, depth: int) -> Json:
    """An expression that need not make sense."""
    if not depth or dice.chance(15):
        return dice.pick(DRAWN) if dice.chance(30) else variable(dice)
    operator = dice.pick(BINARY)
    if operator in {"var", "missing", "missing_some"}:
        return variable(dice) if operator == "var" else absent(dice, operator)
    if operator == "substr":
        return {
            operator: [drawn(dice, depth - 1), dice.below(5) - 2, *([dice.below(5) - 2] if dice.chance(50) else [])]
        }
    if operator == "reduce":
        return {operator: [drawn(dice, depth - 1), total(dice), drawn(dice, 0)]}
    most = 3 if operator in {"if", "?:", "and", "or", "+", "*", "max", "cat", "merge", "<"} else 2
    count = 1 if operator in {"!", "!!"} else 2 if operator in {"in", "map", "filter"} else 1 + dice.below(most)
    return {operator: [drawn(dice, depth - 1) for _ in range(count)]}


def variable(dice: Dice) -> Json:
    path = dice.pick(PATHS)
    return {"var": [path, dice.pick(DRAWN)] if dice.chance(30) else path}


def absent(dice: Dice, operator: str) -> Json:
    names = dice.some(PATHS, 3)
    return {operator: names if operator == "missing" else [dice.below(3), names]}


def total(dice: Dice) -> Json:
    operator = dice.pick(["+", "cat", "merge", "max", "or", "==="])
    names = ["accumulator", "current", "current.k", "gone"]
    return {operator: [{"var": dice.pick(names)}, {"var": dice.pick(names)}]}


def drawn_data(dice: Dice) -> Json:
    values = {
        "a": dice.pick(DRAWN),
        "b": dice.pick(DRAWN),
        "list": [dice.pick(DRAWN) for _ in range(dice.below(4))],
        "o": {} if dice.chance(30) else with_values(k=dice.pick(DRAWN)),
        "items": [with_values(k=dice.pick(DRAWN)) for _ in range(dice.below(3))],
    }
    return {name: value for name, value in values.items() if value is not None and dice.chance(90)}


def test_no_drawn_expression_has_another_value(module: str) -> None:
    dice = seeded(24_000)
    cases = [(drawn(dice, 1 + dice.below(3)), drawn_data(dice)) for _ in range(EXPRESSIONS)]
    assert unlisted(silent(module, cases)) == []
    answered = [case for case in cases if "value" in ours(*case)]
    assert len(answered) > EXPRESSIONS // 8, "most of what is drawn must not be refused, or nothing is compared"


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference["expression"][:40])
def test_a_listed_difference_is_one(module: str, difference: dict[str, Json]) -> None:
    examples = difference["examples"]
    for example, their in zip(examples, theirs(module, [(e["rule"], e["data"]) for e in examples]), strict=True):
        our = ours(example["rule"], example["data"])
        assert same(their.get("value"), example["theirs"]), example
        assert difference["here"] in our, example
        assert difference["here"] != "value" or same(our["value"], example["ours"]), example
