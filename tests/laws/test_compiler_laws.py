"""What holds of every compile: nothing is lost, sums match, the same inputs give the same bytes and others do not."""

import json
from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.compiler.compile import STAGES
from contextplane.compiler.prompt import text_of
from contextplane.compiler.seal import compiled_context_hash
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import BUCKETS, CompiledContext
from contextplane.testing.strategies import json_values
from tests.laws.compiler_drawn import scenarios
from tests.unit.compiler.reading_prompts import HOSTILE, read
from tests.unit.compiler.scenario import NOW, compile_plain, compiled, evidence, inputs, memory

# --- conservation


def check_conserved(given_: dict[str, Any], context: CompiledContext) -> None:
    manifests = context.manifests
    gone = Counter((omission.kind, omission.id) for omission in manifests.omission_manifest)
    tooling = given_["pack"]["tooling_layer"]
    candidates = {f"{one['adapter_id']}.{name}" for one in tooling["adapter_registry"] for name in one["capabilities"]}
    candidates |= {f"{permission['adapter_id']}.{permission['capability']}" for permission in tooling["permissions"]}
    shown = [
        f"{manifest_entry.adapter_id}.{name}"
        for manifest_entry in manifests.tool_manifest
        for name in manifest_entry.capabilities
    ]
    assert Counter(shown) + Counter(id_ for kind, id_ in gone.elements() if kind == "tool") == Counter(candidates)
    every = [
        f"{bundle['bundle_id']}#{rule['rule_id']}"
        for bundle in given_["pack"]["policy_layer"]["policy_bundles"]
        for rule in bundle["policy_dsl"]["rules"]
    ]
    fired = [
        f"{manifest_entry.bundle_id}#{rule}"
        for manifest_entry in manifests.policy_manifest
        for rule in manifest_entry.rule_ids
    ]
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
    kept = [context_block.block_id for context_block in context.compiled_prompt.context_blocks]
    dropped = [identity for ids in context.budget_report.dropped_block_ids.values() for identity in ids]
    assert Counter(dropped) == Counter(
        omission.id for omission in context.manifests.omission_manifest if omission.kind == "block"
    )
    everything = Counter(kept) + Counter(dropped)
    assert max(everything.values()) == 1
    numbered = Counter(one.partition("_")[0] for one in everything)
    for prefix in ("pol", "tool", "ev", "mem"):
        assert {one for one in everything if one.startswith(f"{prefix}_")} == {
            f"{prefix}_{n}" for n in range(numbered[prefix])
        }
    assert {"biz_summary", "session"} <= everything.keys()
    assert "biz_summary" in kept


def check_sums(given_: dict[str, Any], context: CompiledContext) -> None:
    report = context.budget_report
    sums = Counter(dict.fromkeys(BUCKETS, 0))
    for context_block in context.compiled_prompt.context_blocks:
        sums[context_block.bucket] += context_block.tokens or 0
    assert report.tokens_used_by_bucket == sums
    assert report.tokens_used_at_compile == sum(sums.values()) == context.context_ledger.budget.tokens_used_at_compile
    allotted = given_["run_context"]["run_budget"]["bucket_tokens"]
    for bucket in BUCKETS[1:]:
        assert sums[bucket] <= allotted[bucket]
    others = sum(sums[bucket] for bucket in BUCKETS[1:])
    total = given_["run_context"]["run_budget"]["total_tokens"]
    assert others == 0 or others + sums["business"] <= total
    assert report.bucket_truncations.keys() == report.dropped_block_ids.keys()


@settings(deadline=None)
@given(scenarios())
def test_every_candidate_is_included_or_omitted_and_sums_match(given_: dict[str, Any]) -> None:
    context = compile_plain(given_)
    check_conserved(given_, context)
    check_sums(given_, context)
    assert context.context_ledger.compiled_context_hash == compiled_context_hash(context)
    assert msgspec.json.decode(msgspec.json.encode(context), type=CompiledContext) == context
    meant = [
        ("data" if context_block.instruction_treatment == "data_only" else context_block.bucket, context_block.content)
        for context_block in context.compiled_prompt.context_blocks
    ]
    assert sorted(read(text_of(context.compiled_prompt)).blocks) == sorted(meant)


@settings(deadline=None)
@given(scenarios())
def test_a_gate_is_open_only_on_evidence_that_was_admitted(given_: dict[str, Any]) -> None:
    context = compile_plain(given_)
    gate = context.evidence_gate
    assert gate is not None
    assert {one.name for one in gate.satisfied} | {requirement.name for requirement in gate.unresolved} == set(
        gate.required
    )
    assert gate.commit_allowed == (gate.sufficiency == "sufficient")
    admitted = {manifest_entry.evidence_ref for manifest_entry in context.manifests.evidence_manifest}
    assert all(one.by in admitted | {"request", "policy"} for one in gate.satisfied)
    trusted = {
        one["evidence_ref"]
        for one in given_["evidence"]
        if isinstance(one, dict) and one["trust"] in {"authoritative", "verified"}
    }
    assert all(one.by in trusted | {"request", "policy"} for one in gate.satisfied)
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
    plane_error = outcome(request=request, run={"/metadata": context, "/user/claim": claim})
    if isinstance(plane_error, ContextPlaneError):
        assert plane_error.details["stage"] in {"read", *(one.name for one in STAGES)}
        assert plane_error.at
    else:
        assert plane_error.context_ledger.compiled_context_hash == compiled_context_hash(plane_error)
        assert [kind for kind, _ in read(text_of(plane_error.compiled_prompt)).blocks].count("business") == 1


def outcome(**changes: Any) -> CompiledContext | ContextPlaneError:  # noqa: ANN401  any JSON
    try:
        return compiled(**changes)
    except ContextPlaneError as refused:
        return refused


# --- texts


@settings(deadline=None)
@given(
    st.lists(
        st.text(max_size=40) | st.sampled_from([HOSTILE, "<<end ", "\ufeff", "\U0001f600"]), min_size=4, max_size=4
    )
)
def test_whatever_data_says_it_stays_inside_its_block(texts: list[str]) -> None:
    message, note, content, remembered = texts
    context = compiled(
        request={"/input/message": message or "x", "/input/context/note": note},
        evidence=[evidence(content=content)],
        memories=[memory(content=remembered)],
    )
    found = read(text_of(context.compiled_prompt))
    shown = [content, remembered] if context.manifests.evidence_manifest else [remembered]
    assert [content for kind, content in found.blocks if kind == "data"][:-1] == shown
    calm = read(text_of(compiled(evidence=[], memories=[]).compiled_prompt))
    assert found.outside[:-1] == [*calm.outside[:-1], *("" for _ in shown)]
    assert json.loads(found.outside[-1].removeprefix("Handle: ").rpartition(" (intent=")[0]) == (message or "x")
