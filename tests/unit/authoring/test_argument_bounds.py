"""What bounds an argument, and what only looks as if it did: constraints of a permission, and schemas of its tool."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.tool_arguments import bounds_arguments, bounds_value, matches_every_text
from contextplane.model.arguments import ArgConstraint
from tests.support.cases import cases

EXACT = 2**53 - 1


def constraint(**fields: Any) -> ArgConstraint:  # noqa: ANN401  any JSON
    return msgspec.convert(fields, ArgConstraint)


@cases(
    "fields",
    [
        {"max": 50000},
        {"max": 0},
        {"min": 0},
        {"min": 1, "max": EXACT},
        {"min": -EXACT, "max": 5},
        {"enum": ["INR"]},
        {"enum": [None]},
        {"pattern": "^ord_"},
        {"pattern": "^.{1,200}$"},
        {"pattern": "^[A-Z]{3}$"},
        {"pattern": "[0-9]"},
        {"max": 3, "unless_approved": True},
    ],
    ids=str,
)
def test_what_refuses_a_value_bounds_an_argument(fields: dict[str, Any]) -> None:
    assert bounds_value(constraint(**fields))


@cases(
    "fields",
    [
        {},
        {"required": True},
        {"unless_approved": True},
        {"min": -1},
        {"min": -EXACT},
        {"max": EXACT},
        {"min": -EXACT, "max": EXACT, "required": True},
        *(
            {"pattern": pattern}
            for pattern in (".*", "^.*$", ".+", ".", "^", "$", "x*", "a?", "()", "[\\s\\S]*", "^ok$|.*", "\\S")
        ),
    ],
    ids=str,
)
def test_what_leaves_every_value_bounds_nothing(fields: dict[str, Any]) -> None:
    assert not bounds_value(constraint(**fields))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x85\u2028\u2029"), min_size=1, max_size=40))
def test_no_pattern_that_a_text_escapes_is_taken_for_one_that_leaves_every_text(text: str) -> None:
    escaped = "".join(char if char.isalnum() and char.isascii() else f"\\u{{{ord(char):x}}}" for char in text)
    assert not matches_every_text(f"^{escaped}$")


def test_a_pattern_with_a_problem_is_told_elsewhere_and_bounds() -> None:
    assert not matches_every_text("(.*)*")


def of(**arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON Schema
    return {"type": "object", "properties": arguments}


@cases(
    "schema",
    [
        of(amount={"type": "integer"}),
        of(amount={"maximum": 5}),
        of(note={"pattern": "^ord_"}),
        of(note=False),
        of(note={"description": "why", "maxLength": 200}),
        {"additionalProperties": False},
        {**of(idempotency_key={}), "additionalProperties": False},
        {"$ref": "#/$defs/refund"},
        {"const": {}},
        {"allOf": [{}, of(amount={"maximum": 5})]},
        {"anyOf": [of(amount={"maximum": 5}), of(amount={"const": 9})]},
        {"oneOf": [False]},
    ],
    ids=str,
)
def test_a_schema_that_refuses_a_value_of_an_argument_bounds_it(schema: dict[str, Any]) -> None:
    assert bounds_arguments(schema)


@cases(
    "schema",
    [
        {},
        {"type": "object"},
        {"x": 1},
        {"required": ["amount"]},
        of(),
        of(amount={}),
        of(amount=True),
        of(note={"title": "Note", "description": "why", "examples": ["late"]}),
        of(note={"pattern": ".*"}),
        of(idempotency_key={"type": "string"}),
        {**of(note={}), "additionalProperties": False},
        {"allOf": [{}, of(amount={})]},
        {"anyOf": [of(amount={"maximum": 5}), {}]},
        {"oneOf": []},
        {"properties": 1, "allOf": 2, "anyOf": {}},
    ],
    ids=str,
)
def test_a_schema_that_refuses_nothing_bounds_nothing(schema: dict[str, Any]) -> None:
    assert not bounds_arguments(schema)


def test_a_schema_in_a_schema_and_so_on_is_not_followed_for_ever() -> None:
    schema: dict[str, Any] = {}
    for _ in range(200):
        schema = {"allOf": [schema]}
    assert bounds_arguments(schema)
