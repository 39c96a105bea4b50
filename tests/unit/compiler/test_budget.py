"""Blocks are kept whole or not at all, by bucket and then within the total; what is dropped is told."""

from contextplane.compiler.prompt import prompt_text
from contextplane.model.compiled_context import BUCKETS
from contextplane.model.tokens import APPROX4
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.compiler.scenario import compile_scenario, evidence

TOKENS = "/run_budget/bucket_tokens"


class Words:
    """Counts words."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


@cases("total", [0, 1, 12000])
@cases("each", [0, 1, 5])
def test_budgets_smaller_than_every_block_drop_all_but_the_non_negotiables(total: int, each: int) -> None:
    run = {TOKENS: dict.fromkeys(BUCKETS, each), "/run_budget/total_tokens": total}
    context = compile_scenario(run=run)
    (block,) = context.compiled_prompt.context_blocks
    assert block.block_id == "biz_summary"
    assert "never expose payment details in customer messages" in block.content
    report = context.budget_report
    assert report.bucket_truncations == dict.fromkeys(BUCKETS[1:], True)
    assert "business bucket exceeded budget; kept a block that is never dropped" in report.warnings
    assert report.tokens_used_by_bucket["business"] == block.tokens
    whole = (block.tokens or 0) + (context.context_ledger.fixed_tokens or 0)
    assert report.tokens_used_at_compile == whole
    too_small = f"the total is {total} tokens, and what is never dropped takes {whole}"
    assert (report.warnings[-1] == too_small) is (total < whole)
    assert context.manifests.tool_manifest == ()
    assert {omission.id for omission in context.manifests.omission_manifest if omission.kind == "tool"} == {
        "adp_orders.lookup",
        "adp_policy.eval",
        "adp_payments.issue_refund",
    }


def test_policy_that_does_not_fit_the_prompt_holds_all_the_same() -> None:
    whole, starved = compile_scenario(), compile_scenario(run={f"{TOKENS}/policy": 0})
    assert starved.manifests.policy_manifest == whole.manifests.policy_manifest
    assert starved.runtime_controls == whole.runtime_controls


def test_a_large_block_does_not_push_out_the_small_ones_behind_it() -> None:
    pieces = [
        evidence(evidence_ref=f"session:s{n}", type="chat", content="x" * size) for n, size in enumerate([40, 4000, 40])
    ]
    context = compile_scenario(evidence=pieces, run={f"{TOKENS}/evidence": 100})
    assert context.context_ledger.evidence_refs == ("session:s0", "session:s2")
    assert context.budget_report.dropped_block_ids == {"evidence": ("ev_1",)}


def test_beyond_the_total_the_last_of_the_lowest_priority_go_first() -> None:
    whole = compile_scenario()
    used = whole.budget_report.tokens_used_at_compile
    session, memory = (whole.budget_report.tokens_used_by_bucket[name] for name in ("session", "memory"))
    context = compile_scenario(run={"/run_budget/total_tokens": used - session - memory - 1})
    assert context.budget_report.dropped_block_ids == {
        "evidence": ("ev_4",),
        "memory": ("mem_0",),
        "session": ("session",),
    }
    reasons = {omission.reason for omission in context.manifests.omission_manifest}
    assert reasons == {"over_total_budget"}
    assert context.budget_report.warnings == ("the total exceeded budget; dropped 3 low-priority blocks",)
    assert context.budget_report.tokens_used_at_compile <= used - session - memory - 1


@proves("context-pack:resolution:allocate-budgets")
@cases("bucket", BUCKETS[1:])
def test_a_bucket_one_token_short_loses_its_last_block_and_the_report_counts_what_is_in_the_prompt(bucket: str) -> None:
    whole = compile_scenario()
    used = whole.budget_report.tokens_used_by_bucket
    allotted = {name: tokens - (name == bucket) for name, tokens in used.items()}
    fixed = whole.context_ledger.fixed_tokens or 0
    context = compile_scenario(run={TOKENS: allotted, "/run_budget/total_tokens": sum(used.values()) + fixed})
    report, blocks = context.budget_report, context.compiled_prompt.context_blocks
    last = [block for block in whole.compiled_prompt.context_blocks if block.bucket == bucket][-1]
    assert blocks == tuple(block for block in whole.compiled_prompt.context_blocks if block != last)
    assert report.dropped_block_ids == {bucket: (last.block_id,)}
    assert report.tokens_allocated == allotted
    assert report.tokens_used_by_bucket == {
        name: sum(block.tokens or 0 for block in blocks if block.bucket == name) for name in BUCKETS
    }
    shorter = context.context_ledger.fixed_tokens or 0
    assert shorter <= fixed
    assert report.tokens_used_at_compile == sum(used.values()) - (last.tokens or 0) + shorter


def test_the_fixed_text_counts_against_the_total() -> None:
    whole = compile_scenario()
    used = whole.budget_report.tokens_used_at_compile
    assert used == sum(whole.budget_report.tokens_used_by_bucket.values()) + (whole.context_ledger.fixed_tokens or 0)
    assert compile_scenario(run={"/run_budget/total_tokens": used}).budget_report.dropped_block_ids == {}
    longer = {"/input/message": "Refund order ord_881 for INR 4200, and tell me when the money will be there."}
    context = compile_scenario(run={"/run_budget/total_tokens": used}, request=longer)
    assert context.budget_report.dropped_block_ids == {"session": ("session",)}


def test_a_call_that_does_not_fit_is_not_said_to_wait() -> None:
    refund = "adp_payments.issue_refund"
    assert f"{refund} waits" in compile_scenario().compiled_prompt.developer
    context = compile_scenario(run={f"{TOKENS}/tool": 0})
    assert refund not in prompt_text(context.compiled_prompt)
    assert context.runtime_controls.approval_gates_active == ("GATE_FINANCE_APPROVAL",)


def test_what_fits_exactly_is_kept() -> None:
    report = compile_scenario().budget_report
    used = report.tokens_used_by_bucket
    exactly = {TOKENS: dict(used), "/run_budget/total_tokens": report.tokens_used_at_compile}
    assert compile_scenario(run=exactly).budget_report.bucket_truncations == {}
    one_less = {TOKENS: {**used, "session": used["session"] - 1}}
    assert compile_scenario(run=one_less).budget_report.dropped_block_ids == {"session": ("session",)}


def test_a_dropped_block_is_listed_with_its_size_priority_and_sources() -> None:
    context = compile_scenario(run={f"{TOKENS}/memory": 0})
    (block, memory) = context.manifests.omission_manifest
    assert (block.kind, block.id, block.bucket, block.priority) == ("block", "mem_0", "memory", 50)
    assert (block.tokens or 0) > 0
    assert block.source_refs == (memory.id,) == ("mem:preference:cus_77:refund",)


def test_another_counter_counts_otherwise_and_is_named() -> None:
    counter = Words()
    context = compile_scenario(tokens=counter)
    assert context.context_ledger.token_counter == counter.name
    assert context.budget_report.tokens_used_at_compile != compile_scenario().budget_report.tokens_used_at_compile


@cases(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("\U0001f600" * 5, 2)])
def test_a_token_is_four_characters_begun_ones_included(text: str, tokens: int) -> None:
    assert APPROX4.count(text) == tokens
