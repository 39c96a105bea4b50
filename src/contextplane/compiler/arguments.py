"""Describes the arguments of a tool in few words, and leaves out those that the runtime supplies."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from contextplane.compiler.quotation import inline, quote, quote_json, quote_word
from contextplane.model.pack_layers import IDEMPOTENCY_KEY

__all__ = ["describe_arguments", "drop_arguments", "supplied_arguments"]

_ROOT_WORDS = frozenset({"$schema", "additionalProperties", "description", "properties", "required", "title", "type"})
_WORDS = frozenset({"description", "enum", "format", "items", "maximum", "minimum", "pattern", "title", "type"})
_SCALARS = frozenset({"boolean", "integer", "number", "string"})


def supplied_arguments(header: str | None) -> tuple[str, ...]:
    """The arguments that the runtime supplies: the key, by its name and by that of the header."""
    names = {IDEMPOTENCY_KEY}
    if header is not None:
        names |= {header, header.lower().replace("-", "_")}
    return tuple(sorted(names))


def drop_arguments(schema: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Copy the schema of a tool without these arguments. The parts of the copy are those of the schema."""
    dropped = dict(schema)
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, dict):
        dropped["properties"] = {name: part for name, part in properties.items() if name not in names}
    if isinstance(required, list) and not set(names).isdisjoint(map(str, required)):
        dropped["required"] = [name for name in required if name not in names]
        if not dropped["required"]:
            del dropped["required"]
    return dropped


def describe_arguments(schema: Mapping[str, Any]) -> str:
    """Describe the arguments on one line, such as `order_id: string, note?: string`.

    A schema that says more than names, kinds and bounds is written as JSON.
    """
    if not _is_simple(schema):
        return quote_json(schema)
    required = schema.get("required", ())
    return ", ".join(
        f"{quote_word(name)}{'' if name in required else '?'}: {_describe_value(part)}"
        for name, part in sorted(schema.get("properties", {}).items())
    )


def _is_simple(schema: Mapping[str, Any]) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        schema.get("type", "object") == "object"
        and _ROOT_WORDS.issuperset(schema)
        and isinstance(schema.get("additionalProperties", False), bool)
        and isinstance(properties, dict)
        and isinstance(required, list)
        and all(name in properties for name in required)
    )


def _describe_value(part: object) -> str:
    if not isinstance(part, dict) or not _is_simple_value(part):
        return quote_json(part)
    return " ".join(_value_words(part))


def _is_simple_value(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    if not _WORDS.issuperset(part) or not (kind in _SCALARS or kind == "array" or "enum" in part):
        return False
    return "items" not in part or (
        kind == "array" and isinstance(part["items"], dict) and _is_simple_value(part["items"])
    )


def _value_words(part: Mapping[str, Any]) -> Iterator[str]:
    if "enum" in part:
        yield " | ".join(map(quote_json, part["enum"]))
    elif part.get("type") == "array":
        yield f"list of {_describe_value(part['items'])}" if "items" in part else "list"
    else:
        yield str(part["type"])
    if "format" in part:
        yield f"({inline(str(part['format']))})"
    if "minimum" in part or "maximum" in part:
        least, most = (quote_json(part[bound]) if bound in part else "" for bound in ("minimum", "maximum"))
        yield f"{least}..{most}"
    if "pattern" in part:
        yield f"matching {quote(str(part['pattern']))}"
    if part.get("description"):
        yield f"- {inline(str(part['description'])).removesuffix('.')}"
