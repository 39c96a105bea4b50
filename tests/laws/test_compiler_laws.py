"""What holds of every compile: nothing is lost, sums match, the same inputs give the same bytes and others do not."""

import json
from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.compiler.compile import STAGES, compiled_context_hash
from contextplane.compiler.prompt import prompt_text
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import BUCKETS, CompiledContext
from contextplane.testing.strategies import json_values
from tests.laws.compiler_drawn import scenarios
from tests.unit.compiler.prompt_reader import HOSTILE, meant_items, parse_prompt, shown_content
from tests.unit.compiler.scenario import NOW, compile_plain, compile_scenario, evidence, inputs, memory, plain

# --- conservation


def check_conserved(given_: dict[str, Any], context: CompiledContext) -> None:
    manifests = context.manifests
    gone = Counter((omission.kind, omission.id) for omission in manifests.omission_manifest)
    tooling = given_["pack"]["tooling_layer"]
    candidates = {
        f"{entry['adapter_id']}.{name}" for entry in tooling["adapter_registry"] for name in entry["capabilities"]
    }
    candidates |= {f"{permission['adapter_id']}.{permission['capability']}" for permission in tooling["permissions"]}
    shown = [f"{entry.adapter_id}.{name}" for entry in manifests.tool_manifest for name in entry.capabilities]
    assert Counter(shown) + Counter(id_ for kind, id_ in gone.elements() if kind == "tool") == Counter(candidates)
    every = [
        f"{bundle['bundle_id']}#{rule['rule_id']}"
        for bundle in given_["pack"]["policy_layer"]["policy_bundles"]
        for rule in bundle["policy_dsl"]["rules"]
    ]
    fired = [f"{entry.bundle_id}#{rule}" for entry in manifests.policy_manifest for rule in entry.rule_ids]
    assert Counter(fired) + Counter(id_ for kind, id_ in gone.elements() if kind == "rule") == Counter(every)
    for kind, included, count in (
        (
            "evidence",
            len(manifests.evidence_manifest),
            len(given_["evidence"]) + len(given_["request"].get("attachments", [])),
        ),
        ("memory", len(manifests.memory_manifest), len(given_["memories"])),
    ):
        places = [omission.at for omission in manifests.omission_manifest if omission.kind == kind]
        assert len(places) == len(set(places))
        assert included + len(places) == count
    check_blocks(context)


def check_blocks(context: CompiledContext) -> None:
    kept = [block.block_id for block in context.compiled_prompt.context_blocks]
    dropped = [identity for ids in context.budget_report.dropped_block_ids.values() for identity in ids]
    assert Counter(dropped) == Counter(
        omission.id for omission in context.manifests.omission_manifest if omission.kind == "block"
    )
    everything = Counter(kept) + Counter(dropped)
    assert max(everything.values()) == 1
    numbered = Counter(block_id.partition("_")[0] for block_id in everything)
    for prefix in ("pol", "tool", "ev", "mem"):
        assert {block_id for block_id in everything if block_id.startswith(f"{prefix}_")} == {
            f"{prefix}_{n}" for n in range(numbered[prefix])
        }
    assert {"biz_summary", "session"} <= everything.keys()
    assert "biz_summary" in kept


def check_sums(given_: dict[str, Any], context: CompiledContext) -> None:
    report = context.budget_report
    sums = Counter(dict.fromkeys(BUCKETS, 0))
    for block in context.compiled_prompt.context_blocks:
        sums[block.bucket] += block.tokens or 0
    assert report.tokens_used_by_bucket == sums
    fixed = context.context_ledger.fixed_tokens or 0
    assert report.tokens_used_at_compile == sum(sums.values()) + fixed
    assert report.tokens_used_at_compile == context.context_ledger.budget.tokens_used_at_compile
    allotted = given_["run_context"]["run_budget"]["bucket_tokens"]
    for bucket in BUCKETS[1:]:
        assert sums[bucket] <= allotted[bucket]
    others = sum(sums[bucket] for bucket in BUCKETS[1:])
    total = given_["run_context"]["run_budget"]["total_tokens"]
    assert others == 0 or others + sums["business"] + fixed <= total
    assert report.bucket_truncations.keys() == report.dropped_block_ids.keys()


def check_approvals(given_: dict[str, Any], context: CompiledContext) -> None:
    """Calls of shown tools wait, and no others; of layers that are left out a run has nothing."""
    controls, manifests = context.runtime_controls, context.manifests
    writes = {
        f"{entry.adapter_id}.{name}": metadata.kind == "write"
        for entry in manifests.tool_manifest
        for name, metadata in entry.capability_metadata.items()
    }
    assert [approval.gate_id for approval in controls.approval_gates] == [*controls.approval_gates_active]
    for approval in controls.approval_gates:
        assert {*approval.capabilities} <= writes.keys()
        if any(reason.startswith("rule:") for reason in approval.because):
            assert {name for name, is_write in writes.items() if is_write} <= {*approval.capabilities}
    if "memory_layer" not in given_["pack"]:
        assert manifests.memory_manifest == ()
    if "knowledge_graph" not in given_["pack"].get("intelligence_refs", {}):
        assert not any(entry.evidence_ref.startswith("kg:") for entry in manifests.evidence_manifest)


