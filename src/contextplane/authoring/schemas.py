"""The JSON Schemas of our documents, made from their types: what is checked in under `schemas/` must be the same."""

from functools import cache
from typing import Any

import msgspec

from contextplane.authoring.surroundings import Surroundings
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.decision_catalog import DecisionCatalog
from contextplane.model.overlay import Overlay

__all__ = ["SCHEMAS", "schema_of"]

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
