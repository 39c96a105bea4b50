"""What holds of every compile: nothing is lost, sums match, the same inputs give the same bytes and others do not."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.compiler.hashing import digest, digest_of_plain, without_correlation
from contextplane.compiler.prompt import text_of
from contextplane.compiler.reading import read_evidence, read_memories, read_request, read_run_context
from contextplane.compiler.seal import compiled_context_hash
from contextplane.compiler.stages import STAGES
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_block import BUCKETS
from contextplane.model.context_pack.pack import ContextPack
from contextplane.testing.proofs import proves
from contextplane.testing.strategies import json_values
from tests.laws.compiler_drawn import scenarios
from tests.unit.compiler.reading_prompts import HOSTILE, read
from tests.unit.compiler.scenario import CASE, NOW, compile_plain, compiled, evidence, inputs, memory, plain, put

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOT = CASE["environment"]["snapshot"]
CORRELATION = {
    "run_context": [
        *("/run_id", "/trace_id", "/session_id"),
        *("/agent/identity_claim/run_id", "/agent/identity_claim/session_id"),
    ],
    "request": [
        *("/request_id", "/session_id", "/trace"),
        *("/agent/identity_claim/run_id", "/agent/identity_claim/session_id"),
    ],
}
TYPED = evidence(
    classification="PUBLIC",
    content_hash=None,
    conflicts=[{"evidence_ref": "session:old", "selected": "session:old", "resolution_ref": "review:1"}],
)
RICH_MEMORY = memory(
    intents=["support.refund"], roles=["support_agent"], expires_at="2027-01-01T00:00:00Z", evidence_refs=["session:a"]
)


# --- conservation


def check_conserved(given_: dict[str, Any], context: CompiledContext) -> None:
    manifests = context.manifests
    gone = Counter((one.kind, one.id) for one in manifests.omission_manifest)
    tooling = given_["pack"]["tooling_layer"]
    candidates = {f"{one['adapter_id']}.{name}" for one in tooling["adapter_registry"] for name in one["capabilities"]}
    candidates |= {f"{one['adapter_id']}.{one['capability']}" for one in tooling["permissions"]}
    shown = [f"{one.adapter_id}.{name}" for one in manifests.tool_manifest for name in one.capabilities]
    assert Counter(shown) + Counter(id_ for kind, id_ in gone.elements() if kind == "tool") == Counter(candidates)
    every = [
        f"{bundle['bundle_id']}#{rule['rule_id']}"
        for bundle in given_["pack"]["policy_layer"]["policy_bundles"]
        for rule in bundle["policy_dsl"]["rules"]
    ]
    fired = [f"{one.bundle_id}#{rule}" for one in manifests.policy_manifest for rule in one.rule_ids]
    assert Counter(fired) + Counter(id_ for kind, id_ in gone.elements() if kind == "rule") == Counter(every)
    for kind, included, count in (
        ("evidence", len(manifests.evidence_manifest), len(given_["evidence"])),
        ("memory", len(manifests.memory_manifest), len(given_["memories"])),
    ):
        places = [one.at for one in manifests.omission_manifest if one.kind == kind]
        assert len(places) == len(set(places))
        assert included + len(places) == count
    check_blocks(context)


def check_blocks(context: CompiledContext) -> None:
    kept = [one.block_id for one in context.compiled_prompt.context_blocks]
    dropped = [one for ids in context.budget_report.dropped_block_ids.values() for one in ids]
    assert Counter(dropped) == Counter(one.id for one in context.manifests.omission_manifest if one.kind == "block")
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
    for one in context.compiled_prompt.context_blocks:
        sums[one.bucket] += one.tokens or 0
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
        ("data" if one.instruction_treatment == "data_only" else one.bucket, one.content)
        for one in context.compiled_prompt.context_blocks
    ]
    assert sorted(read(text_of(context.compiled_prompt)).blocks) == sorted(meant)


@settings(deadline=None)
@given(scenarios())
def test_a_gate_is_open_only_on_evidence_that_was_admitted(given_: dict[str, Any]) -> None:
    context = compile_plain(given_)
    gate = context.evidence_gate
    assert gate is not None
    assert {one.name for one in gate.satisfied} | {one.name for one in gate.unresolved} == set(gate.required)
    assert gate.commit_allowed == (gate.sufficiency == "sufficient")
    admitted = {one.evidence_ref for one in context.manifests.evidence_manifest}
    assert all(one.by in admitted | {"request", "policy"} for one in gate.satisfied)
    trusted = {
        one["evidence_ref"]
        for one in given_["evidence"]
        if isinstance(one, dict) and one["trust"] in {"authoritative", "verified"}
    }
    assert all(one.by in trusted | {"request", "policy"} for one in gate.satisfied)
    assert not (gate.commit_allowed and any(one.required and not one.selected for one in gate.conflicts))


def test_a_hundred_thousand_pieces_of_evidence_are_all_accounted_for() -> None:
    many = [f"session:s{n}" if n % 2 else evidence(evidence_ref=f"session:t{n}", type="chat") for n in range(100_000)]
    given_ = inputs(evidence=many, as_of=NOW)
    context = compile_plain(given_)
    check_conserved(given_, context)
    check_sums(given_, context)


# --- the hash


@proves("context-pack:playground:same-inputs-same-hash", "context-pack:references:one-compiler")
def test_hash_seed_and_process_do_not_matter() -> None:
    program = (
        "import sys, msgspec; from tests.unit.compiler.scenario import compiled; "
        "sys.stdout.buffer.write(msgspec.json.encode(compiled()))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("4242", "Asia/Kolkata"))
    }
    assert seen == {msgspec.json.encode(compiled())}


@settings(deadline=None)
@given(scenarios())
def test_the_same_inputs_give_the_same_bytes(given_: dict[str, Any]) -> None:
    shuffled = json.loads(json.dumps(given_, sort_keys=True))
    assert msgspec.json.encode(compile_plain(given_)) == msgspec.json.encode(compile_plain(shuffled))


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  any JSON
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from leaves(one, f"{at}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for n, one in enumerate(value):
            yield from leaves(one, f"{at}/{n}")
    else:
        yield at, value


def others(value: Any) -> Iterator[Any]:  # noqa: ANN401  any JSON
    """Values that could stand in its place, the nearest first."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield from (f"{value}x", f"{value}1", value[:-1], value.replace("1", "2"), value[::-1], f"{value[:-1]}Z")
        yield from (
            "read_only",
            "MCP",
            "CONFIDENTIAL",
            "RESTRICTED",
            "verified",
            "policy",
            "utility",
            "1h",
            "recommend",
        )
        yield from ("batch", "durable", "correction", "oidc", "service", "2026-05-04T09:30:30Z", "USD", "de", "1.0.1")
    elif value in ([], {}, None):
        yield from (["x"], {"x": 1}, "x")


