"""The compiled context as chat APIs want it."""

import re
from typing import Any

import jsonschema_rs
import pytest

from contextplane.compiler.chat import anthropic_chat, openai_chat
from contextplane.compiler.prompt import prompt_controls, prompt_prefix, prompt_suffix, prompt_text
from contextplane.model.compiled_context import CompiledContext
from tests.unit.compiler.scenario import PACK, compile_scenario, put

REFUND = "/tooling_layer/permissions/2/arg_constraints"


def tools_of(context: CompiledContext) -> dict[str, dict[str, Any]]:
    """Their schemas by capability, as both forms have them."""
    openai, anthropic = openai_chat(context), anthropic_chat(context)
    assert openai.capabilities == anthropic.capabilities
    first = {tool["function"]["name"]: tool["function"]["parameters"] for tool in openai.body.get("tools", [])}
    second = {tool["name"]: tool["input_schema"] for tool in anthropic.body.get("tools", [])}
    assert first == second
    assert list(first) == [*openai.capabilities]
    return {openai.capabilities[name]: schema for name, schema in first.items()}


def test_messages_of_the_openai_form_end_the_first_one_where_the_data_begins() -> None:
    context = compile_scenario()
    body, prompt = openai_chat(context).body, context.compiled_prompt
    assert body["messages"] == [
        {"role": "system", "content": prompt_prefix(prompt) + prompt_controls(prompt, tools=False)},
        {"role": "user", "content": prompt_suffix(prompt)},
    ]
    assert f"sha256:{body['prompt_cache_key']}" == context.context_ledger.prefix_hash
    assert [tool["type"] for tool in body["tools"]] == ["function"] * 3


def test_messages_of_the_anthropic_form_have_breakpoints_where_the_pack_and_the_run_end() -> None:
    context = compile_scenario()
    body = anthropic_chat(context).body
    pack, run = body["system"]
    assert pack["text"] == prompt_prefix(context.compiled_prompt)
    assert run["text"] == prompt_controls(context.compiled_prompt, tools=False)
    assert pack["cache_control"] == run["cache_control"] == {"type": "ephemeral"}
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": prompt_suffix(context.compiled_prompt)}]}
    ]
    assert "cache_control" not in str(body["messages"]) + str(body["tools"])


def test_tools_stand_by_id_with_what_their_block_says() -> None:
    body = anthropic_chat(compile_scenario()).body
    assert [(tool["name"], tool["description"]) for tool in body["tools"]] == [
        ("adp_orders_lookup", "read; gives order_lookup"),
        ("adp_payments_issue_refund", "write, destructive; amount_inr at least 1, at most 50000"),
        ("adp_policy_eval", "read; gives policy_eval"),
    ]


def test_tools_stand_in_their_list_and_not_in_the_text() -> None:
    context = compile_scenario(run={"/user/role": "supervisor"}, request={"/input/context/refund_amount": 5})
    for chat in (openai_chat(context), anthropic_chat(context)):
        texts = str({name: part for name, part in chat.body.items() if name != "tools"})
        assert not any(tool in texts for tool in context.context_ledger.tools)


@pytest.mark.parametrize(
    ("spec", "constraints"),
    [
        ({}, {"idempotency_key": {"required": True}, "amount_inr": {"min": 1}}),
        ({"idempotency_header": "X-Request-Key"}, {"x_request_key": {"required": True}, "amount_inr": {"min": 1}}),
        (
            {
                "input_schema": {
                    "type": "object",
                    "properties": {"idempotency_key": {"type": "string"}, "amount_inr": {}},
                }
            },
            {},
        ),
        (
            {
                "idempotency_header": "X-Request-Key",
                "input_schema": {
                    "type": "object",
                    "properties": {"x_request_key": {}, "amount_inr": {"type": "number"}},
                    "required": ["x_request_key"],
                },
            },
            {},
        ),
    ],
)
def test_the_model_is_not_asked_for_the_key_that_the_runtime_adds(
    spec: dict[str, Any], constraints: dict[str, Any]
) -> None:
    specs = {"/tooling_layer/adapter_registry/2/capability_specs": {"issue_refund": spec}, REFUND: constraints}
    context = compile_scenario(pack=specs)
    schema = tools_of(context)["adp_payments.issue_refund"]
    assert [*schema["properties"]] == ["amount_inr"]
    assert "required" not in schema
    text = prompt_text(context.compiled_prompt) + str(openai_chat(context).body)
    assert re.search("idempotency|request.key", text, re.IGNORECASE) is None


def test_the_order_of_tools_in_the_pack_changes_nothing_that_is_cached() -> None:
    tooling = {key: PACK["tooling_layer"][key][::-1] for key in ("adapter_registry", "permissions")}
    first, second = (
        anthropic_chat(compile_scenario()),
        anthropic_chat(compile_scenario(pack={"/tooling_layer": tooling})),
    )
    assert (first.body["tools"], first.body["system"]) == (second.body["tools"], second.body["system"])


