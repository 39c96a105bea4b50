"""Whether a JSON Schema of arguments bounds any of them, or admits whatever is given."""

from typing import Any

from contextplane.authoring.argument_bounds import leaves_every_text

__all__ = ["bounds_arguments"]

_IDEMPOTENCY = "idempotency_key"
_OF_WHOLE = frozenset({"enum", "const", "$ref", "not", "if", "patternProperties", "propertyNames", "maxProperties"})
"""With one of these, what the arguments are as a whole is bounded."""

_SAYS_NOTHING = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
        *("$comment", "$schema", "$id", "$anchor", "$defs", "definitions"),
    )
)
"""What a schema says to people, and refuses nothing by."""

_DEEPEST = 32


def bounds_arguments(schema: dict[str, Any], depth: int = 0) -> bool:
    """Whether it refuses a value of an argument. That an argument has to be there says nothing of what it is."""
    if depth > _DEEPEST or _OF_WHOLE & schema.keys():
        return True
    arguments = {name: one for name, one in _members(schema).items() if name != _IDEMPOTENCY}
    if schema.get("additionalProperties") is False and not arguments:
        return True
    # Where all hold, one that bounds is enough; where one is chosen, each has to.
    return (
        any(_says_something(one) for one in arguments.values())
        or any(_each(schema, "allOf", depth))
        or any(found and all(found) for found in (_each(schema, name, depth) for name in ("anyOf", "oneOf")))
    )


def _members(schema: dict[str, Any]) -> dict[str, Any]:
    # Where the form is wrong, another law says so.
    members = schema.get("properties")
    return members if isinstance(members, dict) else {}


def _each(schema: dict[str, Any], name: str, depth: int) -> list[bool]:
    """Of each schema in a list, whether it bounds an argument."""
    parts = schema.get(name)
    return [
        bounds_arguments(one, depth + 1) if isinstance(one, dict) else one is False
        for one in (parts if isinstance(parts, list) else ())
    ]


def _says_something(schema: object) -> bool:
    """Whether a schema of one argument can refuse a value."""
    if not isinstance(schema, dict):
        return schema is False
    pattern = schema.get("pattern")
    idle = _SAYS_NOTHING | {"pattern"} if isinstance(pattern, str) and leaves_every_text(pattern) else _SAYS_NOTHING
    return not schema.keys() <= idle
