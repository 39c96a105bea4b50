"""What each layer of a pack does to a compiled context."""

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from contextplane.compiler.compile import STAGES
from contextplane.compiler.prompt import FRAME, prompt_text
from contextplane.model.tokens import CALIBRATED1
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.compiler.scenario import CASE, PACK, compile_scenario, inputs, plain, view_of


def environment(**changes: Any) -> dict[str, tuple[str, str]]:  # noqa: ANN401  any JSON
    return {
        name: (setting.value, setting.source)
        for name, setting in compile_scenario(**changes).context_ledger.environment.items()
    }


@proves("context-pack:pack-meta:environment-default-fields", "context-pack:pack-meta:deployable-identity")
def test_defaults_of_the_pack_hold_where_nobody_says_otherwise() -> None:
    request = {key: part for key, part in CASE["request"]["input"].items() if key != "locale"}
    assert environment(request={"/input": request}, run={"/locale": None}) == {
        "language": ("en", "pack"),
        "timezone": ("Asia/Kolkata", "pack"),
        "currency": ("INR", "pack"),
        "region": ("ap-south-1", "pack"),
    }
    assert compile_scenario().context_ledger.pack_ref == "ctxpack.support@1.0.0"


def test_what_the_request_says_comes_before_the_run_and_the_pack() -> None:
    request = {key: part for key, part in CASE["request"]["input"].items() if key != "locale"}
    assert environment(request={"/input": request}, run={"/locale": "hi-IN"})["language"] == ("hi-IN", "run_context")
    context = {"timezone": "Europe/Berlin", "currency": "EUR", "region": "eu-1"}
    resolved = environment(request={"/input/locale": "de-DE", "/input/context": context})
    assert resolved == {
        "language": ("de-DE", "request"),
        "timezone": ("Europe/Berlin", "request"),
        "currency": ("EUR", "request"),
        "region": ("eu-1", "request"),
    }


@cases("value", [7, "", None, ["EUR"]])
def test_what_is_no_text_leaves_the_default(value: object) -> None:
    assert environment(request={"/input/context/currency": value})["currency"] == ("INR", "pack")


@proves(
    "context-pack:controls:business-context",
    "context-pack:structure:business-context",
    "context-pack:business-context:durable-constraints",
)
def test_the_business_block_holds_the_business_context_and_nothing_of_the_request() -> None:
    whole = compile_scenario()
    (block,) = [block for block in whole.compiled_prompt.context_blocks if block.bucket == "business"]
    for text in ("Post-purchase customer support", "customers", "fast, policy-compliant resolution"):
        assert text in block.content
    assert "never promise a refund before policy verification" in block.content
    other = compile_scenario(
        request={"/input/message": "something else", "/input/context": {}, "/input/channel": "mail"}
    )
    assert block in other.compiled_prompt.context_blocks


@proves("context-pack:tone-and-comms:response-style")
def test_tone_is_in_the_system_text_below_policy() -> None:
    changes = {
        "/tone_and_comms/customer_facing": {"do": ["say sorry"]},
        "/tone_and_comms/operator_facing": {"dont": ["omit rule ids"]},
    }
    system = compile_scenario(pack=changes).compiled_prompt.system
    assert system.split("\n\n")[1].split("\n") == [
        "# How you speak, never above policy",
        "Voice: clear; neutral.",
        "Do: cite policy; explain approval status.",
        "Do not: promise outcomes before approval; expose internal rule IDs to customers.",
        "To customers: Do: say sorry.",
        "To operators: Do not: omit rule ids.",
    ]


@proves("context-pack:controls:tooling-layer", "context-pack:tooling-layer:permissions-expose")
def test_a_capability_without_a_permission_is_not_surfaced_and_says_so() -> None:
    context = compile_scenario(pack={"/tooling_layer/adapter_registry/0/capabilities": ["lookup", "cancel"]})
    assert "adp_orders.cancel" not in context.context_ledger.tools
    gone = {omission.id: omission.reason for omission in context.manifests.omission_manifest if omission.kind == "tool"}
    assert gone == {"adp_orders.cancel": "not_permitted"}


