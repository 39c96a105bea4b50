"""The scenario that the contract shows, exactly, and the four changes that it invites to try."""

import msgspec
import pytest

from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.model.compiled_context import BUCKETS, PRIORITIES, CompiledContext
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.compiler.scenario import CASE, CASES, PACK, compile_scenario, evidence, plain

SHOWN = CASE["shown"]
REFUND = "adp_payments.issue_refund"


def tools_of(context: CompiledContext) -> set[str]:
    return set(context.context_ledger.tools)


@proves(
    "context-pack:compiled-output:shown-scenario",
    "context-pack:full-example:compiles",
    "context-pack:compiled-output:block-fields",
    "context-pack:compiled-output:bucket-priorities",
    "context-pack:compiled-output:block-order",
    "context-pack:compiled-output:business-block",
    "context-pack:compiled-output:policy-blocks",
    "context-pack:compiled-output:tool-blocks",
    "context-pack:compiled-output:evidence-blocks",
    "context-pack:compiled-output:memory-block",
    "context-pack:compiled-output:session-block",
)
def test_blocks_have_the_ids_buckets_priorities_and_order_that_are_shown() -> None:
    blocks = plain(compile_scenario())["compiled_prompt"]["context_blocks"]
    assert [[block["block_id"], block["bucket"], block["priority"]] for block in blocks] == SHOWN["blocks"]
    assert [*dict.fromkeys(block["bucket"] for block in blocks)] == [*BUCKETS]
    assert {block["bucket"]: block["priority"] for block in blocks} == PRIORITIES


@proves(
    "context-pack:compiled-output:policy-manifest-shape",
    "context-pack:compiled-output:tool-manifest-shape",
    "context-pack:compiled-output:evidence-manifest-shape",
    "context-pack:compiled-output:runtime-controls-shape",
    "context-pack:structure:policy-layer",
    "context-pack:structure:tooling-layer",
    "context-pack:compiled-required:policy-manifest",
    "api-contracts:compiled:policy-manifest",
    "api-contracts:compiled:evidence-manifest",
    "api-contracts:compiled:runtime-controls",
)
def test_manifests_and_controls_are_those_that_are_shown() -> None:
    context = plain(compile_scenario())
    manifests = context["manifests"]
    assert manifests["policy_manifest"] == SHOWN["policy_manifest"]
    tools = [{key: adapter[key] for key in ("adapter_id", "capabilities")} for adapter in manifests["tool_manifest"]]
    assert tools == SHOWN["tool_manifest"]
    assert manifests["evidence_manifest"][0]["evidence_ref"] == SHOWN["first_evidence"]
    assert [entry["evidence_ref"] for entry in manifests["evidence_manifest"]] == CASE["evidence"]
    controls = context["runtime_controls"]
    (approval,) = controls.pop("approval_gates")
    assert controls == SHOWN["runtime_controls"]
    assert approval == {
        "gate_id": "GATE_FINANCE_APPROVAL",
        "capabilities": ["adp_payments.issue_refund"],
        "required_approver_role": "finance_lead",
        "approvers": 1,
        "approver_not_requester": True,
        "ttl_seconds": PACK["policy_layer"]["approval_gates"][0]["ttl_seconds"],
        "because": ["rule:R_HIGH_VALUE_REQUIRES_APPROVAL", "tool:adp_payments.issue_refund"],
    }


@proves(
    "context-pack:compiled-output:prompt-fields",
    "context-pack:compiled-output:prompt-system",
    "context-pack:compiled-output:prompt-developer",
    "context-pack:compiled-output:prompt-task",
    "api-contracts:compiled:compiled-prompt",
)
def test_the_prompt_begins_as_shown_and_quotes_the_message() -> None:
    prompt = plain(compile_scenario())["compiled_prompt"]
    assert prompt.keys() == {"system", "developer", "task", "context_blocks"}
    assert prompt["system"].startswith("You are an agent governed by a context pack.")
    honor = "Honor the policy_manifest, tool_manifest, runtime_controls, and required_evidence at every step."
    assert prompt["developer"].startswith(honor)
    assert prompt["task"] == SHOWN["task"]


