"""What holds of every hash: the same inputs give the same bytes, and a change of any one of them moves it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextplane.compiler.view as view_module
from contextplane.compiler.chat import anthropic_chat, openai_chat
from contextplane.compiler.digests import digest, digest_of_plain, strip_correlation_ids
from contextplane.compiler.inputs import read_evidence, read_memories, read_request, read_run_context
from contextplane.errors import ContextPlaneError
from contextplane.model.context_pack import ContextPack
from contextplane.testing.proofs import proves
from contextplane.testing.strategies import json_values
from tests.laws.compiler_drawn import scenarios
from tests.laws.compiler_rich import FORMS, RICH, fields_of, fields_set, leaves, typed
from tests.support.cases import cases
from tests.unit.compiler.scenario import (
    CASE,
    NOW,
    compile_plain,
    compile_scenario,
    evidence,
    inputs,
    memory,
    plain,
    put,
    view_of,
)

ROOT = Path(__file__).resolve().parents[2]
OF_A_CLAIM = [f"/agent/identity_claim/{name}" for name in ("run_id", "session_id", "claim_hash", "nbf", "exp")]
CORRELATION = {
    "run_context": ["/run_id", "/trace_id", "/session_id", *OF_A_CLAIM],
    "request": ["/request_id", "/session_id", "/trace", *OF_A_CLAIM],
}
RUN_ID = [
    "/run_context/run_id",
    "/run_context/agent/identity_claim/run_id",
    "/request/agent/identity_claim/run_id",
]
"""A claim is for one run: these change together, or are refused."""
CLAIM_TIMES = [
    f"/{name}/agent/identity_claim/{field}" for name in ("run_context", "request") for field in ("nbf", "exp")
]


# --- the same inputs


@proves("context-pack:playground:same-inputs-same-hash", "context-pack:references:one-compiler")
def test_hash_seed_and_process_do_not_matter() -> None:
    program = (
        "import sys, msgspec; from tests.unit.compiler.scenario import compile_scenario; "
        "sys.stdout.buffer.write(msgspec.json.encode(compile_scenario()))"
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
    assert seen == {msgspec.json.encode(compile_scenario())}


@settings(deadline=None)
@given(scenarios())
def test_the_same_inputs_give_the_same_bytes(given_: dict[str, Any]) -> None:
    again = json.loads(json.dumps(given_, sort_keys=True))
    assert msgspec.json.encode(compile_plain(given_)) == msgspec.json.encode(compile_plain(again))


REQUESTS = [
    inputs(
        pack={
            "/policy_layer/approval_gates/0/when": {">": [{"var": "request.context.waits"}, 1]},
            "/policy_layer/policy_bundles/0/policy_dsl/rules/1/if": {
                "or": [
                    {"==": [{"var": "request.context.refund_amount"}, 4200]},
                    {"==": [{"var": "request.context.late"}, True]},
                ]
            },
        },
        run={"/safety_mode": mode, "/user/role": role},
        request={"/input/context": context, "/input/intent": "support.refund"},
        evidence=[],
    )
    for mode in ("read_only", "network", "destructive")
    for role in ("support_agent", "owner")
    for context in (
        {"refund_amount": 4200, "identity_verified": True},
        {"refund_amount": 900_000, "identity_verified": True},
        {"refund_amount": 1, "identity_verified": True, "waits": 1, "late": False},
        {"refund_amount": 1, "identity_verified": True, "waits": 2, "late": False},
        {"refund_amount": 1, "identity_verified": True, "waits": 1},
        {"identity_verified": True, "waits": 1, "late": False},
        {"refund_amount": "x"},
        {"identity_verified": False},
        {"refund_amount": 1, "signals": ["fraud_signal_high"]},
        {},
    )
]
"""One pack: other tools, gates, verdicts, and facts that are missing or of a wrong type."""


@cases("limit", [2, 5, 256])
def test_a_view_that_compiled_other_requests_gives_the_same_bytes(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a view memoizes for one request never shows in another, also when the memo is full."""
    monkeypatch.setattr(view_module, "_MEMO_LIMIT", limit)
    expected = [msgspec.json.encode(compile_plain(request)) for request in REQUESTS]
    assert len(set(expected)) > len(REQUESTS) / 2
    view = view_of(REQUESTS[0])
    order = [*range(len(REQUESTS)), *reversed(range(len(REQUESTS)))]
    seen = [(n, msgspec.json.encode(compile_plain(REQUESTS[n], view=view))) for n in order]
    assert [n for n, compiled in seen if compiled != expected[n]] == []


