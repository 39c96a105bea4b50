"""Checks of the argument constraints and the JSON Schemas that a pack holds for its tools.

Constraints and schemas must admit some value and should refuse some other. The Tool Gateway checks each call by them,
so it must be able to use them.
"""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import asdict

from contextplane.model.arguments import ArgConstraint, FactReference, ResolvedConstraint
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.policy.regex_safety import pattern_matches, pattern_problem

if TYPE_CHECKING:
    import jsonschema_rs

    from contextplane.policy.decision import ArgumentBound

__all__ = [
    "bounds_arguments",
    "bounds_value",
    "contradiction",
    "literal_bound",
    "matches_every_text",
    "refuses_objects",
    "schema_problems",
]

_LARGEST = 2**53 - 1
"""No number in a call is beyond it, on either side."""

_ANY_TEXTS = ("a", "Z", "7", "~", "\u00e9", "x y", "../x", "'; --", "word " * 10_000)
"""Texts of every kind, short and long: a pattern that matches all of these is taken to match every line."""


def bounds_value(constraint: ArgConstraint) -> bool:
    """Whether a constraint refuses some value. That the argument is required does not bound its value."""
    low, high = constraint.min, constraint.max
    if constraint.enum is not None or constraint.equals is not None:
        return True
    if isinstance(high, FactReference) or (high is not None and high < _LARGEST):
        return True
    # From below alone, an amount is bounded by its sign.
    if low is not None and not isinstance(low, FactReference) and low >= 0:
        return True
    return constraint.pattern is not None and not matches_every_text(constraint.pattern)


def matches_every_text(pattern: str) -> bool:
    """Whether a pattern matches every text of one line. One with a problem is left to another law."""
    return pattern_problem(pattern) is None and all(pattern_matches(pattern, text) for text in _ANY_TEXTS)


def contradiction(constraint: ArgConstraint) -> str | None:
    """Return why no value satisfies a constraint; None when one may. Its pattern has no problem."""
    low, high = _number(constraint.min), _number(constraint.max)
    if low is not None and high is not None and low > high:
        return f"min {low} is above max {high}"
    if constraint.pattern is not None and (constraint.min is not None or constraint.max is not None):
        return "a number has no pattern, and a text has no bounds"
    if constraint.enum is not None and not any(_satisfies(value, constraint) for value in constraint.enum):
        return "none of the values of enum keeps the other constraints"
    for name, reference in constraint.references:
        if name != "equals" and isinstance(reference.default, str | bool):
            return f"the default of {name} is no number"
    value = constraint.equals
    if value is not None and not isinstance(value, FactReference) and not _satisfies(value, constraint):
        return "the value of equals does not keep the other constraints"
    return None


def _satisfies(value: Json, constraint: ArgConstraint) -> bool:
    # Imported here: few constraints have an enum, and the checks of calls take a while to load.
    from contextplane.policy.arguments import violations  # noqa: PLC0415

    bound = literal_bound("it", constraint)
    return not violations((bound,), {"it": value}, approved=False, changes=True)


def literal_bound(argument: str, constraint: ArgConstraint, *, origin: str = "", at: str = "") -> "ArgumentBound":
    """Return the bounds of a constraint that do not refer to facts."""
    from contextplane.policy.decision import ArgumentBound  # noqa: PLC0415  as above

    referring = {name for name, _ in constraint.references}
    literals = {name: value for name, value in asdict(constraint).items() if name not in referring}
    return ArgumentBound(argument=argument, constraint=ResolvedConstraint(**literals), origin=origin, at=at)


def _number(bound: float | FactReference | None) -> float | None:
    return None if isinstance(bound, FactReference) else bound


# --- what a JSON Schema of arguments refuses ---

_IDEMPOTENCY = "idempotency_key"
_BOUNDS_WHOLE = frozenset({"enum", "const", "$ref", "not", "if", "patternProperties", "propertyNames", "maxProperties"})
"""A schema with one of these keywords bounds the arguments as a whole."""

_ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
        *("$comment", "$schema", "$id", "$anchor", "$defs", "definitions"),
    )
)
"""Keywords that refuse nothing."""

_MAX_DEPTH = 32


