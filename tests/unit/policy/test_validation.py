"""Policies and tools that are not taken at all: each kind with its own code, and all problems together."""

from collections.abc import Callable
from typing import Any

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.json.canonical import Json
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.logic.expression import MAX_LOGIC_DEPTH, MAX_LOGIC_PARTS
from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, PERMISSIONS, RAW, bundle, policy, program, rule, tools

RULE = "/policy_layer/policy_bundles/0/policy_dsl/rules/0"
GATE = RAW["policy_layer"]["approval_gates"][0]
REGISTRY = RAW["tooling_layer"]["adapter_registry"]


def nested(depth: int, operator: str = "!") -> Json:
    made: Json = True
    for _ in range(depth):
        made = {operator: [made]}
    return made


def one_rule(**fields: Any) -> Callable[[], object]:  # noqa: ANN401
    return lambda: program(rule(**fields))


def tooling(**changes: Any) -> Callable[[], object]:  # noqa: ANN401
    return lambda: tools(changes, EXAMPLE_PROGRAM)


def lists(depth: int) -> Json:
    made: Json = []
    for _ in range(depth):
        made = [made]
    return made


REFUSED: list[tuple[str, Callable[[], object], str, str]] = [
    ("operator", one_rule(when={"and": [{"now": []}]}), "policy_condition_unusable", f"{RULE}/if/and/0/now"),
    ("method", one_rule(when={"throw": ["x"]}), "policy_condition_unusable", f"{RULE}/if/throw"),
    ("two keys", one_rule(when={"==": [1, 1], "!": 1}), "policy_condition_unusable", f"{RULE}/if"),
    ("arity", one_rule(when={">": [1]}), "policy_condition_unusable", f"{RULE}/if"),
    (
        "computed name",
        one_rule(when={"==": [{"var": {"cat": ["request.context.", "amount"]}}, 1]}),
        "policy_condition_unusable",
        f"{RULE}/if/==/0/var",
    ),
    ("name in a list", one_rule(when={"!": [{"var": [["x"]]}]}), "policy_condition_unusable", f"{RULE}/if/!/0/var"),
    ("no name", one_rule(when={"!": [{"var": True}]}), "policy_condition_unusable", f"{RULE}/if/!/0/var"),
    (
        "computed name of an element",
        lambda: program(
            rule(), guardrails={"must_refuse": [{"id": "g", "when": {"some": [[1], {"var": {"var": "x"}}]}}]}
        ),
        "policy_condition_unusable",
        "/policy_layer/guardrails/must_refuse/0/when/some/1/var",
    ),
    (
        "deep",
        one_rule(when=nested(MAX_LOGIC_DEPTH + 1)),
        "policy_condition_unusable",
        f"{RULE}/if" + "/!/0" * (MAX_LOGIC_DEPTH - 1) + "/!",
    ),
    (
        "bomb",
        one_rule(when=nested(90)),
        "policy_condition_unusable",
        f"{RULE}/if" + "/!/0" * (MAX_LOGIC_DEPTH - 1) + "/!",
    ),
    ("large", one_rule(when={"and": [True] * (MAX_LOGIC_PARTS + 5)}), "policy_condition_unusable", f"{RULE}/if"),
    ("huge number", one_rule(when={"==": [{"var": "x"}, 1e300]}), "policy_condition_unusable", f"{RULE}/if/==/1"),
    ("huge integer", one_rule(when={"==": [{"var": "x"}, 10**30]}), "json_integer_unsafe", ""),
    ("bottomless", one_rule(when={"in": [1, lists(5000)]}), "json_too_deep", ""),
    (
        "guardrail",
        lambda: program(rule(), guardrails={"must_escalate": ["x", {"id": "g", "when": {"now": 1}}]}),
        "policy_condition_unusable",
        "/policy_layer/guardrails/must_escalate/1/when/now",
    ),
    (
        "gate",
        lambda: program(rule(), gates=[{**GATE, "when": {"now": 1}}]),
        "policy_condition_unusable",
        "/policy_layer/approval_gates/0/when/now",
    ),
    ("scope", one_rule(applies_to={"intnt": "x"}), "policy_scope_unusable", f"{RULE}/applies_to/intnt"),
    ("empty scope", one_rule(applies_to={"role": []}), "policy_scope_unusable", f"{RULE}/applies_to/role"),
    (
        "gate of a rule",
        one_rule(then={"requires_approval_gate": "GATE_X"}),
        "policy_gate_unknown",
        f"{RULE}/then/requires_approval_gate",
    ),
    (
        "gate of an else",
        one_rule(otherwise={"requires_approval_gate": "GATE_X"}),
        "policy_gate_unknown",
        f"{RULE}/else/requires_approval_gate",
    ),
    (
        "pattern of a rule",
        one_rule(then={"arg_constraints": {"key": {"pattern": "(a+)+"}}}),
        "policy_pattern_unusable",
        f"{RULE}/then/arg_constraints/key/pattern",
    ),
    (
        "pattern of an else",
        one_rule(otherwise={"arg_constraints": {"key": {"pattern": "("}}}),
        "policy_pattern_unusable",
        f"{RULE}/else/arg_constraints/key/pattern",
    ),
    (
        "rule twice",
        lambda: program(rule(), rule()),
        "policy_part_ambiguous",
        "/policy_layer/policy_bundles/0/policy_dsl/rules/1/rule_id",
    ),
    (
        "bundle twice",
        lambda: PolicyProgram.of(policy(bundle(rule()), bundle(rule()))),
        "policy_part_ambiguous",
        "/policy_layer/policy_bundles/1/bundle_id",
    ),
    (
        "gate twice",
        lambda: program(rule(), gates=[GATE, GATE]),
        "policy_part_ambiguous",
        "/policy_layer/approval_gates/1/gate_id",
    ),
    (
        "adapter twice",
        tooling(adapter_registry=[*REGISTRY, REGISTRY[0]]),
        "policy_part_ambiguous",
        "/tooling_layer/adapter_registry/3/adapter_id",
    ),
    (
        "capability twice",
        tooling(adapter_registry=[{**REGISTRY[0], "capabilities": ["lookup", "lookup"]}]),
        "policy_part_ambiguous",
        "/tooling_layer/adapter_registry/0/capabilities/1",
    ),
    (
        "gate of a permission",
        tooling(permissions=[{**PERMISSIONS[0], "requires_approval_gate": "GATE_X"}]),
        "policy_gate_unknown",
        "/tooling_layer/permissions/0/requires_approval_gate",
    ),
    (
        "pattern of a permission",
        tooling(permissions=[{**PERMISSIONS[0], "arg_constraints": {"key": {"pattern": "(x*)*"}}}]),
        "policy_pattern_unusable",
        "/tooling_layer/permissions/0/arg_constraints/key/pattern",
    ),
]


