"""`ctx schema`: the schema of every kind of document, described in full, and true of what the readers accept."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from contextplane.app.schemas import list_schemas
from contextplane.compiler.case import CaseInvalid, read_case
from contextplane.model.execution.log import InvalidLog, read_log
from contextplane.model.value import Value
from docs.schemas import PUBLISHED, PublishedSchema, member_texts, undescribed_members
from tests.support.cases import cases
from tests.surfaces.commands import ctx
from tests.unit.compiler.case_files import CLOSING

NOT_FOUND = 13
NAMES = [entry.name.partition(".")[0] for entry in PUBLISHED]


def published_types() -> dict[str, type[Value]]:
    """The types that the schemas are made of, by name."""
    names = {name for entry in PUBLISHED for name in entry.render().get("$defs", {})}

    def below(cls: type[Value]) -> Iterator[type[Value]]:
        for child in cls.__subclasses__():
            yield child
            yield from below(child)

    return {cls.__name__: cls for cls in below(Value) if cls.__name__ in names and "contextplane." in cls.__module__}


TYPES = published_types()
LOG: dict[str, Any] = {
    "created": "2026-05-04T09:31:42Z",
    "model": {"identifier": "m", "parameters": {"temperature": 0}},
    "system_prompt": "be brief",
    "prompts": [{"role": "user", "content": "hello"}],
    "inputs": [{"name": "a", "content": "x"}, {"content_base64": "eA=="}, {"handoff": "pk_aaaaaaaa@1"}],
    "steps": [
        {"type": "reasoning", "output": "hm", "index": 0},
        {"type": "tool_call", "tool": "read", "parameters": {"p": 1}, "deterministic": True, "index": 1},
    ],
    "outputs": [{"name": "b", "path": "b.txt"}],
    "environment": {"os": "linux", "runtime": "python", "tool_versions": {"read": "1"}},
}
VALUES: tuple[Any, ...] = (None, 7, "", "text", True, [], {}, [1], {"a": 1}, 1.5)


def test_without_a_name_all_kinds_are_listed(tmp_path: Path) -> None:
    result = ctx("schema", cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert [line.split()[0] for line in result.out.splitlines()] == sorted(NAMES)
    assert all(len(line) <= 120 for line in result.out.splitlines())
    listed = json.loads(ctx("schema", "--json", cwd=tmp_path).out)["schemas"]
    assert [entry["name"] for entry in listed] == sorted(NAMES)
    assert all(entry["description"] and entry["id"].startswith("urn:contextplane:") for entry in listed)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_printed_by_every_spelling_of_its_name(tmp_path: Path, name: str) -> None:
    result = ctx("schema", name, cwd=tmp_path)
    schema = json.loads(result.out)
    jsonschema_rs.meta.validate(schema)
    (entry,) = [entry for entry in list_schemas() if entry.name == name]
    assert schema["$id"] == entry.id == f"urn:contextplane:{name}.{entry.version}"
    for spelling in (f"{name}.{entry.version}", f"{name}.{entry.version}.schema.json", name.replace("-", "_")):
        assert ctx("schema", spelling, cwd=tmp_path).raw == result.raw
    assert json.loads(ctx("schema", name, "--json", cwd=tmp_path).out) == schema


@pytest.mark.parametrize("name", ["context-packs", "nothing-like-it", "../schemas/overlay.v1", ""])
def test_an_unknown_name_is_refused(tmp_path: Path, name: str) -> None:
    result = ctx("schema", name, cwd=tmp_path)
    assert (result.status, result.out) == (NOT_FOUND, "")
    assert "schema_unknown" in result.err
    assert ("did you mean context-pack?" in result.err) is (name == "context-packs")


@cases("entry", PUBLISHED, ids=lambda entry: entry.name)
def test_every_member_of_every_schema_has_a_description(entry: PublishedSchema) -> None:
    schema = entry.render()
    assert list(undescribed_members(schema)) == [], "write `name`: text into the docstring of its type"
    assert [name for name, part in schema.get("$defs", {}).items() if not part.get("description")] == []


@cases("name", TYPES)
def test_every_member_of_a_type_has_a_text_of_its_own(name: str) -> None:
    cls = TYPES[name]
    text, members = member_texts(cls.__doc__ or "")
    assert text
    assert list(members) == list(cls.__struct_fields__), "a line for each member, in their order"
    assert all(words[0].isupper() and words.endswith(".") for words in members.values())


def test_the_walk_finds_a_member_without_a_description() -> None:
    inner = {"properties": {"b": {"type": "string"}}}
    schema = {"properties": {"a": {"description": "x", "anyOf": [inner]}}, "$defs": {"D": {"items": inner}}}
    assert sorted(undescribed_members(schema)) == ["/$defs/D/items/properties/b", "/properties/a/anyOf/0/properties/b"]


def test_texts_of_members_are_read_from_docstrings() -> None:
    docstring = """A part.

    `name`: Its name, which
    goes on.
    `at`: Its place: here.

    Its law.
    """
    members = {"name": "Its name, which goes on.", "at": "Its place: here."}
    assert member_texts(docstring) == ("A part.\n\nIts law.", members)


def places(value: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield every place in a document."""
    yield at
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*at, key))


def variants(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the document with each part left out, replaced by each value, or with an unknown member."""
    yield document
    for at in places(document):
        for value in (*VALUES, ...):
            changed = copy.deepcopy({"": document})
            parent: Any = changed
            path: tuple[str | int, ...] = ("", *at)
            for step in path[:-1]:
                parent = parent[step]
            if value is ...:
                if isinstance(parent[path[-1]], dict):
                    parent[path[-1]]["unknown_member"] = 1
                else:
                    del parent[path[-1]]
            else:
                parent[path[-1]] = value
            if isinstance(changed.get(""), dict):
                yield changed[""]


def is_log(value: object) -> bool:
    try:
        read_log(json.dumps(value).encode())
    except InvalidLog:
        return False
    return True


def is_case(value: Any) -> bool:  # noqa: ANN401  any JSON
    try:
        read_case(value)
    except CaseInvalid:
        return False
    return True


def schema_of(name: str) -> jsonschema_rs.Draft202012Validator:
    (entry,) = [entry for entry in PUBLISHED if entry.name.startswith(f"{name}.")]
    return jsonschema_rs.Draft202012Validator(entry.render())


def test_the_schema_of_logs_accepts_what_the_reader_accepts() -> None:
    validator = schema_of("execution-log")
    answers = [(validator.is_valid(log), is_log(log), log) for log in variants(LOG)]
    assert [log for by_schema, by_reader, log in answers if by_schema is not by_reader] == []
    assert {by_reader for _, by_reader, _ in answers} == {True, False}


def test_the_schemas_of_cases_and_envelopes_accept_what_the_reader_accepts() -> None:
    validator, envelope = schema_of("compile-case"), schema_of("invoke-request")
    assert validator.is_valid(CLOSING)
    assert envelope.is_valid(CLOSING["request"])
    answers = [(validator.is_valid(case), is_case(case), case) for case in variants(CLOSING)]
    assert [case for by_schema, by_reader, case in answers if by_schema is not by_reader] == []
    assert {by_reader for _, by_reader, _ in answers} == {True, False}
