"""What prompts share and cost: their common beginning, their fences, and hand-written ones with the same facts.

Tokens are counted by the calibrated counter, which another test holds against real counts; bench/README.md has exact
figures.
"""

from collections.abc import Callable
from itertools import pairwise

from contextplane.compiler.prompt import prompt_prefix, prompt_text
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.tokens import CALIBRATED1
from tests.support.cases import cases
from tests.support.pack_tables import TEAMS
from tests.unit.compiler.prompt_cases import (
    PROMPTS,
    cached_shares,
    common_length,
    compiled_prompts,
    draw_helpdesk,
    draw_refunds,
    draw_team,
)


@cases("draw", [draw_refunds, draw_helpdesk])
def test_two_hundred_requests_share_four_fifths_of_their_prompts(
    draw: Callable[[int, int], list[CompiledContext]],
) -> None:
    """A prompt cache holds what an earlier request began with; most of it is shared with the last one already."""
    drawn = draw(200, 15)
    assert len({context.context_ledger.prefix_hash for context in drawn}) == 1
    assert len({context.policy_decision and context.policy_decision.allowed for context in drawn}) == 2
    texts = [prompt_text(context.compiled_prompt) for context in drawn]
    assert len(set(texts)) == len(texts)
    prefix = prompt_prefix(drawn[0].compiled_prompt)
    assert all(text.startswith(prefix) for text in texts)
    cached = cached_shares(texts)
    last = [common_length(earlier, text) / len(text) for earlier, text in pairwise(texts)]
    assert sum(cached) / len(cached) >= 0.8
    assert sum(last) / len(last) >= 0.65


@cases("name", TEAMS)
def test_requests_of_a_team_share_as_much(name: str) -> None:
    """Half as many requests, because there are six packs; `make bench` draws 200 of each."""
    texts = [prompt_text(context.compiled_prompt) for context in draw_team(name, 100, 15)]
    assert len(set(texts)) == len(texts)
    cached = cached_shares(texts)
    last = [common_length(earlier, text) / len(text) for earlier, text in pairwise(texts)]
    assert sum(cached) / len(cached) >= 0.8
    assert sum(last) / len(last) >= 0.5, "of any intent, one after the other"


@cases("name", ["refund", "evidence", "tools"])
def test_a_prompt_costs_little_more_than_one_that_a_person_wrote_with_the_same_facts(name: str) -> None:
    written = (PROMPTS / f"{name}.txt").read_text(encoding="utf-8")
    compiled = prompt_text(compiled_prompts()[name].compiled_prompt)
    assert CALIBRATED1.count(compiled) <= 1.6 * CALIBRATED1.count(written)


def test_the_hand_written_prompts_have_the_same_facts() -> None:
    for name, context in compiled_prompts().items():
        written = (PROMPTS / f"{name}.txt").read_text(encoding="utf-8")
        facts = [
            *context.context_ledger.tools,
            *context.context_ledger.evidence_refs,
            *(rule for bundle in context.manifests.policy_manifest for rule in bundle.rule_ids),
            *(entry.decision_key for entry in context.manifests.decision_manifest),
            *(outcome for entry in context.manifests.decision_manifest for outcome in entry.allowed_outcomes),
            *(context.evidence_gate.required if context.evidence_gate else ()),
            *context.runtime_controls.approval_gates_active,
            *context.runtime_controls.must_refuse,
        ]
        assert [fact for fact in facts if fact not in written] == []


def test_a_piece_of_evidence_costs_at_most_eight_tokens_beside_what_it_is() -> None:
    context = compiled_prompts()["evidence"]
    blocks = [block for block in context.compiled_prompt.context_blocks if block.bucket == "evidence"]
    bare = [" ".join([*block.provenance_refs, block.evidence_type or "", block.content]) for block in blocks]
    shown = prompt_text(context.compiled_prompt).partition("<data ")[2].partition("[request]")[0]
    assert (CALIBRATED1.count(f"<data {shown}</data 0000>\n") - CALIBRATED1.count("\n".join(bare))) / len(blocks) <= 8
