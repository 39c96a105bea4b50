"""The schema of a tool's arguments as chat APIs take it: an object at its root, no alternatives there, short names.

What they do not take is left out here, so that what is sent refuses no arguments that the pack's schema takes. All of
it stands in the block of the tool, and the gateway judges every call by all of it.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from contextplane.compiler.bounds import Kind, is_needed
from contextplane.model.compiled_context import ArgumentLimit
from contextplane.model.context_pack.arguments import ArgConstraint

__all__ = ["schema_as_given", "schema_of_limits"]

_ALTERNATIVES = frozenset({"allOf", "anyOf", "oneOf"})
_NOT_AT_ROOT = _ALTERNATIVES | {"const", "enum", "not", "type"}
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_JSON_TYPES = {"min": "number", "max": "number", "pattern": "string"}


def schema_as_given(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that the pack gives, in a copy: whoever sends it may change it, and the pack stays as it is."""
    kept = {name: copy.deepcopy(part) for name, part in schema.items() if name not in _NOT_AT_ROOT}
    properties: dict[str, Any] = kept.get("properties", {})
    named = {name: part for name, part in properties.items() if _KEY.fullmatch(name)}
    if "required" in kept:
        kept["required"] = [*filter(_KEY.fullmatch, kept["required"])]
    # What is closed would be closed to the arguments that are left out.
    if len(named) < len(properties):
        kept.pop("additionalProperties", None)
    if len(named) < len(properties) or not _ALTERNATIVES.isdisjoint(schema):
        kept.pop("unevaluatedProperties", None)
    return {"type": "object", **kept, "properties": named}


def schema_of_limits(limits: Iterable[ArgumentLimit], kind: Kind) -> dict[str, Any]:
    """A schema of what the constraints say; a name with dots is a way into objects.

    What an approval would lift is left to the gateway.
    """
    by_argument: dict[str, list[dict[str, Any]]] = {}
    required: dict[str, None] = {}
    for one in limits:
        steps, needed, bound = one.argument.split("."), is_needed(one, kind), _schema(one.constraint)
        if one.constraint.unless_approved or not (needed or bound) or not all(map(_KEY.fullmatch, steps)):
            continue
        for step in reversed(steps[1:]):
            bound = {"type": "object", "properties": {step: bound}, **({"required": [step]} if needed else {})}
        by_argument.setdefault(steps[0], []).append(bound)
        if needed:
            required[steps[0]] = None
    properties = {name: parts[0] if len(parts) == 1 else {"allOf": parts} for name, parts in by_argument.items()}
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "required": [*required]} if required else made


def _schema(constraint: ArgConstraint) -> dict[str, Any]:
    said: Mapping[str, Any] = msgspec.to_builtins(constraint)
    names = {"min": "minimum", "max": "maximum", "enum": "enum", "pattern": "pattern"}
    kinds = {_JSON_TYPES[name] for name in said if name in _JSON_TYPES}
    schema = {names[name]: [*value] if name == "enum" else value for name, value in said.items() if name in names}
    return {"type": kinds.pop(), **schema} if len(kinds) == 1 else schema