@cases(("make", "code", "at"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_could_not_be_held_to_is_refused_with_its_place(make: Callable[[], object], code: str, at: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        make()
    assert refused.value.code == code
    assert refused.value.family == "refused"
    assert not at or refused.value.at == at
    assert refused.value.hint


@cases("name", ["", None, [], "x", ["x"], ["x", {"cat": ["a", "b"]}], 0, [0]])
def test_what_is_read_by_a_name_that_stands_there_is_no_problem(name: Json) -> None:
    assert program(rule(when={"!": [{"var": name}]})).knows("support.refund")


@cases("operator", ["type", "throw", "try", "exists", "switch", "??"])
def test_no_pack_uses_the_operators_of_strict_forms(operator: str) -> None:
    with pytest.raises(ContextPlaneError, match="no operator"):
        program(rule(when={"!": [{operator: [1, 2]}]}))


def test_all_problems_are_told_together() -> None:
    with pytest.raises(ContextPlaneError) as refused:
        program(
            rule("R1", when={"now": 1}), rule("R2", applies_to={"x": "y"}, then={"requires_approval_gate": "GATE_X"})
        )
    problems = refused.value.details["problems"]
    assert isinstance(problems, list)
    assert [problem["code"] for problem in problems] == [
        "policy_condition_unusable",
        "policy_scope_unusable",
        "policy_gate_unknown",
    ]
    assert "2 more" in refused.value.message
