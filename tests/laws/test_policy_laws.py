"""What holds of policy and of the tool surface, whatever the pack and the request: two engines, one verdict.

The seed of a shard stands in the name of its test. Seeded dice make the many cases cheap; hypothesis draws fewer, and
shrinks what fails.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextplane.model.context_pack import DecisionSpec
from contextplane.model.pack_layers import PolicyLayer, ToolingLayer
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.policy.approval_gates import active_gates
from contextplane.policy.bounds import permission_references
from contextplane.policy.decision import ArgumentBound, DenialKind, PolicyDecision
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.facts import Facts, FactsRefused
from contextplane.policy.request_facts import request_facts_by_intent, request_problems
from contextplane.policy.tool_surface import IntentReach, ReasonKind, Surface, ToolProgram
from tests.support.oracle_policy import (
    bounds_by_tool,
    decide,
    find_active_gates,
    find_fact_problems,
    limits_by_tool,
    surface_tools,
)
from tests.support.policy_cases import (
    Dice,
    drawn_facts,
    drawn_policy,
    drawn_request_facts,
    drawn_specs,
    drawn_tooling,
    seeded,
)
from tests.support.samples import PROFILE

Json = dict[str, Any]

REQUESTS = 10
PACKS, SHARDS = (500, 200) if PROFILE == "laws" else (150, 4)
"""In every run 6,000 cases; in `make laws` a million."""

BY_RULES = {"rule", "no_rule", "nothing_allows"}
"""The denials that come from what rules say of what is given. Signals and labels are left out by who gives none."""

DICE = st.integers(0, 2**32).map(seeded)


def limits(bound: ArgumentBound) -> Json:
    """The bounds of an argument in the words of the second engine."""
    values = {name: getattr(bound.constraint, name) for name in ("min", "max", "equals")}
    values |= {fact.bound: "?" for fact in bound.facts if fact.problem}
    return {name: value for name, value in values.items() if value is not None}


def told(decision: PolicyDecision) -> Json:
    """A decision in the words of the second engine."""
    return {
        "allowed": decision.allowed,
        "effects": [
            [effect.bundle_id, effect.rule_id, effect.branch, effect.undecided is not None]
            for effect in decision.effects
        ],
        "idle": sorted([rule.bundle_id, rule.rule_id] for rule in decision.idle),
        "errors": [[error.bundle_id, error.rule_id] for error in decision.errors],
        "missing": [
            [fact.path, fact.bundle_id, fact.rule_id, fact.denies, fact.voids] for fact in decision.missing_facts
        ],
        "spoken": [
            [guardrail.kind, guardrail.id, [*guardrail.by], [*guardrail.missing]]
            for guardrail in decision.guardrails.triggered
        ],
        "mode": decision.effective_approval_mode,
        "requires": list(decision.requires),
        "prohibits": list(decision.prohibits),
        "gates": list(decision.requires_approval_gates),
        "bounds": [
            [bound.capability, bound.argument, bound.origin, limits(bound)] for bound in decision.arg_constraints
        ],
    }


def shown(surface: Surface) -> tuple[list[Any], list[Any]]:
    kept = [[tool.capability_id, tool.effective_mode, list(tool.gate_ids)] for tool in surface.tools]
    return kept, [[tool.capability_id, [reason.kind for reason in tool.reasons]] for tool in surface.left_out]


def reach_of(specs: list[Any]) -> IntentReach:
    return IntentReach.of_decisions(msgspec.convert(specs, list[DecisionSpec]))


def drawn_programs(dice: Dice) -> tuple[PolicyProgram, ToolProgram]:
    policy, maxima = drawn_policy(dice)
    return programs(policy, maxima, drawn_tooling(dice))


def programs(policy: Json, maxima: dict[str, str], tooling: Json) -> tuple[PolicyProgram, ToolProgram]:
    layer = msgspec.convert(tooling, ToolingLayer)
    program = PolicyProgram.of(
        msgspec.convert(policy, PolicyLayer),
        maxima=msgspec.convert(maxima, dict[str, Any]),
        references=[*permission_references(layer)],
    )
    return program, ToolProgram.of(layer, program)


def both_agree(dice: Dice, requests: int) -> int:
    """Draw one pack and some requests, and hold the two engines to each other; how many cases those were."""
    policy, maxima = drawn_policy(dice)
    tooling = drawn_tooling(dice)
    program, tools = programs(policy, maxima, tooling)
    for _ in range(requests):
        given_facts = drawn_facts(dice)
        facts = Facts.of(**given_facts)
        decision = program.decide(facts)
        second = decide(policy, maxima, given_facts)
        specs = drawn_specs(dice)
        surface = tools.surface(decision, facts.safety_mode, reach_of(specs))
        kept, left_out = surface_tools(
            tooling, policy, specs, second, intent=given_facts["intent"], ceiling=given_facts["safety_mode"]
        )
        gates = [
            [gate.gate_id, list(gate.capabilities)] for gate in active_gates(program, decision, surface, facts).active
        ]
        assert told(decision) == second, (policy, maxima, given_facts)
        assert shown(surface) == (kept, left_out), (policy, tooling, given_facts)
        bounds = {
            tool.capability_id: [[bound.argument, bound.origin, limits(bound)] for bound in tool.bounds]
            for tool in surface.tools
        }
        call_limits = {
            tool.capability_id: [[msgspec.to_builtins(limit.limit), limit.origin] for limit in tool.limits]
            for tool in surface.tools
        }
        assert call_limits == limits_by_tool(tooling, facts.intent, [*bounds]), (policy, tooling, given_facts)
        assert bounds == bounds_by_tool(tooling, policy, second, given_facts, [*bounds]), (policy, tooling, given_facts)
        assert gates == find_active_gates(policy, tooling, second, kept, given_facts), (policy, tooling, given_facts)
        assert decision.allowed is not bool(decision.denials)
    return requests


@pytest.mark.parametrize("seed", range(SHARDS))
def test_two_engines_come_to_one_verdict_and_one_surface(seed: int) -> None:
    dice = seeded(seed)
    assert sum(both_agree(dice, REQUESTS) for _ in range(PACKS)) == PACKS * REQUESTS


def test_two_engines_find_the_same_facts_missing_or_mistyped() -> None:
    dice, seen = seeded(7), Counter[str]()
    for _ in range(400):
        declared = drawn_request_facts(dice)
        policy = {**drawn_policy(dice)[0], "request_facts": declared}
        by_intent = request_facts_by_intent(msgspec.convert(policy, PolicyLayer))
        for _ in range(10):
            request = drawn_facts(dice)["request"]
            problems = request_problems(by_intent.get(request["intent"], ()), request)
            ours = [[problem.fact.path, problem.kind] for problem in problems]
            assert ours == find_fact_problems(policy, request), (declared, request)
            seen.update(kind for _, kind in ours)
            seen["none"] += not ours and request["intent"] in by_intent
    assert min(seen["missing"], seen["wrong_type"], seen["none"]) > 100


def test_the_cases_are_rich_in_every_way_to_be_denied_and_to_be_left_out() -> None:
    seen: Counter[str] = Counter()
    dice = seeded(0)
    for _ in range(120):
        program, tools = drawn_programs(dice)
        for _ in range(REQUESTS):
            facts = Facts.of(**drawn_facts(dice))
            decision = program.decide(facts)
            surface = tools.surface(decision, facts.safety_mode, reach_of(drawn_specs(dice)))
            seen.update({"allowed"} if decision.allowed else {denial.kind for denial in decision.denials})
            seen.update({error.kind for error in decision.errors})
            seen.update({reason.kind for tool in surface.left_out for reason in tool.reasons})
            seen.update({"changes something" for tool in surface.tools if tool.declared_mode != "read_only"})
    assert all(seen[kind] >= 5 for kind in (*get_args(DenialKind), *get_args(ReasonKind), "failed", "not_boolean"))
    assert seen["allowed"] >= 200
    assert seen["changes something"] >= 60


@given(DICE, st.sampled_from(APPROVAL_MODES), st.sampled_from(APPROVAL_MODES))
def test_a_lower_ceiling_never_adds_a_tool(dice: Dice, approval_mode: ApprovalMode, other: ApprovalMode) -> None:
    program, tools = drawn_programs(dice)
    decision = program.decide(Facts.of(**drawn_facts(dice)))
    low, high = sorted((approval_mode, other), key=APPROVAL_MODES.index)
    reach = reach_of(drawn_specs(dice))
    below = {tool.capability_id for tool in tools.surface(decision, low, reach).tools}
    assert below <= {tool.capability_id for tool in tools.surface(decision, high, reach).tools}
    lower = {tool.capability_id for tool in tools.surface(decision, high, replace(reach, mode="read_only")).tools}
    assert lower <= {tool.capability_id for tool in tools.surface(decision, high, reach).tools}


@given(DICE)
def test_one_more_rule_that_denies_leaves_nothing_or_only_what_reads(dice: Dice) -> None:
    policy, maxima = drawn_policy(dice)
    denying = {"rule_id": "R_NO", "applies_to": {}, "if": True, "then": {"allow": False}}
    policy["policy_bundles"][-1]["policy_dsl"]["rules"].append(denying)
    program, tools = programs(policy, maxima, drawn_tooling(dice))
    decision = program.decide(Facts.of(**drawn_facts(dice)))
    assert not decision.allowed
    reach = reach_of(drawn_specs(dice))
    left = tools.surface(decision, "destructive", reach).tools
    assert {tool.declared_mode for tool in left} <= ({"read_only"} if reach.on_deny == "read" else set())


@given(DICE)
def test_nobody_is_allowed_where_a_restriction_hangs_on_a_fact_that_is_missing(dice: Dice) -> None:
    program, _ = drawn_programs(dice)
    decision = program.decide(Facts.of(**drawn_facts(dice)))
    assert not (decision.allowed and any(fact.denies for fact in decision.missing_facts))


def without_ways_out(value: Any) -> Any:  # noqa: ANN401  any JSON
    """The same rules, in which nothing has a default, asks what is missing, or tells kinds apart without an error."""
    if isinstance(value, list):
        return [without_ways_out(part) for part in value]
    if not isinstance(value, dict):
        return value
    if value.keys() & {"missing", "missing_some", "in"}:
        return True
    if isinstance(path := value.get("var"), list):
        return {"var": path[0]}
    strict = {"===": "==", "!==": "!="}
    return {strict.get(name, name): without_ways_out(part) for name, part in value.items()}


def with_one_left_out(value: Any) -> Iterator[Any]:  # noqa: ANN401
    """The same facts without one of their members, for each of them."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield {key: other for key, other in value.items() if key != name}
            yield from ({**value, name: other} for other in with_one_left_out(part))
    elif isinstance(value, list):
        for n, part in enumerate(value):
            yield from ([*value[:n], other, *value[n + 1 :]] for other in with_one_left_out(part))


