"""The schemas of `tools/list`: every client can use them, and every accepted call and every answer conforms."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from contextplane.mcp.arguments import FIELDS
from contextplane.mcp.schemas import TOOLS
from tests.surfaces.agents import DOCUMENT, Agent, serving, sources
from tests.surfaces.commands import ctx

BY_NAME = {tool["name"]: tool for tool in TOOLS}
INPUT = {name: jsonschema_rs.validator_for(tool["inputSchema"]) for name, tool in BY_NAME.items()}
ANSWER = jsonschema_rs.validator_for(BY_NAME["input"]["outputSchema"])
NULL = {"type": "null"}


# --- schemas that every client can map to the dialect of its model ----------------------------------------------------


def parts(schema: dict[str, Any], at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its place, in the positions that are portable."""
    yield at, schema
    for name, member in schema.get("properties", {}).items():
        yield from parts(member, f"{at}.{name}")
    for n, branch in enumerate(schema.get("anyOf", [])):
        yield from parts(branch, f"{at}|{n}")
    if "items" in schema:
        yield from parts(schema["items"], f"{at}[]")


TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}
WORDS = {"type", "description", "properties", "required", "items", "enum", "anyOf", "minimum", "maximum", "pattern"}
FORMS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "has one type, or alternatives": lambda part: ("type" in part) != ("anyOf" in part),
    "has a type that is a single name": lambda part: part.get("type", "null") in [*TYPES],
    "has an enum of texts": lambda part: (
        all(type(choice) is str for choice in part.get("enum", [])) and ("enum" not in part or part["type"] == "string")
    ),
    "has alternatives that are typed, and nothing beside them": lambda part: (
        "anyOf" not in part or (set(part) == {"anyOf"} and all("type" in branch for branch in part["anyOf"]))
    ),
    "requires members that it describes": lambda part: set(part.get("required", [])) <= set(part.get("properties", {})),
    "is a list of something": lambda part: part.get("type") != "array" or "items" in part,
    "uses no other keyword": lambda part: set(part) <= WORDS,
}
# Models fill input schemas; answers are only validated, and may be closed or free.
INPUT_FORMS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "has alternatives of which the second is null": lambda part: (
        "anyOf" not in part or (len(part["anyOf"]) == 2 and part["anyOf"][1] == NULL)
    ),
    "is an object with members": lambda part: part.get("type") != "object" or bool(part.get("properties")),
}


def violations(schema: dict[str, Any], *, answer: bool = False) -> list[str]:
    forms = FORMS if answer else {**FORMS, **INPUT_FORMS}
    return [
        f"{at}: not one that {form}"
        for at, part in parts(schema, "")
        for form, holds in forms.items()
        if not holds({word: value for word, value in part.items() if not (answer and word == "additionalProperties")})
    ]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_schemas_have_only_forms_that_every_client_takes(name: str) -> None:
    schema = BY_NAME[name]["inputSchema"]
    jsonschema_rs.meta.validate(schema)
    assert violations(schema) == []
    assert set(schema) == {"type", "properties"}
    for member in schema["properties"].values():
        assert member.get("anyOf", [member])[0]["description"]


