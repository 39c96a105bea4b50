"""Tools as chat APIs take them: what they refuse is not sent, and what is not sent is told and judged elsewhere."""

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextplane.compiler.chat import anthropic_chat, copy_schema, openai_chat
from contextplane.compiler.digests import text_digest
from contextplane.compiler.errors import ChatToolsTooMany
from contextplane.compiler.quotation import quote
from contextplane.model.compiled_context import CompiledContext
from tests.support.cases import cases
from tests.unit.compiler.scenario import PACK, compile_scenario

REFUND = "/tooling_layer/permissions/2/arg_constraints"
SPECS = "/tooling_layer/adapter_registry/2/capability_specs"
TOOLING = PACK["tooling_layer"]
AT_ROOT = {"type", "properties", "$defs", "$ref", "required", "additionalProperties", "description"}


def with_schema(schema: dict[str, Any]) -> CompiledContext:
    return compile_scenario(pack={SPECS: {"issue_refund": {"input_schema": schema}}})


def refund(context: CompiledContext) -> dict[str, Any]:
    (tool_schema,) = [
        tool for tool in anthropic_chat(context).body["tools"] if tool["name"] == "adp_payments_issue_refund"
    ]
    return dict(tool_schema)


@cases(
    "schema",
    [
        {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"type": "object"},
        {"type": "array"},
        {"type": ["object", "null"]},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}},
        {"oneOf": [{"type": "object"}], "allOf": [{"type": "object"}], "not": {"type": "null"}},
        {"const": 1, "enum": [1]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}},
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False, "description": "d" * 3000},
    ],
)
def test_a_schema_is_sent_as_an_object_without_alternatives_at_its_root(schema: dict[str, Any]) -> None:
    context = with_schema(schema)
    sent = refund(context)["input_schema"]
    assert sent["type"] == "object"
    assert isinstance(sent["properties"], dict)
    assert sent.keys() <= AT_ROOT
    assert {key: part for key, part in schema.items() if key in AT_ROOT - {"type"}}.items() <= sent.items()
    jsonschema_rs.Draft202012Validator(sent)
    (openai,) = [
        tool["function"]
        for tool in openai_chat(context).body["tools"]
        if tool["function"]["name"] == "adp_payments_issue_refund"
    ]
    assert openai["parameters"] == sent


@cases("name", ["filter[id]", "$top", "user name", "x" * 65, "größe", ""])
@cases("closed", [{}, {"additionalProperties": False}, {"unevaluatedProperties": False}])
def test_an_argument_whose_name_chat_apis_refuse_is_left_out_and_may_be_given_all_the_same(
    name: str, closed: dict[str, Any]
) -> None:
    inner = {"type": "object", "properties": {name: {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"}, "order.id_1-a": inner},
        "required": [name, "order.id_1-a"],
        **closed,
    }
    context = with_schema(schema)
    assert refund(context)["input_schema"] == {
        "type": "object",
        "properties": {"order.id_1-a": inner},
        "required": ["order.id_1-a"],
    }
    (block,) = [block for block in context.compiled_prompt.context_blocks if "issue_refund" in block.content]
    arguments = block.content.partition("; arguments ")[2]
    assert (name if name.isalnum() and name.isascii() else quote(name)) in arguments
    assert refund(context)["description"].endswith(f"; arguments {arguments}")


NAMES = ("a", "b.c", "d e")
PARTS = st.sampled_from([{}, {"type": "string"}, {"type": "integer"}, {"enum": [1]}, False])
OBJECTS = st.fixed_dictionaries({}, optional={"properties": st.dictionaries(st.sampled_from(NAMES), PARTS)})
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(st.sampled_from(NAMES), PARTS),
        "required": st.lists(st.sampled_from(NAMES), unique=True),
        "additionalProperties": st.sampled_from([False, True, {"type": "string"}]),
        "unevaluatedProperties": st.sampled_from([False]),
        "maxProperties": st.integers(0, 3),
        "allOf": st.lists(OBJECTS, min_size=1, max_size=2),
        "anyOf": st.lists(OBJECTS, min_size=1, max_size=2),
        "oneOf": st.lists(OBJECTS, min_size=1, max_size=2),
        "not": OBJECTS,
    },
)


