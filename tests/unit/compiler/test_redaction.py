"""What a rule hides stands nowhere in a compiled context, wherever it came in; policy still decides on it."""

import json
from typing import Any

import pytest

from contextplane.compiler.prompt import prompt_text
from contextplane.compiler.report import list_items
from contextplane.model.compiled_context import CompiledContext, Omission
from contextplane.policy.redaction.rules import REDACTIONS
from tests.support.cases import cases
from tests.unit.compiler.scenario import NOW, compile_scenario, evidence, memory, plain

CARD = "4111111111111111"
HIDDEN_CARD = "4111\u200b1111\u202e11111111"
EMAIL = "jane@example.com"
KEY = "sk-" + "a1B2c3D4" * 4
RULES = {"/policy_layer/guardrails/redaction_rules": sorted(REDACTIONS)}


def redactions(context: CompiledContext) -> list[Omission]:
    return [omission for omission in context.manifests.omission_manifest if omission.kind == "redaction"]


def attachment(name: str) -> dict[str, Any]:
    return {"artifact_id": name, "media_type": "text/plain", "sha256": "0" * 64, "uri": "s3://bucket/x"}


def conflicting(**changes: Any) -> list[dict[str, Any]]:  # noqa: ANN401  any JSON
    conflict = {"evidence_ref": f"kg:customer:{EMAIL}", "resolution_ref": EMAIL, "selected": f"tool:a.b:{EMAIL}"}
    return [evidence(evidence_ref=f"tool:a.b:{EMAIL}", conflicts=[conflict], **changes)]


WAYS_IN: list[tuple[str, str, dict[str, Any]]] = [
    ("request#/input/message", CARD, {"request": {"/input/message": f"Refund to {CARD}, please."}}),
    ("request#/input/message", EMAIL, {"request": {"/input/message": f"I am {EMAIL}"}}),
    ("request#/input/message", KEY, {"request": {"/input/message": f"my key is {KEY}"}}),
    ("request#/input/channel", EMAIL, {"request": {"/input/channel": EMAIL}}),
    ("request#/input/context", EMAIL, {"request": {"/input/context/who": EMAIL}}),
    ("request#/input/context", "hunter", {"request": {"/input/context/password": "hunter"}}),
    ("request#/input/context", EMAIL, {"request": {"/input/context/region": EMAIL}}),
    ("request#/input/context", EMAIL, {"request": {"/input/context/signals": [EMAIL, "other"]}}),
    ("request#/input/context", EMAIL, {"request": {f"/input/context/{EMAIL}": 1}}),
    ("request#/input/context", CARD, {"request": {"/input/context/deep": [{"n": int(CARD)}]}}),
    ("request#/attachments/0/artifact_id", EMAIL, {"request": {"/attachments": [attachment(EMAIL)]}}),
    ("evidence#/0/content", CARD, {"evidence": [evidence(content=f"paid by {CARD}")]}),
    ("evidence#/0/content", "1990-05-01", {"evidence": [evidence(content='{"date_of_birth": "1990-05-01"}')]}),
    ("evidence#/0/content", HIDDEN_CARD, {"evidence": [evidence(content=f"paid by {HIDDEN_CARD}")]}),
    ("evidence#/0/content", KEY, {"evidence": [evidence(content=f"token {KEY}", freshness=None)]}),
    ("evidence#/0/evidence_ref", EMAIL, {"evidence": [evidence(evidence_ref=f"tool:adp_orders.lookup:{EMAIL}")]}),
    ("evidence#/0", EMAIL, {"evidence": [f"kg:customer:{EMAIL}#snapshot_kg_2026_05_03_T0930"]}),
    ("evidence#/0", EMAIL, {"evidence": [f"kg:stranger:{EMAIL}#snapshot_kg_2026_05_03_T0930"]}),
    ("evidence#/0", EMAIL, {"evidence": [f"not a reference, but {EMAIL}"]}),
    ("evidence#/0/evidence_ref", EMAIL, {"evidence": [evidence(evidence_ref=f"tool:x:{EMAIL}", content=" ")]}),
    ("evidence#/0/conflicts/0/evidence_ref", EMAIL, {"evidence": conflicting()}),
    ("evidence#/0/conflicts/0/resolution_ref", EMAIL, {"evidence": conflicting(trust="unknown")}),
    ("memories#/0/content", EMAIL, {"memories": [memory(content=f"writes from {EMAIL}")]}),
    ("memories#/0/memory_ref", EMAIL, {"memories": [memory(memory_ref=f"mem:preference:{EMAIL}")]}),
    ("memories#/0/memory_ref", EMAIL, {"memories": [memory(memory_ref=f"mem:{EMAIL}", state="captured")]}),
    ("memories#/0/evidence_refs/0", EMAIL, {"memories": [memory(evidence_refs=[f"kg:customer:{EMAIL}"])]}),
]


@cases(("at", "value", "changes"), WAYS_IN)
def test_a_hidden_value_stands_nowhere_in_a_compiled_context(at: str, value: str, changes: dict[str, Any]) -> None:
    context = compile_scenario(pack=RULES, as_of=NOW, **changes)
    text = json.dumps(plain(context), ensure_ascii=False)
    assert value not in text
    assert value not in prompt_text(context.compiled_prompt)
    assert value not in str(list_items(context))
    assert at in [omission.at for omission in redactions(context)]
    assert all(omission.stage == "redaction" and (omission.count or 0) > 0 for omission in redactions(context))


