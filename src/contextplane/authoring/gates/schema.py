"""The schema gate: a document has exactly the form of its kind. It reports all problems at once.

The types decide whether a document has the form; they accept what its JSON Schema accepts. Only for a document that
they refuse is the validator of the schema loaded, to say why. Of a large document only the first parts are validated:
validating is slow, and an author does not mend thousands of problems at a time.

The JSON Schemas are made from the types. `docs/schemas.py` adds descriptions and publishes them: the files in
`contextplane/schemas/`, which the wheel ships.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from contextplane.authoring.law import Finding, Law, Violation, looks_secret
from contextplane.model.artifact import DecisionCatalog, EnvironmentDescription, Overlay
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.suggestion import did_you_mean

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = [
    "LAWS",
    "SCHEMAS",
    "schema_of",
    "schema_violations",
    "truncate_document",
    "type_violation",
    "typed_or_problems",
]

# --- the JSON Schemas ---

SCHEMAS: dict[str, type[msgspec.Struct]] = {
    "context-pack.v2.schema.json": ContextPack,
    "overlay.v1.schema.json": Overlay,
    "decision-catalog.v1.schema.json": DecisionCatalog,
    "environment.v1.schema.json": EnvironmentDescription,
    "compiled-context.v1.schema.json": CompiledContext,
}
"""Each file, and the document whose form it is."""

_QUOTE = "quote the text that it is part of, or remove it"
"""The cure of a field with a blank: in YAML, a comma ends a text within braces, unless the text is quoted."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def schema_of(document: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a document, in the dialect of 2020-12. A published one has an `$id`."""
    made = msgspec.json.schema(document)
    # The end of a text is `\\Z` to Python and `$` to a JSON Schema, where it does not stand before a line break.
    text = msgspec.json.encode(made).replace(rb"\\Z", b"$")
    schema: dict[str, Any] = msgspec.json.decode(text)
    names = [name.removesuffix(".schema.json") for name, published in SCHEMAS.items() if published is document]
    return {"$schema": _DIALECT, **({"$id": f"urn:contextplane:{names[0]}"} if names else {}), **schema}


# --- the laws ---

D = TypeVar("D", bound=msgspec.Struct)
Display = Callable[[object], str]
"""Formats a value for a message."""

_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_WORDS = {
    "pattern": ("{shown} does not have the form of this field", "it must match {value}"),
    "minItems": ("this list is empty", "add an entry"),
    "minProperties": ("this object is empty", "add an entry"),
    "minLength": ("this text is empty", "write something, or leave it out"),
    "maxLength": ("this is longer than {value} characters", "shorten it"),
    "minimum": ("{shown} is too small", "write {value} or more"),
    "maximum": ("{shown} is too large", "write {value} or less"),
    "propertyNames": ("a name in here has the wrong form", "start with a letter or a digit; no spaces"),
}
_MAX_PROBLEMS = 200
_MAX_LENGTH = 40
_PART_LIMITS = (2_000, 10_000, 50_000)
"""How many parts of a document are validated; the next limit is tried while few problems are known."""