def bounds_arguments(schema: dict[str, Any], depth: int = 0) -> bool:
    """Whether a schema refuses some value of an argument. A required argument alone is not bounded."""
    if depth > _MAX_DEPTH or _BOUNDS_WHOLE & schema.keys():
        return True
    arguments = {name: argument for name, argument in _members(schema).items() if name != _IDEMPOTENCY}
    if schema.get("additionalProperties") is False and not arguments:
        return True
    # With allOf, one schema that bounds is enough; with anyOf and oneOf, each has to.
    return (
        any(_refuses_some_value(argument) for argument in arguments.values())
        or any(_each_bounds(schema, "allOf", depth))
        or any(flags and all(flags) for flags in (_each_bounds(schema, name, depth) for name in ("anyOf", "oneOf")))
    )


def _members(schema: dict[str, Any]) -> dict[str, Any]:
    # A wrong form is reported by another law.
    members = schema.get("properties")
    return members if isinstance(members, dict) else {}


def _each_bounds(schema: dict[str, Any], name: str, depth: int) -> list[bool]:
    """Return for each schema in a list whether it bounds an argument."""
    parts = schema.get(name)
    return [
        bounds_arguments(part, depth + 1) if isinstance(part, dict) else part is False
        for part in (parts if isinstance(parts, list) else ())
    ]


def _refuses_some_value(schema: object) -> bool:
    """Whether the schema of one argument refuses some value."""
    if not isinstance(schema, dict):
        return schema is False
    pattern = schema.get("pattern")
    idle = _ANNOTATIONS | {"pattern"} if isinstance(pattern, str) and matches_every_text(pattern) else _ANNOTATIONS
    return not schema.keys() <= idle


# --- whether a JSON Schema can be used ---

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OTHER_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "string"})


def schema_problems(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield why a schema cannot be used, each reason after its place. Nothing is ever fetched for it."""
    if schema.get("$schema", _DIALECT) not in (_DIALECT, f"{_DIALECT}#"):
        yield "/$schema", "is of another dialect than 2020-12"
        return
    paths = [list(error.instance_path) for error in _metaschema_validator().iter_errors(schema)]
    for path in paths:
        name = next((step for step in reversed(path) if isinstance(step, str)), "it")
        yield pointer(path), f"is no JSON Schema of 2020-12: {name[:60]!a} has not its form"
    if not paths:
        yield from _schema_problems_within(schema)


def refuses_objects(schema: dict[str, Any]) -> str | None:
    """Return the keyword at the root of a schema that refuses every object; None when none does.

    The arguments of a call are an object. A schema need not say so: without a type, it admits objects. A wrong form is
    reported by another law.
    """
    kind, values = schema.get("type", "object"), schema.get("enum")
    kinds = kind if isinstance(kind, list) else [kind]
    if kinds and _OTHER_TYPES.issuperset(map(str, kinds)):
        return "/type"
    if not isinstance(schema.get("const", {}), dict):
        return "/const"
    return "/enum" if isinstance(values, list) and not any(isinstance(value, dict) for value in values) else None


def _schema_problems_within(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a schema of valid form: its patterns, and its references."""
    has_bad_pattern = False
    for at, pattern in _patterns(schema):
        if problem := pattern_problem(pattern):
            has_bad_pattern = True
            yield at, f"has a pattern that {problem}"
    if not has_bad_pattern and not _resolves(schema):
        yield "", "refers to something that is not in it"


def _patterns(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    todo: list[tuple[str, object]] = [("", schema)]
    while todo:
        at, part = todo.pop()
        if isinstance(part, dict):
            if isinstance(pattern := part.get("pattern"), str):
                yield f"{at}/pattern", pattern
            if isinstance(patterns := part.get("patternProperties"), dict):
                yield from ((f"{at}/patternProperties{pointer([name])}", name) for name in patterns)
            todo += [(at + pointer([name]), member) for name, member in part.items()]
        elif isinstance(part, list):
            todo += [(f"{at}/{n}", element) for n, element in enumerate(part)]


def _resolves(schema: dict[str, Any]) -> bool:
    # Imported where it is used: it is slow to load, and few packs hold a schema.
    import jsonschema_rs  # noqa: PLC0415

    try:
        jsonschema_rs.Draft202012Validator(
            schema, retriever=_refuse_retrieval, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError:
        return False
    return True


def _refuse_retrieval(uri: str) -> NoReturn:
    raise LookupError(uri)


@cache
def _metaschema_validator() -> "jsonschema_rs.Draft202012Validator":
    import jsonschema_rs  # noqa: PLC0415

    return jsonschema_rs.Draft202012Validator({"$ref": _DIALECT})
