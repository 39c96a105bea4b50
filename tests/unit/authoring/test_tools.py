"""Schemas and constraints of tools: what no call could be checked by, and what no call could keep."""

from pathlib import Path
from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.tool_arguments import contradiction, literal_bound, refuses_objects, schema_problems
from contextplane.model.arguments import ArgConstraint
from contextplane.policy.arguments import violations
from tests.support.cases import cases
from tests.support.samples import sample

NUMBERS = st.one_of(st.none(), st.integers(-2, 4))
SCALARS = st.one_of(st.integers(-3, 5), st.sampled_from(["a", "b", "1", ""]), st.booleans(), st.none())
CONSTRAINTS = st.builds(
    ArgConstraint,
    min=NUMBERS,
    max=NUMBERS,
    enum=st.one_of(st.none(), st.lists(SCALARS, min_size=1, max_size=3).map(tuple)),
    equals=st.one_of(st.none(), st.none(), SCALARS.filter(lambda value: value is not None)),
    pattern=st.sampled_from([None, None, "^a$", "[ab]"]),
)
TRIED: tuple[Any, ...] = (*(n / 2 for n in range(-8, 14)), *range(-4, 7), "a", "b", "1", "", True, False, None, "ab")


@given(CONSTRAINTS)
@sample(100)
def test_of_constraints_that_leave_nothing_no_value_keeps_them_and_of_the_others_one_does(
    constraint: ArgConstraint,
) -> None:
    bound = literal_bound("it", constraint)
    admitted = [value for value in TRIED if not violations((bound,), {"it": value}, approved=False, changes=True)]
    assert bool(contradiction(constraint)) is not bool(admitted)


SCHEMAS: tuple[dict[str, Any], ...] = (
    {},
    {"type": "object", "properties": {"amount": {"type": "integer", "minimum": 1}}, "required": ["amount"]},
    {"$ref": "#/$defs/x", "$defs": {"x": {"type": ["string", "null"]}}},
    {"properties": {"next": {"$ref": "#"}}},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^[a-z]+$"},
    {"properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}},
    {"x-note": "what is not known is only a note"},
)


@cases("schema", SCHEMAS)
def test_a_schema_that_calls_can_be_checked_by_has_no_problem(schema: dict[str, Any]) -> None:
    assert list(schema_problems(schema)) == []
    jsonschema_rs.Draft202012Validator(schema)


@cases(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": ["object", "null"]},
        {"properties": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}},
        {"const": {"a": 1}, "enum": [1, {"a": 1}]},
        *({"type": "money"}, {"type": []}, {"type": [["string"]]}, {"enum": "x"}),
    ],
)
def test_a_schema_that_takes_an_object_or_has_not_its_form_is_not_said_to_refuse_all(schema: dict[str, Any]) -> None:
    assert refuses_objects(schema) is None


@cases("value", [[], [1], "x", 1, True, None])
def test_a_schema_that_refuses_every_object_is_told_with_the_word_that_does(value: Any) -> None:  # noqa: ANN401  any JSON
    kind = {list: "array", str: "string", int: "integer", bool: "boolean", type(None): "null"}[type(value)]
    for schema, place in (
        ({"type": kind}, "/type"),
        ({"type": [kind, "number"]}, "/type"),
        ({"type": "object", "const": value}, "/const"),
        ({"enum": [value]}, "/enum"),
    ):
        assert refuses_objects(schema) == place
        assert not jsonschema_rs.Draft202012Validator(schema).is_valid({})


def test_all_problems_of_form_are_told_with_their_places_and_no_value_is_repeated() -> None:
    schema = {"type": "s3cret", "properties": {"a": {"minimum": "s3cret"}, "b~/": {"required": 1}}}
    problems = dict(schema_problems(schema))
    assert set(problems) == {"/type", "/properties/a/minimum", "/properties/b~0~1/required"}
    assert not any("s3cret" in problem for problem in problems.values())


def test_patterns_are_found_wherever_they_are() -> None:
    schema = {"items": {"anyOf": [{"pattern": "(a+)+"}, {"patternProperties": {"(b*)*": {"pattern": "(?!c)"}}}]}}
    assert {at for at, _ in schema_problems(schema)} == {
        "/items/anyOf/0/pattern",
        "/items/anyOf/1/patternProperties/(b*)*",
        "/items/anyOf/1/patternProperties/(b*)*/pattern",
    }


def test_no_file_is_ever_read_for_a_schema_not_even_one_that_is_there(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("{}", encoding="utf-8")
    assert list(schema_problems({"$ref": there.as_uri()})) == [("", "refers to something that is not in it")]


@cases(
    "uri", ["https://schemas.acme.example/x", "http://169.254.169.254/", "file:///etc/passwd", "#/$defs/gone", "other"]
)
def test_nothing_is_ever_fetched_for_a_schema(uri: str) -> None:
    assert list(schema_problems({"properties": {"a": {"$ref": uri}}})) == [
        ("", "refers to something that is not in it")
    ]
