"""What the comparison takes a rule to do in each state of its condition is what the engine does."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.diff.rule_states import force_of
from contextplane.authoring.diff.tree import index_by_id
from contextplane.model.pack_layers import PolicyLayer
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.facts import Facts
from contextplane.policy.logic.diagram import State
from tests.support.policy_cases import drawn_effect, seeded
from tests.support.samples import sample

X = {"var": "request.context.x"}
CASES: dict[State, tuple[Any, dict[str, Any]]] = {
    "true": ({"==": [X, 1]}, {"x": 1}),
    "false": ({"==": [X, 1]}, {"x": 2}),
    "true_missing": ({"!=": [X, 1]}, {}),
    "false_missing": ({"==": [X, 1]}, {}),
    "unknown": ({">": [X, 1]}, {}),
    "failed": ({">": [X, 1]}, {"x": "1"}),
}
"""A condition and a request that bring it into each state."""


@given(st.integers(0, 2**32), st.booleans())
@sample(60)
def test_a_rule_does_in_each_state_what_the_engine_does(seed: int, has_else: bool) -> None:  # noqa: FBT001
    dice = seeded(seed)
    rule = {"rule_id": "R", "applies_to": {"intent": "i"}, "then": drawn_effect(dice)}
    rule |= {"else": drawn_effect(dice)} if has_else else {}
    for state, (condition, context) in CASES.items():
        whole = {**rule, "if": condition}
        force = force_of(index_by_id(whole), state, {})
        decision = decide(whole, context)
        assert decision.allowed is (force.allows and not force.denies), state
        assert set(decision.prohibits) == force.prohibits, state
        assert set(decision.requires) == force.requires, state
        assert set(decision.requires_approval_gates) == force.gates, state


def decide(rule: Any, context: dict[str, Any]) -> Any:  # noqa: ANN401  any JSON
    layer = {
        "policy_bundles": [
            {"bundle_id": "B", "priority": 1, "policy_dsl": {"language": "jsonlogic", "rules": [rule]}},
        ],
        "guardrails": {},
        "approval_gates": [
            {"gate_id": name, "required_approver_role": "lead", "ttl_seconds": 60}
            for name in ("GATE_A", "GATE_B", "GATE_C")
        ],
    }
    facts = Facts.of(
        request={"intent": "i", "context": context},
        user={},
        agent={},
        tenant_id="t",
        intent="i",
        safety_mode="destructive",
        run={},
    )
    return PolicyProgram.of(msgspec.convert(layer, type=PolicyLayer)).decide(facts)
