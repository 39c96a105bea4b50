"""The schemas of `tools/list` are true: every accepted call and every answer conforms to them."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from contextplane.mcp.arguments import FIELDS
from contextplane.mcp.schemas import TOOLS
from tests.surfaces.agents import DOCUMENT, serving, sources

BY_NAME = {tool["name"]: tool for tool in TOOLS}
INPUT = {name: jsonschema_rs.validator_for(tool["inputSchema"]) for name, tool in BY_NAME.items()}
OUTPUT = {name: jsonschema_rs.validator_for(tool["outputSchema"]) for name, tool in BY_NAME.items()}


def nodes(schema: object) -> list[dict[str, Any]]:
    """Every schema inside a schema."""
    if isinstance(schema, list | tuple):
        return [node for part in schema for node in nodes(part)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(node for part in schema.values() for node in nodes(part))]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_schemas_are_whole_closed_and_plain_at_the_top(name: str) -> None:
    schema = BY_NAME[name]["inputSchema"]
    jsonschema_rs.meta.validate(schema)
    jsonschema_rs.meta.validate(BY_NAME[name]["outputSchema"])
    assert set(schema) == {"type", "properties", "additionalProperties"}
    for node in nodes(schema):
        if "properties" in node and "type" in node:
            assert node["additionalProperties"] is False
        if node.get("type") == "array":
            assert node["items"]
    assert all("description" in value for value in schema["properties"].values())


@pytest.mark.parametrize("name", BY_NAME)
def test_every_argument_that_is_understood_is_in_the_schema_and_no_other(name: str) -> None:
    assert set(BY_NAME[name]["inputSchema"]["properties"]) == {
        field for fields in FIELDS[name].values() for field in fields
    }
    assert BY_NAME[name]["inputSchema"]["properties"]["action"]["enum"] == [*FIELDS[name], None]


def test_what_a_tool_may_do_is_told() -> None:
    assert BY_NAME["output"]["annotations"]["readOnlyHint"] is True
    assert BY_NAME["output"]["annotations"]["destructiveHint"] is False
    assert BY_NAME["input"]["annotations"]["readOnlyHint"] is False
    assert BY_NAME["input"]["annotations"]["destructiveHint"] is True
    assert not any(tool["annotations"]["openWorldHint"] for tool in TOOLS)


def test_the_example_in_the_description_is_a_call_that_works(tmp_path: Path) -> None:
    example = BY_NAME["input"]["description"].partition("Example: ")[2]
    with serving(tmp_path) as agent:
        arguments = msgspec.json.decode(example, type=dict[str, Any])
        INPUT["input"].validate(arguments)
        assert agent.does(**arguments)["revision"] == 1


def test_every_call_and_every_answer_is_what_the_schemas_say(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document={**DOCUMENT, "name": "login-bug", "status": "finalized"})
        got = agent.does("get", id=pack["id"])
        ident = {"id": pack["id"]}
        calls: list[tuple[str, dict[str, Any], bool]] = [
            ("input", {"action": "list"}, True),
            ("input", {}, True),
            ("output", {}, True),
            ("output", ident, True),
            ("output", {**dict.fromkeys(BY_NAME["output"]["inputSchema"]["properties"]), **ident}, True),
            (
                "input",
                {"action": "list", "status": "finalized", "freshness": "fresh", "query": "l", "limit": 1, "offset": 0},
                True,
            ),
            ("input", {"action": "get", **ident}, True),
            ("input", {"action": "get", "name": "login-bug"}, True),
            ("input", {"action": "write", "document": DOCUMENT, "validate_only": True}, True),
            ("input", {"action": "write", **ident, "expected_revision": 1, "document": got}, True),
            ("input", {"action": "ttl", **ident, "expected_revision": 2, "ttl_minutes": 60}, True),
            ("input", {"action": "ttl", **ident, "expected_revision": 3, "extend_minutes": 60}, True),
            ("input", {"action": "ttl", **ident, "expected_revision": 3, "extend_minutes": 60}, False),
            ("output", {"action": "list"}, True),
            ("output", {"action": "list", "freshness": "expired"}, True),
            ("output", {"action": "read", **ident}, True),
            ("output", {"action": "read", **ident, "profile": "reviewer"}, True),
            ("output", {"action": "read", **ident, "profile": "executor", "limit": 1, "offset": 1}, True),
            ("output", {"action": "read", **ident, "contains": "TODO", "status": "finalized"}, True),
            ("output", {"action": "read", **ident, "page_token": "x"}, False),
            ("input", {"action": "delete", **ident}, True),
            ("output", {"action": "read", **ident}, False),
        ]
        for tool, arguments, works in calls:
            INPUT[tool].validate(arguments)
            result = agent.calls(tool, **arguments)
            assert ("isError" not in result) is works, result
            OUTPUT[tool].validate(result["structuredContent"])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("input", {"action": "write", "document": {"sections": []}, "validate_only": "true"}),
        ("input", {"action": "list", "limit": -1}),
        ("input", {"action": "list", "qery": "x"}),
        ("input", {"action": "ttl", "id": "pk_abcd2345", "expected_revision": 1, "ttl_minutes": 0}),
        ("input", {"action": "write", "document": {"sections": [], "extra": 1}}),
        ("output", {"action": "get", "id": "pk_abcd2345"}),
        ("output", {"action": "read", "id": "pk_abcd2345", "mode": "full"}),
        ("output", {"action": "read", "id": 7}),
    ],
)
def test_what_the_schema_refuses_the_server_refuses(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    assert not INPUT[tool].is_valid(arguments)
    with serving(tmp_path) as agent:
        assert agent.fails(tool, **arguments)["code"] == "invalid_data"
