"""Changes to the full example that narrow, widen or alter it, generated from what its parts mean.

Each is (pointer by ids, value or None to remove, words of what it does): an overlay, and a step between two versions.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from contextplane.model.artifact import Overlay, OverlayChange
from tests.support.samples import PROFILE
from tests.unit.authoring.packs import EXAMPLE

__all__ = ["ALTERING", "NARROWING", "WIDENING", "Step", "overlay", "some_of_each_form"]

Step = tuple[tuple[str, Any], ...]
"""Changes that are made together: where, and the value; None removes."""

MODES = ("read_only", "local_write", "network", "delegated", "destructive")
RULES = "/policy_layer/policy_bundles/POLICY_RETURNS_V4/policy_dsl/rules"
HIGH = f"{RULES}/R_HIGH_VALUE_REQUIRES_APPROVAL"
ALLOWING = f"{RULES}/R_REFUND_REQUIRES_IDV"
VERIFIED = {"==": [{"var": "request.context.identity_verified"}, True]}
GATE = "/policy_layer/approval_gates/GATE_FINANCE_APPROVAL"
GUARDRAILS = "/policy_layer/guardrails"
ADAPTERS = "/tooling_layer/adapter_registry"
REFUND = "/tooling_layer/permissions/adp_payments.issue_refund"
AMOUNT = f"{REFUND}/arg_constraints/amount_inr"
SPEC = "/decision_layer/decision_specs/support.refund.execute"
TARGET = "/evaluation_layer/eval_targets/support.refund"
MEMORY = "/memory_layer/memory_policy"
TOOL = "adp_payments.issue_refund"
VAR = {"var": "request.context.refund_amount"}
FEE = {"var": "request.context.fee"}
STAFF = {"in": [{"var": "user.role"}, ["support_agent", "trainee"]]}


def agent_above(amount: float) -> Any:  # noqa: ANN401  any JSON
    return {"and": [{"==": [{"var": "user.role"}, "support_agent"]}, {">": [VAR, amount]}]}


def deny(rule_id: str, condition: object) -> Any:  # noqa: ANN401  any JSON
    return {
        "rule_id": rule_id,
        "applies_to": {"intent": "support.refund"},
        "if": condition,
        "then": {"allow": False, "reason": "Not here."},
        "rationale": "A region with more risk.",
    }


def _amounts(step: int) -> Iterator[int]:
    return iter(range(step, 3000, step))


def _narrowing() -> Iterator[Step]:
    for amount in _amounts(40):
        yield ((f"{GATE}/when", {">": [VAR, amount]}),)
        yield ((f"{HIGH}/if", agent_above(amount)),)
        yield ((f"{ALLOWING}/if", {"and": [VERIFIED, {"<": [VAR, amount]}]}),)
        yield (
            (f"{GATE}/when", {">=": [VAR, amount]}),
            (f"{HIGH}/if", {"and": [STAFF, {">=": [VAR, amount]}]}),
        )
        yield ((f"{AMOUNT}/max", amount),)
        yield ((f"{RULES}/R_{amount}", deny(f"R_{amount}", {">": [VAR, amount]})),)
        yield ((f"{GATE}/ttl_seconds", amount),)
        yield ((f"{TARGET}/latency_p99_ms", amount),)
    for n in range(1, 20):
        yield ((f"{AMOUNT}/min", 1 + n),)
        yield ((f"{TARGET}/utility", round(0.9 + n / 200, 4)),)
        yield ((f"{TARGET}/economics_cents_per_decision", round(1.5 - n / 20, 4)),)
        yield ((f"{GUARDRAILS}/redaction_rules/kind_{n}", f"kind_{n}"),)
        yield ((f"{GUARDRAILS}/must_refuse/label_{n}", f"label_{n}"),)
        yield ((f"{GUARDRAILS}/must_escalate/label_{n}", {"id": f"label_{n}", "when": {">": [VAR, n]}}),)
        yield ((f"{REFUND}/arg_constraints/arg_{n}", {"required": True}),)
        yield ((f"{REFUND}/arg_constraints/arg_{n}", {"max": n, "unless_approved": True}),)
        yield ((f"{REFUND}/arg_constraints/currency", {"enum": [f"C{n}"]}),)
        yield ((f"{REFUND}/limits", [{"per": "user", "period": f"{n}h", "max_calls": n}]),)
        yield ((f"{REFUND}/arg_constraints/order_id", {"equals": {"var": f"request.context.order_{n}"}}),)
        yield ((f"{REFUND}/arg_constraints/arg_{n}", {"max": {"var": f"request.context.total_{n}"}}),)
        yield ((f"{HIGH}/then/arg_constraints", {TOOL: {"amount_inr": {"max": n}, "pattern": {"max": n}}}),)
        yield ((f"{HIGH}/then/requires", [f"evidence_{n}"]),)
        yield ((f"{HIGH}/then/prohibits", ["adp_payments.issue_refund"][: n % 2 + 1]),)
    yield from (((f"{GATE}/approvers", n),) for n in range(2, 11))
    needed = [{"path": "request.context.refund_amount", "type": "number"}]
    yield (("/policy_layer/request_facts", [{"intent": "support.refund", "facts": needed}]),)
    second = {"gate_id": "GATE_LEGAL", "required_approver_role": "support_ops", "ttl_seconds": 60}
    for at in (f"{REFUND}/requires_approval_gate", f"{HIGH}/then/requires_approval_gate"):
        yield (
            ("/policy_layer/approval_gates/GATE_LEGAL", second),
            (at, ["GATE_FINANCE_APPROVAL", "GATE_LEGAL"]),
        )
    yield ((f"{GATE}/when", None),)
    yield ((f"{GATE}/when", {"or": [{">": [VAR, 3000]}, {"==": [{"var": "user.role"}, "trainee"]}]}),)
    yield ((f"{REFUND}/allow", False),)
    yield ((REFUND, None),)
    yield ((f"{MEMORY}/write_classes_allowed/preference", None),)
    yield (("/memory_layer/promotion_thresholds/auto_promote_confidence", 0.99),)
    yield ((f"{SPEC}/challenge_required", True),)
    yield ((f"{SPEC}/eligibility_rules", {"<": [{"var": "request.context.age_days"}, 30]}),)
    yield from (((f"{SPEC}/decision_right", right),) for right in ("escalate", "recommend", "propose"))
    for amount in _amounts(600):  # what is added is not analysed, and can only take something away
        yield ((f"{ALLOWING}/if", {"and": [VERIFIED, {"<": [{"+": [VAR, FEE]}, amount]}]}),)


def _widening() -> Iterator[Step]:
    for amount in range(3001, 9000, 75):
        yield ((f"{GATE}/when", {">": [VAR, amount]}),)
        yield ((f"{HIGH}/if", agent_above(amount)),)
        yield ((f"{ALLOWING}/if", {"or": [VERIFIED, {"<": [VAR, amount]}]}),)
        yield ((f"{AMOUNT}/max", 50000 + amount),)
        yield ((f"{GATE}/ttl_seconds", 7200 + amount),)
        yield ((f"{TARGET}/latency_p99_ms", amount),)
    for n in range(1, 20):
        tool = {"permission_id": f"p_{n}", "adapter_id": "adp_payments", "capability": f"cap_{n}", "allow": True}
        yield ((f"{ADAPTERS}/adp_payments/capabilities/cap_{n}", f"cap_{n}"),)
        yield ((f"/tooling_layer/permissions/adp_payments.cap_{n}", tool),)
        yield ((f"{AMOUNT}/min", round(1 - n / 20, 4)),)
        yield ((f"{TARGET}/utility", round(0.9 - n / 40, 4)),)
        yield ((f"{TARGET}/policy", round(1 - n / 40, 4)),)
        yield ((f"{TARGET}/safety", round(1 - n / 40, 4)),)
        yield ((f"{TARGET}/economics_cents_per_decision", 1.5 + n),)
        yield (("/memory_layer/promotion_thresholds/auto_promote_confidence", round(0.95 - n / 40, 4)),)
        yield (("/pack_meta/tenant/shared_with", [f"tenant_{n}"]),)
        yield (("/evaluation_layer/release_gates/policy/max_delta", n / 20),)
    # It admits evidence and memories of a higher class.
    yield from ((("/pack_meta/data_classification", level),) for level in ("CONFIDENTIAL", "RESTRICTED"))
    adapters = [adapter["adapter_id"] for adapter in EXAMPLE["tooling_layer"]["adapter_registry"]]
    for adapter, mode in itertools.product(adapters[2:], MODES[:-1]):
        yield ((f"{ADAPTERS}/{adapter}/approval_mode", mode),)
        yield ((f"{ADAPTERS}/{adapter}/capability_specs", {"issue_refund": {"approval_mode": mode}}),)
        yield ((f"{SPEC}/approval_mode", mode),)
        yield ((f"{HIGH}/then/approval_mode", mode),)
    yield from ((change,) for change in _LOOSENED)
    yield from (((at, None),) for at in _REMOVED)


# A rule for an intent without rules: where no rule applies, a run may only read.
_NEW_INTENT = {
    **deny("R_NEW", {">": [VAR, 1]}),
    "applies_to": {"intent": "support.void"},
    "then": {"allow": True, "requires": ["x"]},
}
_LOOSENED: tuple[tuple[str, Any], ...] = (
    (f"{AMOUNT}/unless_approved", True),
    (f"{REFUND}/arg_constraints/idempotency_key/required", False),
    (f"{MEMORY}/consent_gating/pii_write_back_allowed", True),
    (f"{GATE}/when", {"and": [{">": [VAR, 3000]}, {"==": [{"var": "user.role"}, "trainee"]}]}),
    (f"{GATE}/when", False),
    (f"{RULES}/R_NEW", _NEW_INTENT),
)
_REMOVED = (
    *(f"{GUARDRAILS}/redaction_rules/{kind}" for kind in ("pan", "credit_card")),
    f"{GUARDRAILS}/must_refuse/refund_without_identity",
    f"{GUARDRAILS}/must_escalate/fraud_signal_high",
    HIGH,
    f"{RULES}/R_REFUND_REQUIRES_IDV",
    f"{RULES}/R_REFUND_REQUIRES_IDV/else",
    f"{RULES}/R_REFUND_REQUIRES_IDV/then/requires",
    f"{HIGH}/then/requires_approval_gate",
    f"{HIGH}/then/approval_mode",
    GATE,
    f"{REFUND}/requires_approval_gate",
    f"{REFUND}/arg_constraints",
    AMOUNT,
    f"{AMOUNT}/max",
    TARGET,
    *(f"/evaluation_layer/release_gates/{metric}" for metric in ("policy", "safety")),
)


# The base requires approval above 3000; these miss numbers, or the text "5000".
_MISSING_SOME: tuple[Any, ...] = ({">": [VAR, "~"]}, {"!": [{"<=": [VAR, "B"]}]}, {"===": [VAR, "5000"]})


def _altering() -> Iterator[Step]:
    """Yield changes that neither narrow nor widen, or of unknown effect: major, and refused in an overlay."""
    for adapter in ("adp_orders", "adp_policy"):
        yield from (((f"{ADAPTERS}/{adapter}/approval_mode", mode),) for mode in MODES[1:])
    for amount in _amounts(600):  # a request without a role was denied, and would be no longer
        yield ((f"{HIGH}/if", {">=": [VAR, amount]}),)
    for condition in _MISSING_SOME:
        yield ((f"{GATE}/when", condition),)
        yield ((f"{HIGH}/if", condition),)
    for amount in _amounts(600):
        yield ((f"{ALLOWING}/if", {"<": [{"+": [VAR, FEE]}, amount]}),)
    yield ((f"{AMOUNT}/max", {"var": "request.context.order_total"}),)
    yield ((f"{SPEC}/version", "9.0.0"),)
    # It alone produces evidence that is required: without it, a request could attest that.
    yield (("/tooling_layer/permissions/adp_orders.lookup", None),)
    yield (("/pack_meta/data_classification", "PUBLIC"),)
    outcomes = EXAMPLE["decision_layer"]["decision_specs"][0]["allowed_outcomes"]
    for size in (1, 2):
        yield from (((f"{SPEC}/allowed_outcomes", list(subset)),) for subset in itertools.combinations(outcomes, size))
    yield ((f"{SPEC}/allowed_outcomes", [*outcomes, "deferred"]),)
    yield ((f"{SPEC}/required_evidence", ["identity_verified"]),)
    yield ((f"{SPEC}/owner_role", "finance_lead"),)
    yield (("/intelligence_refs/ontology/namespace", "ont.retail"),)
    yield (("/intelligence_refs/ontology/version", "1.1.0"),)
    yield (("/intelligence_refs/ontology/entity_types", ["Customer", "Order", "Refund"]),)
    yield (("/intelligence_refs/knowledge_graph/snapshot_pin_rule", "alias:next"),)
    yield (("/intelligence_refs/embedding_keys", ["support_orders_v2"]),)
    yield ((f"{GATE}/required_approver_role", "support_ops"),)
    yield ((f"{HIGH}/if", {">": [FEE, 3000]}),)
    yield ((f"{HIGH}/applies_to", {"intent": "support.exchange"}),)
    yield (("/policy_layer/policy_bundles/POLICY_RETURNS_V4/priority", 20),)
    yield ((f"{ADAPTERS}/adp_orders/type", "MCP"),)
    yield ((f"{MEMORY}/tier_ttls/working", "2h"),)
    yield (("/pack_meta/tenant/tenant_id", "tenant_globex"),)
    yield (("/contract_meta/issuer", "tenant_globex"),)
    yield (("/contract_meta/compatibility/requires/runtime", ">=2.0.0"),)


NARROWING, WIDENING, ALTERING = tuple(_narrowing()), tuple(_widening()), tuple(_altering())


def some_of_each_form(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return up to four of the steps that differ in their numbers only; in `make laws`, all steps."""
    if PROFILE == "laws":
        return tuple(steps)
    forms: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        forms[re.sub(r"\d+", "0", repr(step))].append(step)
    return tuple(step for same in forms.values() for step in same[:: (len(same) + 3) // 4])


def overlay(*steps: Step, order: int = 0, name: str = "ov.staging") -> Overlay:
    """Make an overlay of the example with these changes."""
    return Overlay(
        overlay_id=name,
        overlay_version="1.0.0",
        base_pack_id="ctxpack.support",
        environment="staging",
        order=order,
        issuer="tenant_acme_prod",
        changes=tuple(
            OverlayChange(at=at, remove=True) if value is None else OverlayChange(at=at, value=value)
            for step in steps
            for at, value in step
        ),
    )