@settings(deadline=None)
@given(scenarios())
def test_every_candidate_is_included_or_omitted_and_sums_match(given_: dict[str, Any]) -> None:
    context = compile_plain(given_)
    check_conserved(given_, context)
    check_sums(given_, context)
    check_approvals(given_, context)
    assert context.context_ledger.compiled_context_hash == compiled_context_hash(context)
    assert msgspec.json.decode(msgspec.json.encode(context), type=CompiledContext) == context
    parsed = parse_prompt(prompt_text(context.compiled_prompt))
    blocks = plain(context.compiled_prompt.context_blocks)
    data = [block for block in blocks if block["instruction_treatment"] == "data_only"]
    assert [(item.label, item.content) for item in parsed.items] == meant_items(data)
    for title, bucket in (("Business", "business"), ("Tools", "tool"), ("Policy", "policy")):
        lines = [line for block in blocks if block["bucket"] == bucket for line in block["content"].split("\n")]
        assert sorted(parsed.sections.get(title, [])) == sorted(lines)


@settings(deadline=None)
@given(scenarios())
def test_a_gate_is_open_only_on_evidence_that_was_admitted(given_: dict[str, Any]) -> None:
    context = compile_plain(given_)
    gate = context.evidence_gate
    assert gate is not None
    assert {item.name for item in gate.satisfied} | {requirement.name for requirement in gate.unresolved} == set(
        gate.required
    )
    assert gate.commit_allowed == (gate.sufficiency == "sufficient")
    admitted = {entry.evidence_ref for entry in context.manifests.evidence_manifest}
    assert all(item.by in admitted | {"request", "policy"} for item in gate.satisfied)
    trusted = {
        item["evidence_ref"]
        for item in given_["evidence"]
        if isinstance(item, dict) and item["trust"] in {"authoritative", "verified"}
    }
    assert all(item.by in trusted | {"request", "policy"} for item in gate.satisfied)
    assert not (gate.commit_allowed and any(conflict.required and not conflict.selected for conflict in gate.conflicts))


def test_a_hundred_thousand_pieces_of_evidence_are_all_accounted_for() -> None:
    many = [f"session:s{n}" if n % 2 else evidence(evidence_ref=f"session:t{n}", type="chat") for n in range(100_000)]
    given_ = inputs(evidence=many, as_of=NOW)
    context = compile_plain(given_)
    check_conserved(given_, context)
    check_sums(given_, context)


# --- whatever is given


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=6), json_values(), max_size=3), json_values(), st.text(min_size=1, max_size=30))
def test_whatever_a_request_says_it_is_compiled_or_refused_with_its_stage(
    context: dict[str, Any], claim: object, message: str
) -> None:
    request = {"/input/context": context, "/input/message": message}
    result = outcome(request=request, run={"/metadata": context, "/user/claim": claim})
    if isinstance(result, ContextPlaneError):
        assert result.details["stage"] in {"read", *(stage.name for stage in STAGES)}
        assert result.at
    else:
        assert result.context_ledger.compiled_context_hash == compiled_context_hash(result)
        assert "Business" in parse_prompt(prompt_text(result.compiled_prompt)).sections


def outcome(**changes: Any) -> CompiledContext | ContextPlaneError:  # noqa: ANN401  any JSON
    try:
        return compile_scenario(**changes)
    except ContextPlaneError as refused:
        return refused


# --- texts

PARTS = (
    *("\n", "\r\n", "\r", "\u2028", "\x85", "\x0b", " ", ": ", "x", '"', "\\"),
    *("[1] ", "[2] ", "[m1] ", "[request] ", "| ", "|", "(verified)", "(authoritative): ", "session:s"),
    *(
        "<data 0000>",
        "</data 0000>",
        "<data ",
        "</data ",
        "# Policy",
        "# Tools",
        "Handle: ",
        "\u202e",
        "\u200b",
        "\ufeff",
    ),
)
MARKS = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)
"""Texts of everything that means something in a prompt."""


@settings(deadline=None)
@given(st.lists(st.text(max_size=40) | st.just(HOSTILE) | MARKS, min_size=5, max_size=5))
def test_whatever_data_says_it_stays_inside_its_item(texts: list[str]) -> None:
    message, note, content, remembered, reference = texts
    context = compile_scenario(
        request={"/input/message": message or "x", "/input/context/note": note},
        evidence=[evidence(content=content)],
        memories=[memory(content=remembered, evidence_refs=[reference])],
        run={"/run_budget/bucket_tokens/evidence": 9000, "/run_budget/total_tokens": 90000},
    )
    parsed = parse_prompt(prompt_text(context.compiled_prompt))
    admitted = bool(context.manifests.evidence_manifest)
    assert [item.label for item in parsed.items] == [*(["1"] if admitted else []), "m1", "request"]
    shown = [*([content] if admitted else []), remembered]
    assert [item.content for item in parsed.items][:-1] == [*map(shown_content, shown)]
    assert [len(item.names) for item in parsed.items] == [*([3] if admitted else []), 2, 0]
    assert (parsed.items[0].names[-1] == "(verified)") is admitted
    calm = parse_prompt(prompt_text(compile_scenario(evidence=[], memories=[]).compiled_prompt))
    assert parsed.sections == calm.sections
    assert parsed.outside[:-1] == calm.outside[:-1]
    assert json.loads(parsed.outside[-1].removeprefix("Handle: ").rpartition(" (intent=")[0]) == (message or "x")
