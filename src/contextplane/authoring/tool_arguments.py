"""Whether the constraints of an argument can be kept at all, and whether they bound it: some leave everything.

Whether a JSON Schema of arguments bounds any of them, or admits whatever is given.

The JSON Schemas that a pack holds for its tools: whether the Tool Gateway could check a call by them.
"""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from contextplane.model.context_pack import ArgConstraint
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.policy.regex_safety import pattern_matches, pattern_problem

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["bounds", "bounds_arguments", "leaves_every_text", "leaves_nothing", "refuses_objects", "schema_problems"]

_LARGEST = 2**53 - 1
"""No number of a call is beyond it, on either side."""

_ANY_TEXTS = ("a", "Z", "7", "~", "\u00e9", "x y", "../x", "'; --", "word " * 10_000)
"""Of every kind, short and long: what is found in all of these is found in every text of one line."""


def bounds(constraint: ArgConstraint) -> bool:
    """Whether a value that somebody may give breaks it. That it has to be there says nothing of what it is."""
    low, high = constraint.min, constraint.max
    if constraint.enum is not None or (high is not None and high < _LARGEST):
        return True
    # From below alone, an amount is bounded by its sign.
    if low is not None and low >= 0:
        return True
    return constraint.pattern is not None and not leaves_every_text(constraint.pattern)


def leaves_every_text(pattern: str) -> bool:
    """Whether a pattern is found in every text of one line. One that has a problem is told elsewhere."""
    return pattern_problem(pattern) is None and all(pattern_matches(pattern, text) for text in _ANY_TEXTS)


def leaves_nothing(constraint: ArgConstraint) -> str | None:
    """Why no value at all keeps a constraint; None when one may. Its pattern is one that has no problem."""
    low, high = constraint.min, constraint.max
    if low is not None and high is not None and low > high:
        return f"min {low} is above max {high}"
    if constraint.pattern is not None and (low is not None or high is not None):
        return "a number has no pattern, and a text has no bounds"
    if constraint.enum is not None and not any(_keeps(one, constraint) for one in constraint.enum):
        return "none of the values of enum keeps the other constraints"
    return None


def _keeps(value: Json, constraint: ArgConstraint) -> bool:
    # Here and not above: few constraints have an enum, and what checks calls takes a while to load.
    from contextplane.policy.arguments import violations  # noqa: PLC0415
    from contextplane.policy.decision import ArgumentBound  # noqa: PLC0415

    bound = ArgumentBound(argument="it", constraint=constraint, origin="", at="")
    return not violations((bound,), {"it": value}, approved=False, changes=True)


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
        any(_says_something(argument) for argument in arguments.values())
        or any(_each(schema, "allOf", depth))
        or any(flags and all(flags) for flags in (_each(schema, name, depth) for name in ("anyOf", "oneOf")))
    )


def _members(schema: dict[str, Any]) -> dict[str, Any]:
    # Where the form is wrong, another law says so.
    members = schema.get("properties")
    return members if isinstance(members, dict) else {}


def _each(schema: dict[str, Any], name: str, depth: int) -> list[bool]:
    """Of each schema in a list, whether it bounds an argument."""
    parts = schema.get(name)
    return [
        bounds_arguments(part, depth + 1) if isinstance(part, dict) else part is False
        for part in (parts if isinstance(parts, list) else ())
    ]


def _says_something(schema: object) -> bool:
    """Whether a schema of one argument can refuse a value."""
    if not isinstance(schema, dict):
        return schema is False
    pattern = schema.get("pattern")
    idle = _SAYS_NOTHING | {"pattern"} if isinstance(pattern, str) and leaves_every_text(pattern) else _SAYS_NOTHING
    return not schema.keys() <= idle


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OTHER_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "string"})


def schema_problems(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything for which a schema cannot be used, with its place in it: nothing outside is ever fetched for it."""
    if schema.get("$schema", _DIALECT) not in (_DIALECT, f"{_DIALECT}#"):
        yield "/$schema", "is of another dialect than 2020-12"
        return
    wrong = [list(error.instance_path) for error in _form().iter_errors(schema)]
    for path in wrong:
        name = next((one for one in reversed(path) if isinstance(one, str)), "it")
        yield pointer(path), f"is no JSON Schema of 2020-12: {name[:60]!a} has not its form"
    if not wrong:
        yield from _within(schema)


def refuses_objects(schema: dict[str, Any]) -> str | None:
    """The place at its root by which a schema refuses every object, as the arguments of a call are; None: it has none.

    It need not say that it wants one: where it says nothing, nothing else is ever given. Of a form that is wrong
    nothing is said here.
    """
    wanted, values = schema.get("type", "object"), schema.get("enum")
    kinds = wanted if isinstance(wanted, list) else [wanted]
    if kinds and _OTHER_TYPES.issuperset(map(str, kinds)):
        return "/type"
    if not isinstance(schema.get("const", {}), dict):
        return "/const"
    return "/enum" if isinstance(values, list) and not any(isinstance(value, dict) for value in values) else None


def _within(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with a schema whose form is right: its patterns, and what it refers to."""
    told = False
    for at, pattern in _patterns(schema):
        if problem := pattern_problem(pattern):
            told = True
            yield at, f"has a pattern that {problem}"
    if not told and not _resolves(schema):
        yield "", "refers to something that is not in it"


def _patterns(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    todo: list[tuple[str, object]] = [("", schema)]
    while todo:
        at, one = todo.pop()
        if isinstance(one, dict):
            if isinstance(pattern := one.get("pattern"), str):
                yield f"{at}/pattern", pattern
            if isinstance(named := one.get("patternProperties"), dict):
                yield from ((f"{at}/patternProperties{pointer([name])}", name) for name in named)
            todo += [(at + pointer([name]), part) for name, part in one.items()]
        elif isinstance(one, list):
            todo += [(f"{at}/{n}", part) for n, part in enumerate(one)]


def _resolves(schema: dict[str, Any]) -> bool:
    # Here and not above, twice: it is slow to load, and few packs hold a schema.
    import jsonschema_rs  # noqa: PLC0415

    try:
        jsonschema_rs.Draft202012Validator(
            schema, retriever=_nothing_outside, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError:
        return False
    return True


def _nothing_outside(uri: str) -> NoReturn:
    raise LookupError(uri)


@cache
def _form() -> "jsonschema_rs.Draft202012Validator":
    import jsonschema_rs  # noqa: PLC0415

    return jsonschema_rs.Draft202012Validator({"$ref": _DIALECT})