RICH = inputs(
    run={"/metadata": {"k": [1, {"deep": True}]}, "/user/region": "south", "/agent/identity_claim/session_id": "s"},
    request={
        "/agent/identity_claim": CASE["run_context"]["agent"]["identity_claim"],
        "/input/context/note": {"a": [0.5]},
    },
    evidence=[TYPED, *CASE["evidence"]],
    memories=[RICH_MEMORY],
    lineage=[{"ref": "ctxpack.support@1.0.0", "digest": "sha256:" + "1" * 64}],
    as_of=NOW,
)
PLACES = [
    (name, at)
    for name in ("pack", "run_context", "request", "evidence", "memories", "ontologies", "lineage", "snapshot", "as_of")
    for at, _ in leaves(RICH[name])
]


def moved(name: str, at: str) -> list[str]:
    """Hashes of compiles with another value at a place: of those values that are of the form and are not refused."""
    found: list[str] = []
    before = dict(leaves(RICH[name]))[at]
    for value in others(before):
        if value == before or len(found) == 2:
            continue
        changed = {**RICH, name: put(RICH[name], {at: value}) if at else value}
        try:
            found.append(compile_plain(changed).context_ledger.compiled_context_hash)
        except (ContextPlaneError, msgspec.ValidationError):
            continue
    return found


@proves("context-pack:playground:changed-input-moves-hash")
def test_a_change_of_any_one_input_moves_the_hash_and_correlation_ids_do_not() -> None:
    base = compile_plain(RICH).context_ledger.compiled_context_hash
    still, tried = [], 0
    for name, at in PLACES:
        hashes = moved(name, at)
        tried += bool(hashes)
        if any(at.startswith(place) for place in CORRELATION.get(name, [])):
            assert hashes, (name, at)
            assert set(hashes) == {base}, (name, at)
        elif base in hashes:
            still.append((name, at))
    assert still == []
    # The rest is bound to other parts: to change one alone is refused.
    assert tried / len(PLACES) > 0.75