@proves("context-pack:resolution:compute-tool-surface")
@pytest.mark.parametrize("ceiling", ["read_only", "destructive"])
def test_the_tool_manifest_is_what_registry_and_permissions_share_below_the_ceiling(ceiling: str) -> None:
    permission = {"adapter_id": "adp_orders", "allow": True}
    context = compile_scenario(
        pack={
            "/tooling_layer/adapter_registry/0/capabilities": ["lookup", "cancel", "trace"],
            "/tooling_layer/permissions": [
                *PACK["tooling_layer"]["permissions"],
                {**permission, "permission_id": "p_trace", "capability": "trace", "allow": False},
                {**permission, "permission_id": "p_merge", "capability": "merge"},
            ],
        },
        run={"/safety_mode": ceiling},
    )
    omitted = {"adp_orders.cancel": "not_permitted", "adp_orders.trace": "permission_denies"}
    omitted |= {"adp_orders.merge": "not_in_registry"}
    surfaced = {"adp_orders": ("lookup",), "adp_policy": ("eval",), "adp_payments": ("issue_refund",)}
    if ceiling == "read_only":
        del surfaced["adp_payments"]
        omitted["adp_payments.issue_refund"] = "above_ceiling"
    assert {entry.adapter_id: entry.capabilities for entry in context.manifests.tool_manifest} == surfaced
    omissions = [omission for omission in context.manifests.omission_manifest if omission.kind == "tool"]
    assert {omission.id: omission.reason for omission in omissions} == omitted
    blocks = [block for block in context.compiled_prompt.context_blocks if block.bucket == "tool"]
    assert [block.provenance_refs for block in blocks] == [
        tuple(f"{adapter}.{name}" for name in names) for adapter, names in surfaced.items()
    ]


@proves("context-pack:resolution:emit-controls")
@pytest.mark.parametrize(("amount", "gates"), [(4200, ("GATE_FINANCE_APPROVAL",)), (5, ())])
def test_the_controls_are_the_guardrails_and_redactions_of_the_pack_and_its_active_gates(
    amount: int, gates: tuple[str, ...]
) -> None:
    guardrails = "/policy_layer/guardrails"
    controls = compile_scenario(
        pack={f"{guardrails}/must_escalate/-": "chargeback_open", f"{guardrails}/redaction_rules": ["pan"]},
        request={"/input/context/refund_amount": amount},
    ).runtime_controls
    assert controls.must_refuse == ("refund_without_identity",)
    assert controls.must_escalate == ("fraud_signal_high", "chargeback_open")
    assert controls.redaction_rules_active == ("pan",)
    assert controls.approval_gates_active == gates


@proves("context-pack:resolution:evaluate-policy")
def test_rules_that_had_no_effect_are_omitted_with_their_reason() -> None:
    rules = "/policy_layer/policy_bundles/0/policy_dsl/rules/"
    context = compile_scenario(
        pack={f"{rules}0/applies_to/intent": "support.other"}, request={"/input/context/refund_amount": 5}
    )
    gone = {
        omission.id: (omission.stage, omission.reason)
        for omission in context.manifests.omission_manifest
        if omission.kind == "rule"
    }
    assert gone == {
        "POLICY_RETURNS_V4#R_REFUND_REQUIRES_IDV": ("policy", "out_of_scope"),
        "POLICY_RETURNS_V4#R_HIGH_VALUE_REQUIRES_APPROVAL": ("policy", "no_else"),
    }
    assert context.manifests.policy_manifest == ()
    assert context.runtime_controls.approval_gates_active == ()


def test_a_fact_that_a_rule_reads_and_nobody_gave_is_recorded() -> None:
    context = compile_scenario(request={"/input/context": {}})
    assert context.policy_decision is not None
    assert "request.context.identity_verified" in context.policy_decision.missing_facts
    assert not context.policy_decision.allowed
    (record,) = [stage for stage in context.context_ledger.stages if stage.stage == "policy"]
    assert any("request.context.identity_verified" in note for note in record.notes)


def test_what_a_guardrail_reads_and_what_a_rule_applies_by_is_recorded_when_nobody_gave_it() -> None:
    risky = {"id": "risky", "when": {"==": [{"var": "request.context.fraud_score"}, "high"]}}
    scope = {"intent": "support.refund", "channel": "email"}
    context = compile_scenario(
        pack={
            "/policy_layer/guardrails/must_refuse": [risky],
            "/policy_layer/policy_bundles/0/policy_dsl/rules/1/applies_to": scope,
        },
        request={"/input/channel": None},
    )
    verdict = context.policy_decision
    assert verdict is not None
    assert (verdict.allowed, verdict.refused) == (False, ("risky",))
    assert verdict.missing_facts == ("request.context.fraud_score", "request.channel")
    (record,) = [stage for stage in context.context_ledger.stages if stage.stage == "policy"]
    assert record.notes == (
        "must_refuse risky read request.context.fraud_score, which is missing",
        "POLICY_RETURNS_V4#R_HIGH_VALUE_REQUIRES_APPROVAL applies by request.channel, which is missing",
    )