def test_a_caller_that_changes_a_compiled_context_changes_no_other() -> None:
    view = view_of(REQUESTS[0])
    first = compile_plain(inputs(), view=view)
    before = msgspec.json.encode(first)
    for part in mutable_parts(first):
        part.clear()
    assert msgspec.json.encode(first) != before
    assert msgspec.json.encode(compile_plain(inputs(), view=view)) == before


def mutable_parts(value: Any) -> Iterator[Any]:  # noqa: ANN401  any value
    """Every object and list in a value, the inner ones first."""
    if isinstance(value, msgspec.Struct):
        value = tuple(getattr(value, name) for name in value.__struct_fields__)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        yield from mutable_parts(part)
    if isinstance(value, dict | list):
        yield value


def shuffled(value: Any, seed: int) -> Any:  # noqa: ANN401  any JSON
    """The same JSON with the keys of its objects in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], seed) for key in sorted(value, key=lambda key: digest([seed, key]))}
    return [shuffled(part, seed) for part in value] if isinstance(value, list) else value


MANY_KEYS = put(
    RICH,
    {
        "/pack/policy_layer/policy_bundles/0/policy_dsl/rules/0/applies_to": {
            "intent": "support.refund",
            "role": ["owner"],
            "channel": "fax",
            "tenant_id": "tenant_globex",
        },
        "/pack/tooling_layer/permissions/2/arg_constraints": {"z": {"max": 3}, "m": {"min": 1}, "a": {"max": 9}},
        "/request/input/context/nest": {"z": {"b": 1, "a": [{"y": 1, "x": 2}]}, "a": 2},
    },
)


@settings(deadline=None)
@given(st.sampled_from([RICH, MANY_KEYS]), st.integers(0, 10_000))
def test_the_order_of_keys_in_a_document_does_not_matter(given_: dict[str, Any], seed: int) -> None:
    first, second = compile_plain(given_), compile_plain(shuffled(given_, seed))
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    for chat in (openai_chat, anthropic_chat):
        assert msgspec.json.encode(chat(first)) == msgspec.json.encode(chat(second))


FACTS = {
    "request.context.x": ("request", "/input/context/x"),
    "request.context.x.0.y": ("request", "/input/context/x"),
    "user.x": ("run_context", "/user/x"),
    "run.metadata.x": ("run_context", "/metadata/x"),
}


@cases("path", FACTS)
@cases("forms", [(4200, 4200.0), (0, 0.0, -0.0), (-1, -1.0)])
def test_a_number_is_the_same_however_it_is_written(path: str, forms: tuple[float, ...]) -> None:
    """Also for a rule that makes a text of it."""
    name, at = FACTS[path]
    rule = "/policy_layer/policy_bundles/0/policy_dsl/rules/1/if"
    given_ = inputs(pack={rule: {"==": [{"cat": [{"var": path}, ""]}, str(forms[0])]}}, run={"/metadata": {}})
    hashes = set()
    for number in forms:
        value = [{"y": number}] if path.endswith("y") else number
        context = compile_plain({**given_, name: put(given_[name], {at: value})})
        assert context.policy_decision is not None
        assert "R_HIGH_VALUE_REQUIRES_APPROVAL" in context.policy_decision.matched_rule_ids
        hashes.add(msgspec.json.encode(context))
    assert len(hashes) == 1


# --- other inputs


OTHER_WORDS = (
    *("read_only", "network", "MCP", "CONFIDENTIAL", "RESTRICTED", "verified", "unknown", "policy", "utility", "1h"),
    *("recommend", "batch", "durable", "correction", "candidate", "oidc", "service", "2026-05-04T09:30:30Z", "USD"),
    *("de", "1.0.1"),
)
"""Of the closed sets and the forms that fields have."""


def others(value: Any) -> Iterator[Any]:  # noqa: ANN401  any JSON
    """Values that could stand in its place, the nearest first."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, value / 2)
    elif isinstance(value, str):
        yield from (f"{value}x", f"{value}1", value[:-1], value.replace("1", "2"), value[::-1], f"{value[:-1]}Z")
        yield from OTHER_WORDS
    elif value in ([], {}, None):
        yield from (["x"], {"x": 1}, "x")