def test_without_tools_none_are_sent() -> None:
    context = compile_scenario(run={"/run_budget/bucket_tokens/tool": 0})
    assert tools_of(context) == {}
    assert "tools" not in openai_chat(context).body
    assert "tools" not in anthropic_chat(context).body


def test_a_schema_is_made_from_the_constraints() -> None:
    constraints = {
        "amount_inr": {"min": 1, "max": 50000, "required": True},
        "currency": {"enum": ["INR"]},
        "idempotency_key": {"required": True, "pattern": "^ik_"},
        "note": {"max": 3, "unless_approved": True, "required": True},
    }
    schema = tools_of(compile_scenario(pack={REFUND: constraints}))["adp_payments.issue_refund"]
    assert schema == {
        "type": "object",
        "properties": {
            "amount_inr": {"type": "number", "minimum": 1, "maximum": 50000},
            "currency": {"enum": ["INR"]},
        },
        "required": ["amount_inr"],
    }
    jsonschema_rs.Draft202012Validator(schema)


def test_constraints_of_permission_and_rule_hold_together() -> None:
    rule = "/policy_layer/policy_bundles/0/policy_dsl/rules/1/then/arg_constraints"
    context = compile_scenario(pack={rule: {"amount_inr": {"max": 5000}}})
    schema = tools_of(context)["adp_payments.issue_refund"]
    validator = jsonschema_rs.Draft202012Validator(schema)
    good = {"amount_inr": 5000}
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "amount_inr": 5001})
    assert not validator.is_valid({**good, "amount_inr": 0})


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        ({"type": "integer"}, {"type": "integer", "minimum": 1, "maximum": 50000}),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 9, "minimum": 1}),
        ({"$ref": "#/$defs/amount"}, {"$ref": "#/$defs/amount"}),
    ],
)
def test_a_schema_that_the_pack_gives_is_sent_with_the_limits_that_it_leaves_out(
    declared: dict[str, Any], sent: dict[str, Any]
) -> None:
    schema = {
        "type": "object",
        "properties": {"amount_inr": declared, "note": {"type": "string"}},
        "$defs": {"amount": {"type": "integer"}},
        "additionalProperties": False,
    }
    specs = {"/tooling_layer/adapter_registry/2/capability_specs": {"issue_refund": {"input_schema": schema}}}
    tool = tools_of(compile_scenario(pack=specs))["adp_payments.issue_refund"]
    assert tool == {**schema, "properties": {"amount_inr": sent, "note": {"type": "string"}}}


def test_of_two_limits_of_one_argument_the_tighter_is_sent() -> None:
    rule = "/policy_layer/policy_bundles/0/policy_dsl/rules/1/then/arg_constraints"
    changes = {
        "/tooling_layer/adapter_registry/2/capability_specs": {
            "issue_refund": {"arguments": {"amount_inr": {"type": "number"}}}
        },
        rule: {"adp_payments.issue_refund": {"amount_inr": {"max": {"var": "request.context.refund_amount"}}}},
    }
    sent = tools_of(compile_scenario(pack=changes))["adp_payments.issue_refund"]["properties"]["amount_inr"]
    assert sent == {"type": "number", "minimum": 1, "maximum": 4200}


def test_an_argument_that_a_permission_requires_is_required_in_the_sent_schema() -> None:
    at = "/tooling_layer/permissions/2/arg_constraints/amount_inr"
    specs = {"issue_refund": {"arguments": {"amount_inr": {"type": "number"}}}}
    changes = {"/tooling_layer/adapter_registry/2/capability_specs": specs, at: {"max": 9, "required": True}}
    assert tools_of(compile_scenario(pack=changes))["adp_payments.issue_refund"]["required"] == ["amount_inr"]


@pytest.mark.parametrize(
    "adapters",
    [
        ["a.b", "a_b"],
        ["a" * 90, "a" * 91],
        ["a:b", "a.b", "a_b", "a-b"],
    ],
)
def test_every_capability_has_a_name_of_its_own_that_is_allowed(adapters: list[str]) -> None:
    tooling = PACK["tooling_layer"]
    made = {
        "adapter_registry": [{**tooling["adapter_registry"][0], "adapter_id": adapter} for adapter in adapters],
        "permissions": [
            {**tooling["permissions"][0], "adapter_id": adapter, "permission_id": f"p{n}"}
            for n, adapter in enumerate(adapters)
        ],
    }
    names = openai_chat(compile_scenario(pack={"/tooling_layer": put(made, {})})).capabilities
    assert sorted(names.values()) == sorted(f"{adapter}.lookup" for adapter in adapters)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