def test_a_piece_that_is_added_or_taken_away_moves_the_hash() -> None:
    hashes = {
        compile_plain({**RICH, name: value}).context_ledger.compiled_context_hash
        for name, value in (
            ("as_of", NOW),
            ("as_of", None),
            ("evidence", RICH["evidence"][:-1]),
            ("evidence", RICH["evidence"][::-1]),
            ("memories", []),
            ("ontologies", ["ont.support@1.0.0", "ont.other@1.0.0"]),
            ("lineage", RICH["lineage"] * 2),
            ("lineage", None),
        )
    }
    assert len(hashes) == 8


# --- whatever is given


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=6), json_values(), max_size=3), json_values(), st.text(min_size=1, max_size=30))
def test_whatever_a_request_says_it_is_compiled_or_refused_with_its_stage(
    context: dict[str, Any], claim: object, message: str
) -> None:
    request = {"/input/context": context, "/input/message": message}
    found = outcome(request=request, run={"/metadata": context, "/user/claim": claim})
    if isinstance(found, ContextPlaneError):
        assert found.details["stage"] in {"read", *(one.name for one in STAGES)}
        assert found.at
    else:
        assert found.context_ledger.compiled_context_hash == compiled_context_hash(found)
        assert [kind for kind, _ in read(text_of(found.compiled_prompt)).blocks].count("business") == 1


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
    assert [kind for kind, _ in found.blocks].count("data") == 3
    assert [content for kind, content in found.blocks if kind == "data"][:2] == [content, remembered]
    calm = read(text_of(compiled(evidence=[], memories=[]).compiled_prompt))
    assert found.outside[:-1] == [*calm.outside[:-1], "", ""]
    assert json.loads(found.outside[-1].removeprefix("Handle: ").rpartition(" (intent=")[0]) == (message or "x")


@settings(deadline=None)
@given(st.text(max_size=60), st.dictionaries(st.text(max_size=9), st.text(max_size=9)))
def test_what_is_hashed_without_looking_for_floats_is_hashed_the_same(text: str, names: dict[str, str]) -> None:
    context = compiled(memories=[memory(content=text)], request={"/input/context/names": names})
    parts: list[object] = [context, context.manifests, context.compiled_prompt, context.context_ledger]
    assert [*map(digest_of_plain, parts)] == [*map(digest, parts)]


OPEN = [
    *(("run", at) for at in ("/metadata/value", "/user/claim", "/run_budget/max_cost_cents")),
    *(("request", at) for at in ("/input/context/value", "/user/claim", "/runtime/max_cost_cents")),
]


@settings(deadline=None)
@given(st.sampled_from(OPEN), json_values() | st.sampled_from([25.0, 0.1, 1e21, 1e-7, -0.0]))
def test_every_digest_of_an_input_is_that_of_its_canonical_form(place: tuple[str, str], value: object) -> None:
    name, at = place
    if at.endswith("max_cost_cents") and not isinstance(value, float):
        value = 2.0
    given_ = inputs(**{name: {at: value}}, evidence=[evidence(), *CASE["evidence"]])
    digests = compile_plain(given_).context_ledger.inputs
    assert digests["pack"] == digest(msgspec.convert(given_["pack"], ContextPack))
    assert digests["run_context"] == digest(without_correlation(read_run_context(given_["run_context"])))
    assert digests["request"] == digest(without_correlation(read_request(given_["request"])))
    assert digests["evidence"] == digest(read_evidence(given_["evidence"]))
    assert digests["memories"] == digest(read_memories(given_["memories"]))


@pytest.mark.parametrize("most", [50000.0, 0.1, 1e21, 50000.5])
def test_a_pack_with_floats_is_hashed_in_canonical_form(most: float) -> None:
    context = compiled(pack={"/tooling_layer/permissions/2/arg_constraints/amount_inr": {"max": most}})
    assert context.context_ledger.compiled_context_hash == digest(
        put(plain(context), {"/context_ledger/compiled_context_hash": "", "/context_ledger/request_id": ""})
    )
