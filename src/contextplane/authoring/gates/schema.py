"""Schema: a document has exactly the form of its kind. All problems at once, in our own words.

Whether it has the form, the types decide, which accept what the JSON Schema accepts; where it has not, the schema says
why, and only then is its validator loaded.

The first parts of a large document. To tell what is wrong with a part takes long, and nobody mends thousands.

The JSON Schemas of our documents, made from their types: what is checked in under `schemas/` must be the same.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from contextplane.authoring.environment import Surroundings
from contextplane.authoring.finding import Broken, Finding, Law, looks_secret
from contextplane.authoring.suggest import nearest
from contextplane.model.artifact import DecisionCatalog, Overlay
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["LAWS", "SCHEMAS", "first_parts", "form_problems", "said_by_types", "schema_of", "typed_or_problems"]

_MEMBERS = 100


def first_parts(value: Json, most: int, fields: Collection[str]) -> tuple[Json, bool]:
    """A copy that ends after about so many parts, and whether that is all of it.

    Lists and objects end early; none becomes empty by it, and of an object the first members stay, and all that have
    one of the names of `fields`. So nothing is missed in the copy that is there in the document, and a large part
    does not hide what is wrong beside it.
    """
    cut = _Cut(most, fields)
    return cut.of(value), cut.is_whole


class _Cut:
    def __init__(self, most: int, fields: Collection[str]) -> None:
        self._left = most
        self._fields = fields
        self.is_whole = True

    def of(self, value: Json) -> Json:
        self._left -= 1
        if isinstance(value, dict):
            return self._members(value)
        return self._elements(value) if isinstance(value, list | tuple) else value

    def _members(self, value: dict[str, Json]) -> Json:
        kept: dict[str, Json] = {}
        for name, one in value.items():
            if self._left > 0 or len(kept) < _MEMBERS or name in self._fields:
                kept[name] = self.of(one)
        self.is_whole = self.is_whole and len(kept) == len(value)
        return kept

    def _elements(self, value: Sequence[Json]) -> Json:
        kept: list[Json] = []
        for one in value:
            if kept and self._left <= 0:
                self.is_whole = False
                break
            kept.append(self.of(one))
        return kept


SCHEMAS: dict[str, type[msgspec.Struct]] = {
    "context-pack.v2.schema.json": ContextPack,
    "overlay.v1.schema.json": Overlay,
    "decision-catalog.v1.schema.json": DecisionCatalog,
    "environment.v1.schema.json": Surroundings,
    "compiled-context.v1.schema.json": CompiledContext,
}
"""Each file, and the document whose form it is."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def schema_of(document: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a document, in the dialect of 2020-12. One that is in a file has a name."""
    made = msgspec.json.schema(document)
    # The end of a text is `\\Z` to Python and `$` to a JSON Schema, where it does not stand before a line break.
    text = msgspec.json.encode(made).replace(rb"\\Z", b"$")
    schema: dict[str, Any] = msgspec.json.decode(text)
    names = [name.removesuffix(".schema.json") for name, one in SCHEMAS.items() if one is document]
    return {"$schema": _DIALECT, **({"$id": f"urn:contextplane:{names[0]}"} if names else {}), **schema}


D = TypeVar("D", bound=msgspec.Struct)
Shown = Callable[[object], str]
"""How a value stands in a message."""

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
    "propertyNames": ("a name in here has the wrong form", "begin with a letter or a digit; no blanks"),
}
_MOST = 200
_SHOWN = 40
_LOOKED_THROUGH = (2_000, 10_000, 50_000)
"""So many parts of a document are looked through; more of them only while there is little to tell."""