@proves(
    "context-pack:compiled-output:budget-report-fields",
    "context-pack:compiled-output:tokens-allocated",
    "context-pack:compiled-output:no-truncation-is-empty",
    "context-pack:compiled-required:budget-report",
    "api-contracts:compiled:budget-report",
    "api-contracts:compiled:tokens-allocated",
    "api-contracts:compiled:tokens-used",
    "api-contracts:run-context:bucket-tokens",
)
def test_the_budget_report_gives_what_was_allotted_and_adds_up() -> None:
    context = plain(compile_scenario())
    report, fixed = context["budget_report"], context["context_ledger"]["fixed_tokens"]
    fields = {"tokens_allocated", "tokens_used_at_compile", "tokens_used_by_bucket", "bucket_truncations"}
    assert report.keys() == fields | {"dropped_block_ids", "warnings"}
    assert report["tokens_allocated"] == SHOWN["tokens_allocated"]
    assert report["tokens_used_by_bucket"].keys() == set(BUCKETS)
    assert report["tokens_used_at_compile"] == sum(report["tokens_used_by_bucket"].values()) + fixed > fixed
    assert (report["bucket_truncations"], report["dropped_block_ids"], report["warnings"]) == ({}, {}, [])


@proves(
    "context-pack:definition:compiled-with-run-context",
    "context-pack:definition:compiled-context-parts",
    "context-pack:misconceptions:not-a-prompt-template",
    "api-contracts:compiled:fields",
    "api-contracts:compiled:manifests",
    "api-contracts:compiled:context-ledger",
    "api-contracts:compiled:context-ledger-budget",
    "api-contracts:compiled:compiled-context-hash",
)
def test_the_compiled_context_has_all_its_parts() -> None:
    context = plain(compile_scenario())
    parts = {"compiled_prompt", "manifests", "runtime_controls", "budget_report", "context_ledger"}
    assert parts <= context.keys()
    assert {"policy_manifest", "tool_manifest", "evidence_manifest"} <= context["manifests"].keys()
    ledger = context["context_ledger"]
    assert ledger["pack_ref"] == "ctxpack.support@1.0.0"
    assert ledger["request_id"] == "req_9f3a12"
    assert ledger["policy_bundles"] == ["POLICY_RETURNS_V4"]
    assert ledger["tools"] == ["adp_orders.lookup", "adp_policy.eval", REFUND]
    assert ledger["evidence_refs"] == CASE["evidence"]
    assert ledger["memory_refs"] == ["mem:preference:cus_77:refund"]
    used = context["budget_report"]["tokens_used_at_compile"]
    assert ledger["budget"] == {"tokens_used_at_compile": used, "truncated_buckets": []}
    assert ledger["compiled_context_hash"].startswith("sha256:")


@proves(
    "api-contracts:compiled:tool-manifest",
    "api-contracts:compiled:capability-metadata",
    "api-contracts:compiled:capability-metadata-values",
    "api-contracts:compiled:tool-surfacing-is-local",
)
def test_every_tool_carries_its_risk() -> None:
    tools = plain(compile_scenario())["manifests"]["tool_manifest"]
    metadata = {
        f"{tool['adapter_id']}.{cap}": data for tool in tools for cap, data in tool["capability_metadata"].items()
    }
    assert metadata[REFUND].pop("supplied_by_runtime") == ["idempotency_key"]
    assert metadata[REFUND] == {
        "kind": "write",
        "risk_level": "write_irreversible",
        "approval_mode": "destructive",
        "source": "adapter_registry",
    }
    assert metadata["adp_orders.lookup"]["kind"] == "read"
    assert metadata.keys() == tools_of(compile_scenario())


@proves("context-pack:playground:identity-flips-guard-rule")
def test_an_identity_that_is_not_verified_flips_the_guard_rule_and_blocks_the_refund() -> None:
    before, after = compile_scenario(), compile_scenario(request={"/input/context/identity_verified": False})
    assert before.policy_decision is not None
    assert after.policy_decision is not None
    assert before.policy_decision.allowed
    assert not after.policy_decision.allowed
    assert "Identity not verified; refund path blocked." in (after.policy_decision.reason or "")
    assert "Identity not verified; refund path blocked." in after.compiled_prompt.developer
    assert tools_of(after) == set()