PLACES = [
    (name, at)
    for name in ("pack", "run_context", "request", "evidence", "memories", "ontologies", "lineage", "snapshot", "as_of")
    for at, _ in leaves(RICH[name])
]


def moved(name: str, at: str) -> list[str]:
    """Hashes of compiles with another value at a place: of those values that are of the form and are not refused."""
    differing: list[str] = []
    before = dict(leaves(RICH[name]))[at]
    for value in others(before):
        if value == before or len(differing) == 2:
            continue
        changed = {**RICH, name: put(RICH[name], {at: value}) if at else value}
        try:
            differing.append(compile_plain(changed).context_ledger.compiled_context_hash)
        except (ContextPlaneError, msgspec.ValidationError):
            continue
    return differing


def test_every_field_of_every_input_is_among_those_that_are_changed() -> None:
    assert fields_of(*FORMS) - set(fields_set(typed(RICH))) == set()


@proves("context-pack:playground:changed-input-moves-hash")
def test_a_change_of_any_one_input_moves_the_hash_and_correlation_ids_do_not() -> None:
    base = compile_plain(RICH).context_ledger.compiled_context_hash
    still, tried = [], 0
    for name, at in PLACES:
        hashes = moved(name, at)
        tried += bool(hashes)
        if f"/{name}{at}" in RUN_ID:
            assert hashes == [], (name, at)
        elif any(at.startswith(place) for place in CORRELATION.get(name, [])):
            assert hashes, (name, at)
            assert set(hashes) == {base}, (name, at)
        elif base in hashes:
            still.append((name, at))
    assert still == []
    # The rest is bound to other parts, as an identity to its run: to change one alone is refused.
    assert tried / len(PLACES) > 0.85


def test_the_id_of_a_run_moves_no_hash() -> None:
    other = put(RICH, dict.fromkeys(RUN_ID, "run_of_another_day"))
    assert other != RICH
    hashes = {compile_plain(given_).context_ledger.compiled_context_hash for given_ in (RICH, other)}
    assert len(hashes) == 1


@pytest.mark.parametrize("at", [*OF_A_CLAIM, "/agent/identity_claim/kid"])
def test_what_is_of_one_run_only_is_missing_to_a_rule_that_reads_it(at: str) -> None:
    """Were it a fact, what was taken out of the hash would still decide."""
    path = at.removeprefix("/").replace("/", ".")
    rule = "/pack/policy_layer/policy_bundles/0/policy_dsl/rules/1/if"
    context = compile_plain(put(RICH, {rule: {"!=": [{"var": path}, "another"]}}))
    assert context.policy_decision is not None
    assert context.policy_decision.missing_facts == ((path,) if at in OF_A_CLAIM else ())


def test_a_piece_that_is_added_or_taken_away_moves_the_hash() -> None:
    timeless = put(RICH, dict.fromkeys(CLAIM_TIMES))  # times of a claim cannot be judged without a moment
    hashes = {
        compile_plain({**timeless, name: value}).context_ledger.compiled_context_hash
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


# --- canonical forms


@settings(deadline=None)
@given(st.text(max_size=60), st.dictionaries(st.text(max_size=9), st.text(max_size=9)))
def test_what_is_hashed_without_looking_for_floats_is_hashed_the_same(text: str, names: dict[str, str]) -> None:
    context = compile_scenario(memories=[memory(content=text)], request={"/input/context/names": names})
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
    assert digests["run_context"] == digest(strip_correlation_ids(read_run_context(given_["run_context"])))
    assert digests["request"] == digest(strip_correlation_ids(read_request(given_["request"])))
    assert digests["evidence"] == digest(read_evidence(given_["evidence"]))
    assert digests["memories"] == digest(read_memories(given_["memories"]))


@pytest.mark.parametrize("most", [50000.0, 0.1, 1e21, 50000.5])
def test_a_pack_with_floats_is_hashed_in_canonical_form(most: float) -> None:
    context = compile_scenario(pack={"/tooling_layer/permissions/2/arg_constraints/amount_inr": {"max": most}})
    assert context.context_ledger.compiled_context_hash == digest(
        put(plain(context), {"/context_ledger/compiled_context_hash": "", "/context_ledger/request_id": ""})
    )