_PLACE = re.compile(r"^(?P<cause>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_REPEATING = ("Invalid enum value", "Object contains unknown field")
"""How those messages of msgspec begin that repeat what was given."""


def required_parts_are_there(value: Json) -> Iterator[Broken]:
    """Every required layer, and every required field of a layer, is there."""
    return _of_kind(value, "schema_part_missing")


def only_known_parts_are_there(value: Json) -> Iterator[Broken]:
    """There is no layer and no field that the contract does not know."""
    return _of_kind(value, "schema_part_unknown")


def values_have_their_type(value: Json) -> Iterator[Broken]:
    """Every field holds the kind of value that the contract says: a text, a number, a list."""
    return _of_kind(value, "schema_type_wrong")


def values_have_their_form(value: Json) -> Iterator[Broken]:
    """Every value has the form, and lies within the bounds, that the contract says."""
    return _of_kind(value, "schema_value_wrong")


LAWS: tuple[Law[Json], ...] = (
    Law(gate="schema", code="schema_part_missing", check=required_parts_are_there),
    Law(gate="schema", code="schema_part_unknown", check=only_known_parts_are_there),
    Law(gate="schema", code="schema_type_wrong", check=values_have_their_type),
    Law(gate="schema", code="schema_value_wrong", check=values_have_their_form),
)


def typed_or_problems(value: Json, document: type[D]) -> D | tuple[Finding, ...]:
    """The document, typed; or everything in which the value is not of its form."""
    try:
        return msgspec.convert(value, type=document)
    except msgspec.ValidationError as error:
        findings = tuple(
            Finding(gate="schema", code=code, severity="error", at=one.at, cause=one.cause, cure=one.cure)
            for code, one in form_problems(value, document)
        )
        # The types refused it: should the schema see nothing wrong in what it was shown, it is refused all the same.
        violation = said_by_types(error)
        last = Finding(
            gate="schema",
            code="schema_value_wrong",
            severity="error",
            at=violation.at,
            cause=violation.cause,
            cure=violation.cure,
        )
        return findings or (last,)


def said_by_types(error: msgspec.ValidationError) -> Broken:
    """The one thing that the types say, for what only they refuse. It repeats nothing that was given."""
    match = _PLACE.fullmatch(str(error))
    cause, path = (match["cause"], match["path"] or "") if match else ("", "")
    said = "is not of its form" if not cause or cause.startswith(_REPEATING) else cause
    return Broken(at=pointer([one or two for one, two in _STEP.findall(path)]), cause=said, cure="correct it")


def form_problems(
    value: Json, document: type[msgspec.Struct], shown: Shown | None = None
) -> Iterator[tuple[str, Broken]]:
    """Everything in which a value is not of the form of a document, at most 200 of them, each with its code.

    Of a very large one only the first parts are looked through, and that is told as well, if anything is wrong there.
    `shown` says how a wrong value stands in a message, where it may tell less than an author is told of his own file.
    """
    told: list[tuple[str, Broken]] = []
    is_whole = False
    for most in _LOOKED_THROUGH:
        part, is_whole = first_parts(value, most, _every_field(document))
        # The validator makes all of its errors before it gives the first: of a million, that takes minutes.
        errors = _validator(document).iter_errors(part)
        told = [*islice((one for error in errors for one in _told(error, document, shown or _shown)), _MOST + 1)]
        if is_whole or len(told) > _MOST:
            break
    yield from told[:_MOST]
    if len(told) > _MOST:
        cause = f"there are more than {_MOST} problems; the rest is not listed"
        yield "schema_value_wrong", Broken(at="", cause=cause, cure="mend these first")
    elif told and not is_whole:
        cause = "this is so large that only its first parts were looked through"
        yield "schema_value_wrong", Broken(at="", cause=cause, cure="mend these first")


def _of_kind(value: Json, code: str) -> Iterator[Broken]:
    return (violation for found, violation in form_problems(value, ContextPack) if found == code)


@cache
def _validator(document: type[msgspec.Struct]) -> "jsonschema_rs.Draft202012Validator":
    # Here and not above: it takes longer to load than all gates together, and a document of the right form needs none.
    import jsonschema_rs  # noqa: PLC0415

    return jsonschema_rs.Draft202012Validator(schema_of(document))


@cache
def _every_field(document: type[msgspec.Struct]) -> frozenset[str]:
    """The names of the fields of a document and of all of its parts."""
    schema = schema_of(document)
    parts: list[dict[str, Any]] = [schema, *schema.get("$defs", {}).values()]
    return frozenset(name for part in parts for name in part.get("properties", ()))


def _told(
    error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct], shown: Shown
) -> Iterator[tuple[str, Broken]]:
    at = pointer(error.instance_path)
    name = error.kind.name
    given: Any = getattr(error.kind, "value", None)
    if name == "anyOf":
        yield from _nearest_form(error, document, shown)
    elif name == "required":
        what = "the layer" if not at and document is ContextPack else "the field"
        yield (
            "schema_part_missing",
            Broken(at=at + pointer([given]), cause=f"{what} {given} is missing", cure=f"add {given}"),
        )
    elif name == "additionalProperties":
        known = _fields(error, document)
        for field in given[:_MOST]:
            what = "a layer of a context pack" if not at and document is ContextPack else "a field of this part"
            cause, cure = f"{field[:60]!r} is not {what}", nearest(field, known, "remove it")
            yield "schema_part_unknown", Broken(at=at + pointer([field]), cause=cause, cure=cure)
    elif name == "type":
        yield "schema_type_wrong", _wrong_type(at, given, shown(error.instance))
    elif name in {"enum", "const"}:
        choices = [str(one) for one in given] if name == "enum" else [str(given)]
        cure = nearest(str(error.instance)[:_SHOWN], choices, "write one of them")
        cause = f"{shown(error.instance)} is none of the known values"
        yield "schema_value_wrong", Broken(at=at, cause=cause, cure=cure)
    else:
        yield "schema_value_wrong", _wrong_value(at, error, document, shown)