@proves("context-pack:playground:gate-activates-above-3000")
@proves("context-pack:playground:gate-carries-destructive-mode", case="3001-True")
@pytest.mark.parametrize(("amount", "is_active"), [(2999, False), (3000, False), (3001, True), (4200, True)])
def test_above_3000_the_gate_is_active_and_the_mode_destructive(amount: int, *, is_active: bool) -> None:
    context = compile_scenario(request={"/input/context/refund_amount": amount})
    assert context.runtime_controls.approval_gates_active == (("GATE_FINANCE_APPROVAL",) if is_active else ())
    assert context.policy_decision is not None
    assert context.policy_decision.effective_approval_mode == ("destructive" if is_active else None)


@proves(
    "context-pack:playground:read-only-drops-refund",
    "context-pack:tooling-layer:filtered-by-safety-mode",
    "context-pack:mvp:read-tool",
    case="*",
)
@pytest.mark.parametrize("mode", ["read_only", "local_write", "network", "delegated"])
def test_below_destructive_the_refund_is_not_in_the_surface_and_says_why(mode: str) -> None:
    context = compile_scenario(run={"/safety_mode": mode})
    assert tools_of(context) == {"adp_orders.lookup", "adp_policy.eval"}
    (gone,) = [omission for omission in context.manifests.omission_manifest if omission.kind == "tool"]
    assert (gone.id, gone.stage, gone.reason) == (REFUND, "tools", "above_ceiling")
    assert REFUND not in context.compiled_prompt.developer + str(context.compiled_prompt.context_blocks)


@proves(
    "context-pack:playground:starved-evidence-truncates-visibly",
    "api-contracts:compiled:bucket-truncations",
    "api-contracts:compiled:dropped-block-ids",
    "api-contracts:compiled:warnings",
    "api-contracts:compiled:budget-problem-is-local",
)
def test_a_starved_evidence_budget_truncates_visibly() -> None:
    whole = compile_scenario()
    sizes = [block.tokens or 0 for block in whole.compiled_prompt.context_blocks if block.bucket == "evidence"]
    context = compile_scenario(run={"/run_budget/bucket_tokens/evidence": sum(sizes) - 1})
    report = context.budget_report
    assert report.bucket_truncations == {"evidence": True}
    assert report.dropped_block_ids == {"evidence": ("ev_4",)}
    assert report.warnings == ("evidence bucket exceeded budget; dropped 1 low-priority block",)
    assert context.context_ledger.evidence_refs == tuple(CASE["evidence"][:4])
    assert context.context_ledger.budget.truncated_buckets == ("evidence",)
    gone = [(omission.kind, omission.id, omission.reason) for omission in context.manifests.omission_manifest]
    assert gone == [("block", "ev_4", "over_budget"), ("evidence", CASE["evidence"][4], "over_budget")]


@proves("api-contracts:compiled:example")
def test_the_worked_compiled_output_is_accepted() -> None:
    worked = msgspec.json.decode((CASES / "compiler" / "worked.json").read_bytes())
    typed = typed_or_problems(worked, CompiledContext)
    assert isinstance(typed, CompiledContext)


@proves("context-pack:references:compiled-context-schema")
@cases(
    "context",
    [
        compile_scenario(),
        compile_scenario(run={"/safety_mode": "read_only"}, request={"/input/context": {}}),
        compile_scenario(run={"/run_budget/bucket_tokens/evidence": 0, "/run_budget/bucket_tokens/tool": 0}),
        compile_scenario(evidence=[evidence()], memories=[], as_of="2026-05-04T09:31:00Z"),
    ],
    ids=["shown", "denied", "starved", "typed evidence"],
)
def test_every_compiled_context_is_of_the_exported_form(context: CompiledContext) -> None:
    typed = typed_or_problems(plain(context), CompiledContext)
    assert typed == context


def test_the_form_is_closed() -> None:
    assert not isinstance(typed_or_problems({**plain(compile_scenario()), "more": 1}, CompiledContext), CompiledContext)