@cases(("at", "value", "changes"), WAYS_IN)
def test_a_pack_without_rules_shows_personal_data_and_no_secret(at: str, value: str, changes: dict[str, Any]) -> None:
    context = compile_scenario(pack={"/policy_layer/guardrails/redaction_rules": []}, as_of=NOW, **changes)
    text = json.dumps(plain(context), ensure_ascii=False)
    is_secret = value in (KEY, "hunter")
    assert bool(redactions(context)) is is_secret, at
    assert not is_secret or value not in text


def test_what_was_masked_is_listed_by_rule_way_and_place() -> None:
    content = json.dumps({"customer": {"email": "x", "note": f"{EMAIL} or b@x.com"}, "cards": [CARD]})
    context = compile_scenario(pack=RULES, evidence=[evidence(content=content)], as_of=NOW)
    assert [(item.id, item.reason, item.at, item.count, item.places) for item in redactions(context)] == [
        ("email", "by_field", "evidence#/0/content", 1, ("/customer/email",)),
        ("email", "by_shape", "evidence#/0/content", 2, ("/customer/note",)),
        ("credit_card", "by_shape", "evidence#/0/content", 1, ("/cards/0",)),
    ]
    words = {item.id: item.words for item in list_items(context) if item.kind == "redaction"}
    assert words["email"] == "active, masked 3"
    assert words["iban"] == "active"
    (block,) = [block for block in context.compiled_prompt.context_blocks if block.bucket == "evidence"]
    assert json.loads(block.content) == {
        "customer": {"email": "[redacted:email]", "note": "[redacted:email] or [redacted:email]"},
        "cards": ["[redacted:credit_card]"],
    }


def test_policy_decides_on_the_real_value_and_does_not_repeat_it() -> None:
    condition = {"==": [{"var": "request.context.email"}, EMAIL]}
    rule = "/policy_layer/policy_bundles/0/policy_dsl/rules/0/if"
    changes = {**RULES, rule: condition}
    real = compile_scenario(pack=changes, request={"/input/context/email": EMAIL})
    other = compile_scenario(pack=changes, request={"/input/context/email": "bob@example.com"})
    assert real.policy_decision is not None
    assert other.policy_decision is not None
    assert real.policy_decision.matched_rule_ids == other.policy_decision.matched_rule_ids
    assert (real.policy_decision.allowed, other.policy_decision.allowed) == (True, False)
    assert "bob@example.com" not in str(other)


def test_the_digests_of_the_inputs_cover_the_real_values_and_the_prompt_does_not() -> None:
    first, second = (
        compile_scenario(pack=RULES, request={"/input/message": f"I am {who}@example.com"}) for who in ("a", "b")
    )
    assert first.compiled_prompt == second.compiled_prompt
    assert first.context_ledger.inputs["request"] != second.context_ledger.inputs["request"]
    assert first.context_ledger.compiled_context_hash != second.context_ledger.compiled_context_hash


def test_evidence_whose_bytes_match_its_hash_is_admitted_with_its_masks() -> None:
    import hashlib  # noqa: PLC0415

    content = f"paid by {CARD}"
    digest = f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"
    context = compile_scenario(pack=RULES, evidence=[evidence(content=content, content_hash=digest)], as_of=NOW)
    (entry,) = context.manifests.evidence_manifest
    assert entry.hash == f"sha256:{hashlib.sha256(b'paid by [redacted:credit_card]').hexdigest()}"


# --- marks in schemas ---

SPECS = "/tooling_layer/adapter_registry/0/capability_specs"
MARKED = {
    SPECS: {"lookup": {"output_schema": {"properties": {"code": {"x-redact": True}, "ref": {"x-redact": "tax_id"}}}}}
}


@pytest.mark.parametrize(
    "piece",
    [
        evidence(content='{"code": 7, "ref": "r", "n": 1}', source="s", type="other"),
        evidence(content='{"code": 7, "ref": "r", "n": 1}', evidence_ref="tool:x:1", type="other"),
        evidence(content='{"code": 7, "ref": "r", "n": 1}', evidence_ref="kg:order:1", source="s", type="order_lookup"),
    ],
    ids=["by its reference", "by its source", "by its type"],
)
def test_the_result_of_a_tool_is_masked_by_its_output_schema(piece: dict[str, Any]) -> None:
    context = compile_scenario(pack=MARKED, evidence=[piece], as_of=NOW)
    shown = [(item.id, item.reason, item.places) for item in redactions(context)]
    assert shown == [("x-redact", "by_schema", ("/code",)), ("tax_id", "by_schema", ("/ref",))]


def test_a_result_that_is_no_json_cannot_be_followed_and_is_masked_whole() -> None:
    context = compile_scenario(pack=MARKED, evidence=[evidence(content="code 7 of r")], as_of=NOW)
    (block,) = [block for block in context.compiled_prompt.context_blocks if block.bucket == "evidence"]
    assert block.content == "[redacted:x-redact]"
    other = compile_scenario(
        pack=MARKED, evidence=[evidence(content="code 7 of r", evidence_ref="session:1", source="agent")], as_of=NOW
    )
    assert redactions(other) == []


def test_a_compile_without_anything_to_mask_says_nothing_of_it() -> None:
    context = compile_scenario(pack=RULES)
    assert redactions(context) == []
    assert context.context_ledger.stages[0].stage == "redaction"