@pytest.mark.parametrize(
    ("request_", "refused", "escalated"),
    [
        ({"/input/context/refund_without_identity": True}, ("refund_without_identity",), ()),
        ({"/input/context/signals": ["fraud_signal_high"]}, (), ("fraud_signal_high",)),
    ],
)
def test_a_triggered_guardrail_denies_whatever_rules_say(
    request_: dict[str, Any], refused: tuple[str, ...], escalated: tuple[str, ...]
) -> None:
    verdict = compile_scenario(request=request_).policy_decision
    assert verdict is not None
    assert (verdict.allowed, verdict.refused, verdict.escalated) == (False, refused, escalated)


@proves("context-pack:overlays:auditable")
def test_the_lineage_names_everything_the_view_was_made_from_in_its_order() -> None:
    lineage = [
        {"ref": "ctxpack.support@1.0.0", "digest": "sha256:" + "1" * 64},
        {"ref": "overlay.support.in@1.0.0", "digest": "sha256:" + "2" * 64},
        {"ref": "overlay.support.prod@2.0.0", "digest": "sha256:" + "3" * 64},
    ]
    ledger = compile_scenario(lineage=lineage).context_ledger
    assert [{"ref": lineage.ref, "digest": lineage.digest} for lineage in ledger.lineage] == lineage
    swapped = compile_scenario(lineage=[lineage[0], lineage[2], lineage[1]]).context_ledger
    assert swapped.compiled_context_hash != ledger.compiled_context_hash


@proves("context-pack:resolution:resolve-intelligence")
def test_the_ledger_says_what_gave_things_their_meaning() -> None:
    scope = compile_scenario().context_ledger.scope
    assert scope is not None
    assert plain(scope) == {
        "ontology": "ont.support@1.0.0",
        "snapshot": "kg_2026_05_03_T0930",
        "snapshot_pin_rule": "alias:prod",
        "ceid_namespaces": ["customer", "order"],
        "embedding_keys": ["support_orders_v1"],
    }


def test_every_stage_leaves_a_hash_in_the_order_of_the_table() -> None:
    names = [stage.name for stage in STAGES]
    assert names == [
        "redaction",
        "scope",
        "intent",
        "policy",
        "tools",
        "evidence",
        "memory",
        "budget",
        "assemble",
        "seal",
    ]
    records = compile_scenario().context_ledger.stages
    assert [record.stage for record in records] == names[:-1]
    assert len({record.hash for record in records}) == len(records)


@cases(
    ("changes", "first"),
    [
        ({"snapshot": "kg_1", "evidence": []}, "scope"),
        ({"request": {"/input/context/refund_amount": 4201}}, "policy"),
        ({"run": {"/safety_mode": "delegated"}}, "tools"),
        ({"pack": {"/tooling_layer/permissions/2/arg_constraints/amount_inr/max": 40000}}, "tools"),
        ({"evidence": []}, "evidence"),
        ({"memories": []}, "memory"),
        ({"request": {"/input/channel": "mail"}}, "budget"),
        ({"request": {"/input/message": "Refund it."}}, "budget"),
        ({"request": {"/input/message": "Refund order ord_882 for INR 4200."}}, "assemble"),
    ],
)
def test_stage_hashes_name_the_first_stage_that_drifted(changes: dict[str, Any], first: str) -> None:
    base: dict[str, Any] = {"evidence": []} if "snapshot" in changes else {}
    before, after = compile_scenario(**base).context_ledger.stages, compile_scenario(**changes).context_ledger.stages
    drifted = [
        stage_record.stage for stage_record, other in zip(before, after, strict=True) if stage_record.hash != other.hash
    ]
    assert drifted[0] == first


def test_a_tool_tells_its_bounds_and_its_input() -> None:
    changes = {
        "/tooling_layer/adapter_registry/2/capability_specs": {
            "issue_refund": {"input_schema": {"type": "object", "properties": {"amount_inr": {"type": "number"}}}}
        },
        "/tooling_layer/permissions/2/arg_constraints": {
            "amount_inr": {"min": 0.5, "max": 50000, "unless_approved": True},
            "currency": {"enum": ["INR", "EUR"]},
            "idempotency_key": {"required": True, "pattern": "^ik_[a-z0-9]{16}$"},
        },
    }
    context = compile_scenario(pack=changes)
    (block,) = [block for block in context.compiled_prompt.context_blocks if block.block_id == "tool_2"]
    assert block.content == (
        "adp_payments.issue_refund: write, destructive; "
        "amount_inr at least 0.5, at most 50000, unless approved; "
        'currency one of ["INR","EUR"]; arguments amount_inr?: number'
    )
    (entry,) = [entry for entry in context.manifests.tool_manifest if entry.adapter_id == "adp_payments"]
    assert [limit.argument for limit in entry.constraints["issue_refund"]] == [
        "amount_inr",
        "currency",
        "idempotency_key",
    ]