_PLACE = re.compile(r"^(?P<cause>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_REPEATING = ("Invalid enum value", "Object contains unknown field")
"""The beginnings of messages of msgspec that repeat the value."""


def required_parts_are_there(value: Json) -> Iterator[Violation]:
    """Every required layer, and every required field of a layer, is there."""
    return _violations_with_code(value, "schema_part_missing")


def only_known_parts_are_there(value: Json) -> Iterator[Violation]:
    """There is no layer and no field that the contract does not know."""
    return _violations_with_code(value, "schema_part_unknown")


def values_have_their_type(value: Json) -> Iterator[Violation]:
    """Every field holds the kind of value that the contract says: a text, a number, a list."""
    return _violations_with_code(value, "schema_type_wrong")


def values_have_their_form(value: Json) -> Iterator[Violation]:
    """Every value has the form, and lies within the bounds, that the contract says."""
    return _violations_with_code(value, "schema_value_wrong")


LAWS: tuple[Law[Json], ...] = (
    Law(gate="schema", code="schema_part_missing", check=required_parts_are_there),
    Law(gate="schema", code="schema_part_unknown", check=only_known_parts_are_there),
    Law(gate="schema", code="schema_type_wrong", check=values_have_their_type),
    Law(gate="schema", code="schema_value_wrong", check=values_have_their_form),
)


def typed_or_problems(value: Json, document: type[D]) -> D | tuple[Finding, ...]:
    """Return the document, typed; or a finding for each place where the value has not its form."""
    try:
        return msgspec.convert(value, type=document)
    except msgspec.ValidationError as error:
        findings = tuple(_finding(code, violation) for code, violation in schema_violations(value, document))
        # The types refused it: if the schema finds nothing wrong in the parts that were validated, it is refused too.
        return findings or (_finding("schema_value_wrong", type_violation(error)),)


def _finding(code: str, violation: Violation) -> Finding:
    return Finding(
        gate="schema", code=code, severity="error", at=violation.at, cause=violation.cause, cure=violation.cure
    )


def type_violation(error: msgspec.ValidationError) -> Violation:
    """Return the violation that the types report. It repeats no value of the document."""
    match = _PLACE.fullmatch(str(error))
    message, path = (match["cause"], match["path"] or "") if match else ("", "")
    cause = "is not of its form" if not message or message.startswith(_REPEATING) else message
    return Violation(at=pointer([key or index for key, index in _STEP.findall(path)]), cause=cause, cure="correct it")


def schema_violations(
    value: Json, document: type[msgspec.Struct], display: Display | None = None
) -> Iterator[tuple[str, Violation]]:
    """Yield where a value has not the form of a document, each violation after its code; at most 200.

    Of a very large document only the first parts are validated; a last violation says so, if anything is wrong there.
    `display` formats a wrong value for a message, where the default would tell a caller too much.
    """
    problems: list[tuple[str, Violation]] = []
    is_whole = False
    for limit in _PART_LIMITS:
        part, is_whole = truncate_document(value, limit, _every_field(document))
        # The validator makes all of its errors before it gives the first: of a million, that takes minutes.
        errors = _validator(document).iter_errors(part)
        violations = (entry for error in errors for entry in _violations_of(error, document, display or _display))
        problems = list(islice(violations, _MAX_PROBLEMS + 1))
        if is_whole or len(problems) > _MAX_PROBLEMS:
            break
    yield from problems[:_MAX_PROBLEMS]
    if len(problems) > _MAX_PROBLEMS:
        cause = f"there are more than {_MAX_PROBLEMS} problems; the rest is not listed"
        yield "schema_value_wrong", Violation(at="", cause=cause, cure="fix these first")
    elif problems and not is_whole:
        cause = "this is so large that only its first parts were looked through"
        yield "schema_value_wrong", Violation(at="", cause=cause, cure="fix these first")


def _violations_with_code(value: Json, code: str) -> Iterator[Violation]:
    return (violation for violated, violation in schema_violations(value, ContextPack) if violated == code)


@cache
def _validator(document: type[msgspec.Struct]) -> "jsonschema_rs.Draft202012Validator":
    # Here and not above: it takes longer to load than all gates together, and a document of the right form needs none.
    import jsonschema_rs  # noqa: PLC0415

    return jsonschema_rs.Draft202012Validator(schema_of(document))


@cache
def _every_field(document: type[msgspec.Struct]) -> frozenset[str]:
    """Return the names of the fields of a document and of all of its parts."""
    schema = schema_of(document)
    parts: list[dict[str, Any]] = [schema, *schema.get("$defs", {}).values()]
    return frozenset(name for part in parts for name in part.get("properties", ()))


def _violations_of(
    error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct], display: Display
) -> Iterator[tuple[str, Violation]]:
    at = pointer(error.instance_path)
    name = error.kind.name
    expected: Any = getattr(error.kind, "value", None)
    if name == "anyOf":
        yield from _nearest_form(error, document, display)
    elif name == "required":
        what = "the layer" if not at and document is ContextPack else "the field"
        yield (
            "schema_part_missing",
            Violation(at=at + pointer([expected]), cause=f"{what} {expected} is missing", cure=f"add {expected}"),
        )
    elif name == "additionalProperties":
        known = _fields(error, document)
        for field in expected[:_MAX_PROBLEMS]:
            what = "a layer of a context pack" if not at and document is ContextPack else "a field of this part"
            cause = f"{field[:60]!r} is not {what}"
            cure = did_you_mean(field, known, _QUOTE if " " in field else "remove it")
            yield "schema_part_unknown", Violation(at=at + pointer([field]), cause=cause, cure=cure)
    elif name == "type":
        yield "schema_type_wrong", _wrong_type(at, expected, display(error.instance))
    elif name in {"enum", "const"}:
        choices = [str(choice) for choice in expected] if name == "enum" else [str(expected)]
        cure = did_you_mean(str(error.instance)[:_MAX_LENGTH], choices, "write one of them")
        cause = f"{display(error.instance)} is none of the known values"
        yield "schema_value_wrong", Violation(at=at, cause=cause, cure=cure)
    else:
        yield "schema_value_wrong", _wrong_value(at, error, document, display)