@example({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1})
@example({"anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1})
@example({"oneOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1})
@given(SCHEMAS, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["x", 1])))
def test_what_is_sent_refuses_no_arguments_that_the_schema_of_the_pack_takes(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    sent = copy_schema(schema)
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in sent["properties"])
    if jsonschema_rs.Draft202012Validator(schema).is_valid(arguments):
        assert jsonschema_rs.Draft202012Validator(sent).is_valid(arguments)


@pytest.mark.parametrize("count", [128, 129])
def test_more_tools_than_a_request_of_the_openai_form_may_hold_are_refused(count: int) -> None:
    names = [f"c{n}" for n in range(count)]
    tooling = {
        "adapter_registry": [{**TOOLING["adapter_registry"][0], "capabilities": names}],
        "permissions": [
            {**TOOLING["permissions"][0], "capability": name, "permission_id": f"p_{name}"} for name in names
        ],
    }
    context = compile_scenario(pack={"/tooling_layer": tooling}, run={"/run_budget/bucket_tokens/tool": 100_000})
    assert len(context.context_ledger.tools) == count
    assert len(anthropic_chat(context).body["tools"]) == count
    if count == 128:
        assert len(openai_chat(context).body["tools"]) == count
        return
    with pytest.raises(ChatToolsTooMany) as refused:
        openai_chat(context)
    assert (refused.value.code, refused.value.family) == ("chat_tools_too_many", "refused")
    assert refused.value.message == "129 tools are surfaced, and a request of this form holds 128"
    assert refused.value.at == "compiled_context#/manifests/tool_manifest"


def test_a_description_does_not_repeat_the_schema_that_stands_beside_it() -> None:
    schema = {"type": "object", "properties": {"a": {"description": "; input {}"}}}
    context = with_schema(schema)
    plain = refund(compile_scenario())["description"]
    assert refund(context)["description"] == plain
    (block,) = [block for block in context.compiled_prompt.context_blocks if "issue_refund" in block.content]
    assert '"; input {}"' in block.content


def test_an_empty_schema_leaves_the_constraints() -> None:
    assert refund(with_schema({})) == refund(compile_scenario())


def test_a_description_is_not_longer_than_is_taken_and_shows_that_it_is_cut() -> None:
    context = compile_scenario(pack={REFUND: {"currency": {"enum": ["x" * 2000]}}})
    description = refund(context)["description"]
    assert len(description) == 1024
    assert description.endswith("x...")


def test_who_sends_a_body_may_change_it_and_the_next_compile_is_the_same() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    context = with_schema(schema)
    before = refund(context)
    openai_chat(context).body["tools"][1]["function"]["parameters"]["properties"]["a"]["type"] = "integer"
    anthropic_chat(context).body["tools"][1]["input_schema"]["properties"].clear()
    assert refund(context) == before


def test_a_name_with_dots_is_a_way_into_objects() -> None:
    limits = {"to.account": {"pattern": "^a", "required": True}, "to": {"required": True}, "to.note": {"enum": ["x"]}}
    schema = refund(compile_scenario(pack={REFUND: limits}))["input_schema"]
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert validator.is_valid({"to": {"account": "a1", "note": "x"}})
    for wrong in (
        "{}",
        '{"to":{}}',
        '{"to":{"account":"b"}}',
        '{"to":{"account":"a","note":"y"}}',
        '{"to.account":"a"}',
    ):
        assert not validator.is_valid(json.loads(wrong)), wrong


@pytest.mark.parametrize("name", ["a..b", "a.", "x" * 65])
def test_an_argument_whose_name_is_not_taken_is_told_and_left_to_the_gateway(name: str) -> None:
    sent = refund(compile_scenario(pack={REFUND: {name: {"max": 3, "required": True}}}))
    assert sent["input_schema"] == {"type": "object", "properties": {}}
    assert f"{name} required, at most 3" in sent["description"]


def test_no_tool_takes_the_name_of_another() -> None:
    """One whose plain name is the one that another would be given: neither is lost, and neither is called for it."""
    digits = text_digest("a.b.lookup").removeprefix("sha256:")[:8]
    adapters = {"a.b": ["lookup"], "a_b": ["lookup", f"lookup_{digits}"]}
    tooling = {
        "adapter_registry": [
            {**TOOLING["adapter_registry"][0], "adapter_id": adapter, "capabilities": names}
            for adapter, names in adapters.items()
        ],
        "permissions": [
            {
                **TOOLING["permissions"][0],
                "adapter_id": adapter,
                "capability": name,
                "permission_id": f"{adapter}.{name}",
            }
            for adapter, names in adapters.items()
            for name in names
        ],
    }
    context = compile_scenario(pack={"/tooling_layer": tooling})
    chat = openai_chat(context)
    assert [*chat.capabilities.values()] == sorted(context.context_ledger.tools)
    assert [tool["function"]["name"] for tool in chat.body["tools"]] == [*chat.capabilities]
    assert chat.capabilities[f"a_b_lookup_{digits}"] == f"a_b.lookup_{digits}"