@pytest.mark.parametrize("amount", [2000, 4200])
def test_a_tool_waits_only_for_gates_that_are_active(amount: int) -> None:
    context = compile_scenario(request={"/input/context/refund_amount": amount})
    line = "adp_payments.issue_refund waits for approval by finance_lead (GATE_FINANCE_APPROVAL)."
    assert (line in context.compiled_prompt.developer.split("\n")) == (amount > 3000)


def test_a_gate_that_only_a_rule_asks_for_holds_every_call_that_writes() -> None:
    context = compile_scenario(pack={"/tooling_layer/permissions/2/requires_approval_gate": None})
    line = "adp_payments.issue_refund waits for approval by finance_lead (GATE_FINANCE_APPROVAL)."
    assert line in context.compiled_prompt.developer.split("\n")


def test_a_denied_request_waits_for_nobody() -> None:
    context = compile_scenario(request={"/input/context/identity_verified": False})
    assert "wait" not in context.compiled_prompt.developer
    reason = "Identity not verified; refund path blocked"
    assert f"This request is denied: {reason}. Do not carry it out" in context.compiled_prompt.developer


def test_a_model_is_not_told_of_a_tool_that_it_may_not_call() -> None:
    changes = {"/policy_layer/policy_bundles/0/policy_dsl/rules/0/then/prohibits": ["adp_orders.lookup"]}
    context = compile_scenario(pack=changes)
    assert "adp_orders.lookup" not in prompt_text(context.compiled_prompt)


def test_all_outcomes_of_the_decisions_are_in_the_manifest() -> None:
    (entry,) = compile_scenario().manifests.decision_manifest
    assert plain(entry) == {
        "decision_key": "support.refund.execute",
        "decision_right": "execute",
        "allowed_outcomes": ["approved", "denied", "escalated"],
        "approval_mode": "destructive",
    }


@pytest.mark.parametrize(("typed", "stored"), [(50000.0, 50000), (0.10, 0.1), (-0.0, 0)])
def test_a_pack_compiles_alike_before_and_after_it_was_stored(typed: float, stored: float) -> None:
    most = "/tooling_layer/permissions/2/arg_constraints/amount_inr/max"
    first, second = (
        compile_scenario(pack={most: typed}).context_ledger,
        compile_scenario(pack={most: stored}).context_ledger,
    )
    assert first.compiled_context_hash == second.compiled_context_hash


def test_the_ledger_counts_what_stands_in_no_bucket() -> None:
    context = compile_scenario()
    prompt = context.compiled_prompt
    texts = (prompt.system, FRAME, prompt.developer, prompt.task)
    assert context.context_ledger.fixed_tokens == sum(map(CALIBRATED1.count, texts))
    without_blocks = prompt_text(replace(prompt, context_blocks=()))
    assert all(line in without_blocks.split("\n") for text in texts if text != FRAME for line in text.split("\n"))


def test_what_a_pack_and_a_request_do_not_say_is_not_told() -> None:
    bare = {"what_we_do": "Support"}
    request_input = {"intent": "support.refund", "message": "Refund it."}
    context = compile_scenario(
        pack={
            "/business_context": {"summary": bare},
            "/tone_and_comms": {},
            "/policy_layer/policy_bundles/0/policy_dsl/rules/0/rationale": None,
        },
        request={"/input": request_input},
        run={"/user/role": None},
        memories=[],
    )
    blocks = {block.block_id: block.content for block in context.compiled_prompt.context_blocks}
    assert blocks["biz_summary"] == "What we do: Support"
    assert blocks["session"] == 'language "en-IN"'
    doubt = 'undecided, because "request.context.identity_verified" is missing'
    assert blocks["pol_0"].startswith(
        f"R_REFUND_REQUIRES_IDV: {doubt}, so the restrictions of both of its branches hold"
    )
    assert "allowed" not in blocks["pol_0"]
    assert context.manifests.policy_manifest[0].rule_ids == ()
    assert context.manifests.policy_manifest[0].undecided == ("R_REFUND_REQUIRES_IDV", "R_HIGH_VALUE_REQUIRES_APPROVAL")
    assert "How you speak" not in context.compiled_prompt.system


def test_what_is_kept_of_many_surfaces_stays_bounded() -> None:
    view = view_of(inputs())
    for n in (*range(300), 299, 0):
        assert view.memoize(n, partial(str, n)) == str(n)
    assert len(view._memo) < 256


def test_a_signal_that_no_guardrail_answers_to_is_noted() -> None:
    signals = ["fraud_signal_high", "Fraud_Signal_High", "Fraud_Signal_High", "x\n"]
    context = compile_scenario(request={"/input/context/signals": signals})
    record = next(stage for stage in context.context_ledger.stages if stage.stage == "policy")
    assert [note for note in record.notes if "signal" in note] == [
        'the signal "Fraud_Signal_High" names no guardrail',
        'the signal "x\\n" names no guardrail',
    ]