def _nearest_form(
    error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct], display: Display
) -> Iterator[tuple[str, Violation]]:
    """Yield what is wrong with the nearest of several forms that a part may have."""
    here = list(error.instance_path)
    context: list[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context", [])
    forms = [form for form in context if not any(_is_other_type(inner, here) for inner in form)]
    if forms:
        for inner in min(forms, key=len):
            yield from _violations_of(inner, document, display)
        return
    other = [inner for form in context for inner in form if _is_other_type(inner, here)]
    kinds = [kind for inner in other for kind in getattr(inner.kind, "value", ())]
    yield "schema_type_wrong", _wrong_type(pointer(here), kinds, display(error.instance))


def _wrong_type(at: str, kinds: Sequence[str], instead: str) -> Violation:
    known = dict.fromkeys(_TYPES[kind] for kind in kinds if kind in _TYPES and kind != "null")
    what = " or ".join(known) or "null"
    return Violation(at=at, cause=f"must be {what}, not {instead}", cure=f"write {what}")


def _wrong_value(
    at: str, error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct], display: Display
) -> Violation:
    name = error.kind.name
    bound = getattr(error.kind, "value", "")
    description = _part_of_schema(error, document).get("description")
    words, cure = _WORDS.get(name, ("{shown} does not fit", "see its schema: {value}"))
    cause = words.format(value=bound, shown=display(error.instance))
    described = description if name == "pattern" else None
    return Violation(at=at, cause=cause, cure=described or cure.format(value=bound))


def _is_other_type(error: "jsonschema_rs.ValidationError", here: list[str | int]) -> bool:
    return error.kind.name == "type" and list(error.instance_path) == here


def _fields(error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct]) -> list[str]:
    """Return the fields that the refused part may have."""
    return sorted(_part_of_schema(error, document).get("properties", {}))


def _part_of_schema(error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the part of the schema that refused."""
    whole = schema_of(document)
    schema: Any = whole
    for step in error.schema_path[:-1]:
        schema = schema.get(step, {}) if isinstance(schema, dict) else schema[int(step)]
        while isinstance(schema, dict) and "$ref" in schema:
            schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema if isinstance(schema, dict) else {}


def _display(value: object) -> str:
    """Format a value for a message: short, no secret, letters outside ASCII escaped."""
    if isinstance(value, str):
        if looks_secret(value):
            return "this text"
        return ascii(value if len(value) <= _MAX_LENGTH else value[:_MAX_LENGTH] + "...")
    if isinstance(value, list | dict):
        return _TYPES["array" if isinstance(value, list) else "object"]
    return "null" if value is None else str(value).lower()


# --- the first parts of a large document ---

_MIN_MEMBERS = 100


def truncate_document(value: Json, limit: int, fields: Collection[str]) -> tuple[Json, bool]:
    """Copy the first parts of a document, about `limit` of them. Also return whether that is all of it.

    Lists and objects end early, but none becomes empty. An object keeps its first members, and all members named in
    `fields`. So no required field is missing from the copy, and a large part does not hide what is wrong beside it.
    """
    truncation = _Truncation(limit, fields)
    return truncation.copy(value), truncation.is_whole


class _Truncation:
    def __init__(self, limit: int, fields: Collection[str]) -> None:
        self._left = limit
        self._fields = fields
        self.is_whole = True

    def copy(self, value: Json) -> Json:
        self._left -= 1
        if isinstance(value, dict):
            return self._members(value)
        return self._elements(value) if isinstance(value, list | tuple) else value

    def _members(self, value: dict[str, Json]) -> Json:
        members: dict[str, Json] = {}
        for name, member in value.items():
            if self._left > 0 or len(members) < _MIN_MEMBERS or name in self._fields:
                members[name] = self.copy(member)
        self.is_whole = self.is_whole and len(members) == len(value)
        return members

    def _elements(self, value: Sequence[Json]) -> Json:
        elements: list[Json] = []
        for element in value:
            if elements and self._left <= 0:
                self.is_whole = False
                break
            elements.append(self.copy(element))
        return elements