def _nearest_form(
    error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct], shown: Shown
) -> Iterator[tuple[str, Broken]]:
    """Of several forms that a part may have, what is wrong with the one that comes nearest."""
    here = list(error.instance_path)
    context: list[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context", [])
    forms = [form for form in context if not any(_is_other_type(one, here) for one in form)]
    if forms:
        for validation_error in min(forms, key=len):
            yield from _told(validation_error, document, shown)
        return
    other = [one for form in context for one in form if _is_other_type(one, here)]
    wanted = [kind for one in other for kind in getattr(one.kind, "value", ())]
    yield "schema_type_wrong", _wrong_type(pointer(here), wanted, shown(error.instance))


def _wrong_type(at: str, wanted: Sequence[str], instead: str) -> Broken:
    known = dict.fromkeys(_TYPES[kind] for kind in wanted if kind in _TYPES and kind != "null")
    what = " or ".join(known) or "null"
    return Broken(at=at, cause=f"must be {what}, not {instead}", cure=f"write {what}")


def _wrong_value(
    at: str, error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct], shown: Shown
) -> Broken:
    name = error.kind.name
    given = getattr(error.kind, "value", "")
    said = _part_of_schema(error, document).get("description")
    words, cure = _WORDS.get(name, ("{shown} does not fit", "see its schema: {value}"))
    cause = words.format(value=given, shown=shown(error.instance))
    return Broken(at=at, cause=cause, cure=said if said and name == "pattern" else cure.format(value=given))


def _is_other_type(error: "jsonschema_rs.ValidationError", here: list[str | int]) -> bool:
    return error.kind.name == "type" and list(error.instance_path) == here


def _fields(error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct]) -> list[str]:
    """The fields that the part may have."""
    return sorted(_part_of_schema(error, document).get("properties", {}))


def _part_of_schema(error: "jsonschema_rs.ValidationError", document: type[msgspec.Struct]) -> dict[str, Any]:
    """The part of the schema that refused."""
    whole = schema_of(document)
    schema: Any = whole
    for step in error.schema_path[:-1]:
        schema = schema.get(step, {}) if isinstance(schema, dict) else schema[int(step)]
        while isinstance(schema, dict) and "$ref" in schema:
            schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema if isinstance(schema, dict) else {}


def _shown(value: object) -> str:
    """A value in a message: short, no secret, and with letters that only look like ASCII written out."""
    if isinstance(value, str):
        if looks_secret(value):
            return "this text"
        return ascii(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
    if isinstance(value, list | dict):
        return _TYPES["array" if isinstance(value, list) else "object"]
    return "null" if value is None else str(value).lower()
