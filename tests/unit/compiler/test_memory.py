"""Which memories reach a model: promoted ones, of this tenant, for this intent and role, that are not over."""

from typing import Any

import pytest

from contextplane.compiler.compile import compile_draft
from contextplane.compiler.inputs import read_memories, read_request, read_run_context
from tests.support.cases import cases
from tests.unit.compiler.scenario import NOW, compile_scenario, inputs, memory, view_of


@cases(
    ("changes", "reason"),
    [
        ({"state": "captured"}, "not_promoted"),
        ({"state": "candidate"}, "not_promoted"),
        ({"state": "reviewed"}, "not_promoted"),
        ({"state": "rejected"}, "not_promoted"),
        ({"subject": "invoice:inv_1"}, "namespace_not_in_scope"),
        ({"intents": ["support.return"]}, "not_for_this_intent"),
        ({"roles": ["finance_lead"]}, "not_for_this_role"),
        ({"classification": "RESTRICTED"}, "classification_above_pack"),
        ({"expires_at": NOW}, "expired"),
        ({"expires_at": "2099-02-30T00:00:00Z"}, "expired"),
    ],
)
def test_what_may_not_be_recalled_is_left_out_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    context = compile_scenario(memories=[memory(content="a secret of somebody", **changes)], as_of=NOW)
    assert context.manifests.memory_manifest == ()
    (gone,) = context.manifests.omission_manifest
    assert (gone.kind, gone.stage, gone.reason, gone.at) == ("memory", "memory", reason, "memories#/0")
    assert "a secret of somebody" not in str(context)


def test_a_memory_for_this_intent_and_role_that_is_not_over_is_data() -> None:
    kept = memory(intents=["support.refund"], roles=["support_agent"], expires_at="2026-05-04T09:31:01Z")
    context = compile_scenario(memories=[kept], as_of=NOW)
    (block,) = [block for block in context.compiled_prompt.context_blocks if block.bucket == "memory"]
    assert (block.block_id, block.content) == ("mem_0", kept["content"])
    assert block.instruction_treatment == "data_only"
    assert block.provenance_refs == (kept["memory_ref"],)


def test_when_nobody_says_what_time_it_is_a_memory_with_an_end_is_over() -> None:
    context = compile_scenario(memories=[memory(expires_at="2099-01-01T00:00:00Z")])
    assert [omission.reason for omission in context.manifests.omission_manifest] == ["expired"]


def test_a_memory_twice_is_shown_once() -> None:
    context = compile_scenario(memories=[memory(), memory()])
    assert context.context_ledger.memory_refs == ("mem:preference:cus_77:refund",)
    assert [(omission.reason, omission.at) for omission in context.manifests.omission_manifest] == [
        ("duplicate", "memories#/1")
    ]


def test_one_and_the_same_memory_handed_in_twice_is_shown_once() -> None:
    plain_inputs = inputs()
    (memory,) = read_memories(plain_inputs["memories"])
    run, request = read_run_context(plain_inputs["run_context"]), read_request(plain_inputs["request"])
    context = compile_draft(view_of(plain_inputs), run, request, memories=[memory, memory]).seal
    assert len(context.manifests.memory_manifest) == 1


@pytest.mark.parametrize("other", [{"content": "other"}, {"tier": "working"}, {"expires_at": "2099-01-01T00:00:00Z"}])
def test_different_memories_under_one_reference_are_all_left_out(other: dict[str, Any]) -> None:
    context = compile_scenario(memories=[memory(), memory(**other), memory(memory_ref="mem:else")], as_of=NOW)
    assert context.context_ledger.memory_refs == ("mem:else",)
    assert [(omission.reason, omission.at) for omission in context.manifests.omission_manifest] == [
        ("same_reference_twice", "memories#/0"),
        ("same_reference_twice", "memories#/1"),
    ]


def test_a_memory_is_no_clearer_for_the_other_one_being_refused() -> None:
    context = compile_scenario(memories=[memory(state="candidate", content="older"), memory()])
    assert context.manifests.memory_manifest == ()
    assert [omission.reason for omission in context.manifests.omission_manifest] == [
        "not_promoted",
        "same_reference_twice",
    ]