def test_the_schema_of_an_answer_has_portable_forms_too() -> None:
    jsonschema_rs.meta.validate(BY_NAME["input"]["outputSchema"])
    assert violations(BY_NAME["input"]["outputSchema"], answer=True) == []


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"type": ["string", "null"]}, "single name"),
        ({"anyOf": [{"type": "string"}, NULL], "description": "x"}, "nothing beside them"),
        ({"type": "string", "enum": ["a", None]}, "enum of texts"),
        ({"description": "Read-only", "readOnly": True}, "one type"),
        ({"type": "string", "readOnly": True}, "no other keyword"),
        ({"type": "object", "properties": {"a": NULL}, "additionalProperties": False}, "no other keyword"),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "that are typed"),
        ({"type": "object", "properties": {"a": NULL}, "required": ["b"]}, "that it describes"),
        ({"type": "object"}, "with members"),
        ({"type": "array"}, "list of something"),
    ],
)
def test_each_form_that_some_client_refuses_is_noticed(schema: dict[str, Any], form: str) -> None:
    assert any(form in violation for violation in violations({"type": "object", "properties": {"member": schema}}))


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as the strict mode of OpenAI makes it: objects are closed and all their members required."""
    stricter = {word: value for word, value in schema.items() if word not in {"properties", "anyOf", "items"}}
    if "properties" in schema:
        stricter["properties"] = {name: strict(member) for name, member in schema["properties"].items()}
        stricter |= {"required": [*schema["properties"]], "additionalProperties": False}
    if "anyOf" in schema:
        stricter["anyOf"] = [strict(branch) for branch in schema["anyOf"]]
    if "items" in schema:
        stricter["items"] = strict(schema["items"])
    return stricter


def fill(schema: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """All members of an object: these values, and the value for nothing that its schema permits for each other."""
    nothing = {"array": [], "string": "", "boolean": False}
    filled = {}
    for name, member in schema["properties"].items():
        empty = None if "anyOf" in member else nothing[member["type"]] if "enum" not in member else member["enum"][0]
        filled[name] = values.get(name, empty)
    return filled


@pytest.mark.parametrize("nothing", [None, False])
def test_in_strict_mode_every_action_works_with_all_its_members_filled(tmp_path: Path, nothing: object) -> None:
    schemas = {name: strict(tool["inputSchema"]) for name, tool in BY_NAME.items()}
    document = schemas["input"]["properties"]["document"]["anyOf"][0]
    section = document["properties"]["sections"]["items"]
    ref = section["properties"]["refs"]["items"]
    place = fill(ref, {"key": "check", "path": "src/auth.py", "line_start": 2, "line_end": 3})
    findings = fill(section, {"key": "findings", "title": "Findings", "refs": [place]})
    content = fill(document, {"sections": [findings]})

    def call(agent: Agent, tool: str, **values: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        flag = {"input": "validate_only", "output": "structured"}[tool]
        arguments = {**fill(schemas[tool], values), flag: nothing}
        jsonschema_rs.validator_for(schemas[tool]).validate(arguments)
        result = agent.calls(tool, **arguments)
        assert "isError" not in result, result["content"]
        return result

    with serving(sources(tmp_path)) as agent:
        pack = call(agent, "input", action="write", document=content)["structuredContent"]["payload"]
        ident = {"id": pack["id"]}
        call(agent, "input", action="list")
        call(agent, "input", action="get", **ident)
        call(agent, "input", action="write", **ident, expected_revision=1, document=content)
        call(agent, "input", action="ttl", **ident, expected_revision=2, ttl_minutes=5)
        call(agent, "output", action="list")
        call(agent, "output", action="read", **ident)
        call(agent, "input", action="delete", **ident)


# --- the schemas are true ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BY_NAME)
def test_every_argument_that_is_understood_is_in_the_schema_and_no_other(name: str) -> None:
    assert set(BY_NAME[name]["inputSchema"]["properties"]) == {
        field for fields in FIELDS[name].values() for field in fields
    }
    assert BY_NAME[name]["inputSchema"]["properties"]["action"]["anyOf"][0]["enum"] == [*FIELDS[name]]


def test_what_a_tool_may_do_is_told() -> None:
    assert BY_NAME["output"]["annotations"]["readOnlyHint"] is True
    assert BY_NAME["output"]["annotations"]["destructiveHint"] is False
    assert BY_NAME["input"]["annotations"]["readOnlyHint"] is False
    assert BY_NAME["input"]["annotations"]["destructiveHint"] is False
    assert not any(tool["annotations"]["openWorldHint"] for tool in TOOLS)


def test_the_hint_is_true_what_a_write_replaced_and_a_delete_removed_is_still_there(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=DOCUMENT)
        agent.does("write", id=pack["id"], expected_revision=1, document={"title": "Other", "sections": []})
        agent.does("delete", id=pack["id"])
    store = str(tmp_path / ".agents" / "mcp" / "context_pack" / ".ctx")
    for revision, title in ((1, "Login bug"), (2, "Other")):
        kept = ctx("cat", f"{pack['id']}@{revision}", cwd=tmp_path, env={"CTX_DIR": store})
        assert msgspec.json.decode(kept.raw)["title"] == title


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
            ("output", {**ident, "structured": True}, True),
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
            if tool == "input":
                ANSWER.validate(result["structuredContent"])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("input", {"action": "write", "document": {"sections": []}, "validate_only": "true"}),
        ("input", {"action": "list", "limit": -1}),
        ("input", {"action": "ttl", "id": "pk_abcd2345", "expected_revision": 1, "ttl_minutes": 0}),
        ("output", {"action": "get", "id": "pk_abcd2345"}),
        ("output", {"action": "read", "id": 7}),
    ],
)
def test_what_the_schema_refuses_the_server_refuses(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    assert not INPUT[tool].is_valid(arguments)
    with serving(tmp_path) as agent:
        assert agent.fails(tool, **arguments)["code"] == "invalid_data"
