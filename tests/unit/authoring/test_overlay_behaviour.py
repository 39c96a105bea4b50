"""What an accepted overlay does to runs, by the engine that decides them: whatever the request, never more."""

import itertools
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from contextplane.authoring.overlay.resolved_view import OverlayWidens, resolve_view
from contextplane.model.context_pack import ContextPack
from contextplane.model.terms import APPROVAL_MODES
from contextplane.policy.approval_gates import active_gates
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.facts import Facts
from contextplane.policy.tool_surface import IntentReach, ToolProgram
from tests.support.cases import cases
from tests.unit.authoring.changes import ALLOWING, GATE, HIGH, RULES, VAR, VERIFIED, agent_above, deny, overlay
from tests.unit.authoring.packs import EXAMPLE

AMOUNTS = (0, 1, 500, 1000, 2999, 3000, 3001, 50_000)
ROLES = ("support_agent", "trainee", None)
"""None: the fact is left out."""
REQUESTS = [
    {"identity_verified": verified, "refund_amount": amount, "role": role, "region": region}
    for verified, amount, role, region in itertools.product(
        (True, False, "yes", None), (*AMOUNTS, "4000", True, None), ROLES, ("IN", "DE", None)
    )
]
ROLE = {"var": "user.role"}
REGION = {"==": [{"var": "request.context.region"}, "IN"]}
ATOMS = st.one_of(
    st.sampled_from([VERIFIED, REGION, True, False, {"==": [ROLE, "support_agent"]}, {"!=": [ROLE, "trainee"]}]),
    st.builds(
        lambda op, n: {op: [VAR, n]}, st.sampled_from([">", ">=", "<", "<=", "==", "==="]), st.sampled_from(AMOUNTS)
    ),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(
            lambda op, parts: {op: parts}, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)
        ),
        st.builds(lambda condition: {"!": [condition]}, inner),
    ),
    max_leaves=4,
)
EFFECTS = st.fixed_dictionaries(
    {},
    optional={
        "allow": st.booleans(),
        "requires": st.just(["order_lookup"]),
        "prohibits": st.lists(
            st.sampled_from(["adp_orders.lookup", "adp_payments.issue_refund"]), max_size=2, unique=True
        ),
        "approval_mode": st.sampled_from(APPROVAL_MODES),
        "requires_approval_gate": st.just("GATE_FINANCE_APPROVAL"),
    },
)


class Runs:
    """A pack that is ready to decide."""

    def __init__(self, value: Any) -> None:  # noqa: ANN401  any JSON
        pack = msgspec.convert(value, type=ContextPack)
        maxima = {
            decision_spec.decision_key: decision_spec.approval_mode
            for decision_spec in pack.decision_layer.decision_specs
        }
        self.policy = PolicyProgram.of(pack.policy_layer, maxima=maxima)
        self.tools = ToolProgram.of(pack.tooling_layer, self.policy)
        self.reach = IntentReach.of_decisions(pack.decision_layer.decision_specs)

    def can(self, request: dict[str, Any]) -> "Can":
        context = {name: value for name, value in request.items() if name != "role"}
        facts = Facts.of(
            request={"intent": "support.refund", "context": context},
            user={"role": request["role"]},
            agent={},
            tenant_id="tenant_acme_prod",
            intent="support.refund",
            safety_mode="destructive",
            run={},
        )
        decision = self.policy.decide(facts)
        surface = self.tools.surface(decision, "destructive", self.reach)
        gates = active_gates(self.policy, decision, surface, facts)
        return Can(
            allowed=decision.allowed,
            tools={tool.capability_id: APPROVAL_MODES.index(tool.effective_mode) for tool in surface.tools},
            gates=frozenset(gate.gate_id for gate in gates.active),
            requires=frozenset(decision.requires),
        )


class Can(msgspec.Struct, frozen=True):
    """What a run can do: whether it may decide, its tools with their modes, its active gates, required evidence."""

    allowed: bool
    tools: dict[str, int]
    gates: frozenset[str]
    requires: frozenset[str]

    def at_most(self, other: "Can") -> bool:
        if self.allowed and not other.allowed:
            return False
        if any(self.tools[name] < other.tools.get(name, len(APPROVAL_MODES)) for name in self.tools):
            return False
        # Gates and required evidence count only for a run with a tool that changes something.
        changes_something = self.allowed and any(mode > 0 for mode in self.tools.values())
        return not changes_something or (other.gates <= self.gates and other.requires <= self.requires)


@cache
def before() -> list[Can]:
    """Return what the pack without an overlay can do, for each of the requests."""
    runs = Runs(EXAMPLE)
    return [runs.can(request) for request in REQUESTS]


def accepted(at: str, value: object) -> Any:  # noqa: ANN401  any JSON
    """The pack with an overlay that makes one change; None when it is refused."""
    try:
        return resolve_view(EXAMPLE, [overlay(((at, value),))]).value
    except OverlayWidens:
        event("refused")
        return None


def holds_to_less(value: Any) -> None:  # noqa: ANN401  any JSON
    runs = Runs(value)
    for request, allowance in zip(REQUESTS, before(), strict=True):
        assert runs.can(request).at_most(allowance), request


@given(st.sampled_from([f"{ALLOWING}/if", f"{HIGH}/if", f"{GATE}/when"]), CONDITIONS)
def test_no_condition_that_an_overlay_may_set_lets_a_run_do_more(at: str, condition: object) -> None:
    value = accepted(at, condition)
    if value is not None:
        event("accepted")
        holds_to_less(value)


@given(CONDITIONS)
def test_one_more_condition_for_what_allows_is_accepted_and_lets_no_run_do_more(condition: object) -> None:
    value = accepted(f"{ALLOWING}/if", {"and": [VERIFIED, condition]})
    if value is not None:
        event("accepted")
        holds_to_less(value)


@given(CONDITIONS, EFFECTS, st.none() | EFFECTS)
def test_no_rule_that_an_overlay_may_add_lets_a_run_do_more(condition: object, then: Any, otherwise: Any) -> None:  # noqa: ANN401
    rule = {**deny("R_NEW", condition), "then": then} | ({} if otherwise is None else {"else": otherwise})
    value = accepted(f"{RULES}/R_NEW", rule)
    if value is not None:
        event("accepted")
        holds_to_less(value)


@given(st.sampled_from([f"{ALLOWING}/then", f"{ALLOWING}/else", f"{HIGH}/then", f"{HIGH}/else"]), EFFECTS)
def test_no_branch_that_an_overlay_may_set_lets_a_run_do_more(at: str, effect: object) -> None:
    value = accepted(at, effect)
    if value is not None:
        event("accepted")
        holds_to_less(value)


@cases("denial", [{"allow": False}, {"allow": False, "reason": "Not in this region."}])
@cases("branch", ["then", "else"])
def test_a_branch_may_be_made_one_that_denies_whatever_it_asked_for(branch: str, denial: object) -> None:
    after = resolve_view(EXAMPLE, [overlay(((f"{HIGH}/{branch}", denial),))])
    assert [overlay.change.effect for overlay in after.applied] == ["narrows"]
    holds_to_less(after.value)


@pytest.mark.parametrize("amount", [1, 1000, 2999])
def test_a_lower_threshold_is_accepted(amount: int) -> None:
    for at, condition in ((f"{HIGH}/if", agent_above(amount)), (f"{GATE}/when", {">": [VAR, amount]})):
        holds_to_less(accepted(at, condition))
