"""The JSON Schemas of the documents that `ctx` reads and writes, as the package ships them.

`make docs` writes the files from the types. Reading a schema imports none of those types.
"""

import os
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.suggestion import closest_name
from contextplane.model.value import Value

__all__ = ["SchemaEntry", "SchemaUnknown", "list_schemas", "read_schema", "schema_names"]

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "schemas")
_ENDING = ".schema.json"


class SchemaUnknown(ContextPlaneError):
    """There is no JSON Schema of this name."""

    code: ClassVar[str] = "schema_unknown"
    family: ClassVar[Family] = "not_found"


class SchemaEntry(Value, frozen=True):
    """A kind of document: its name, its version, the `$id` of its schema, and a line about it."""

    name: str
    version: str
    id: str
    description: str


class _Head(Value, frozen=True):
    id: str = msgspec.field(name="$id")
    description: str


def schema_names() -> tuple[str, ...]:
    """Return the names of all kinds of documents, sorted: `compile-case`, `context-pack`."""
    return tuple(sorted(file.partition(".")[0] for file in _files()))


def list_schemas() -> tuple[SchemaEntry, ...]:
    """Describe every kind of document that has a schema, sorted by name."""
    return tuple(_entry(file) for file in sorted(_files()))


def read_schema(name: str) -> bytes:
    """Return the schema of a kind of document: `context-pack`, `context-pack.v2`, or the name of its file."""
    stem = name.removesuffix(_ENDING).replace("_", "-")
    for file in _files():
        if stem in {file.removesuffix(_ENDING), file.partition(".")[0]}:
            return _read(file)
    near = closest_name(stem[:100], schema_names())
    hint = f"did you mean {near}?" if near else "'ctx schema' lists them"
    raise SchemaUnknown(f"no document has the name {name[:60]!r}", hint=hint)


def _files() -> list[str]:
    return [file for file in os.listdir(_FOLDER) if file.endswith(_ENDING)]


def _read(file: str) -> bytes:
    with open(os.path.join(_FOLDER, file), "rb") as opened:
        return opened.read()


def _entry(file: str) -> SchemaEntry:
    head = msgspec.json.decode(_read(file), type=_Head)
    name, _, version = file.removesuffix(_ENDING).partition(".")
    return SchemaEntry(name=name, version=version, id=head.id, description=head.description)
