"""The JSON Schemas that a pack holds for its tools: whether the Tool Gateway could check a call by them."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from contextplane.model.pointer import pointer
from contextplane.policy.patterns import pattern_problem

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["refuses_objects", "schema_problems"]

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
    return "/enum" if isinstance(values, list) and not any(isinstance(one, dict) for one in values) else None


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