def with_one_mistyped(value: Any) -> Iterator[Any]:  # noqa: ANN401
    """The same facts with another kind of value in the place of one of their members, for each of them."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield {**value, name: "other" if isinstance(part, bool | int | float | list | dict) else 12}
            yield from ({**value, name: other} for other in with_one_mistyped(part))
    elif isinstance(value, list):
        for n, part in enumerate(value):
            yield from ([*value[:n], other, *value[n + 1 :]] for other in with_one_mistyped(part))


def restrictions(decision: PolicyDecision) -> set[tuple[str, ...]]:
    """All that holds for whoever is allowed."""
    held: set[tuple[str, ...]] = {("requires", require) for require in decision.requires}
    held |= {("prohibits", prohibit) for prohibit in decision.prohibits}
    held |= {("gate", gate_id) for gate_id in decision.requires_approval_gates}
    held |= {("bound", bound.argument, bound.at) for bound in decision.arg_constraints}
    return held | {("mode", mode) for mode in APPROVAL_MODES[: _rank(decision.effective_approval_mode) + 1]}


def _rank(mode: ApprovalMode | None) -> int:
    return -1 if mode is None else APPROVAL_MODES.index(mode)


@pytest.mark.parametrize("seed", range(SHARDS))
def test_whoever_leaves_a_fact_out_or_mistypes_it_keeps_every_restriction(seed: int) -> None:
    dice = seeded(seed)
    mistyped = sum(nobody_escapes(dice) for _ in range(PACKS // 4))
    assert mistyped > PACKS // 4


def nobody_escapes(dice: Dice) -> int:
    """Draw a pack and a request, and leave out or mistype one member of it after the other; how many were mistyped."""
    policy, maxima = drawn_policy(dice)
    layer = msgspec.convert(without_ways_out(policy), PolicyLayer)
    program = PolicyProgram.of(layer, maxima=msgspec.convert(maxima, dict[str, Any]))
    facts = drawn_facts(dice)
    whole = program.decide(Facts.of(**facts))
    conditional = {guardrail.id for guardrail in whole.guardrails.triggered if "when" in guardrail.by}
    denied = any(denial.kind == "rule" for denial in whole.denials)
    refused = not whole.allowed and {denial.kind for denial in whole.denials} <= BY_RULES
    judged = not whole.errors and all(guardrail.error is None for guardrail in whole.guardrails.triggered)
    mistyped = 0
    for part in ("request", "user", "run"):
        # Another kind may be the right one where the condition could not be evaluated before.
        others = list(with_one_mistyped(facts[part])) if judged else []
        for less in (*with_one_left_out(facts[part]), *others):
            try:
                changed = Facts.of(**{**facts, part: less})
            except FactsRefused:
                continue
            mistyped += less in others
            decision = program.decide(changed)
            assert conditional <= {guardrail.id for guardrail in decision.guardrails.triggered}, (policy, facts, less)
            assert restrictions(whole) <= restrictions(decision), (policy, facts, less)
            assert not ((denied or refused) and decision.allowed), (policy, facts, less)
    return mistyped


@given(st.data())
def test_two_engines_agree_on_what_hypothesis_draws(data: st.DataObject) -> None:
    both_agree(Dice(lambda bound: data.draw(st.integers(0, bound - 1))), 1)
