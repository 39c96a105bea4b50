"""Follows a JSON Schema beside a value, to find the properties that `x-redact` marks.

A mark holds wherever its schema may apply: in every alternative and behind every local reference. It is not asked which
alternative a value fits, because a value that fits none must not be shown either.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Self

from contextplane.model.json.pointer import pointer
from contextplane.policy.redaction.rules import REDACTIONS, UNNAMED
from contextplane.policy.regex_safety import pattern_matches, pattern_problem

__all__ = ["KEYWORD", "SchemaMarks", "find_marks"]

KEYWORD = "x-redact"
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("if", "then", "else")
_MOST_SCHEMAS = 512


def find_marks(schema: object) -> Iterator[tuple[str, object]]:
    """Yield the place of every `x-redact` in a schema, and what it says."""
    todo: list[tuple[str, object, bool]] = [("", schema, True)]
    while todo:
        at, part, is_schema = todo.pop()
        if isinstance(part, dict):
            if KEYWORD in part and is_schema:
                yield f"{at}/{KEYWORD}", part[KEYWORD]
            # The members of `properties` are schemas, and so is a property of that name.
            todo += [
                (at + pointer([name]), member, name != "properties" or not is_schema) for name, member in part.items()
            ]
        elif isinstance(part, list):
            todo += [(f"{at}/{n}", element, True) for n, element in enumerate(part)]


class SchemaMarks:
    """The schemas that may apply to one value, each with the document that its references are resolved in."""

    __slots__ = ("_schemas",)

    def __init__(self, schemas: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        self._schemas = tuple(_expand(schemas))

    @classmethod
    def of(cls, documents: Iterable[dict[str, Any]]) -> Self | None:
        """The marks of whole schemas; None where none of them marks anything."""
        marking = [document for document in documents if next(find_marks(document), None)]
        return cls((document, document) for document in marking) if marking else None

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The whole schemas that these marks are of."""
        return list({id(root): root for _, root in self._schemas}.values())

    @property
    def rule(self) -> str | None:
        """The rule that masks the value; `UNNAMED` for a plain mark, None without one.

        A mark that names no known rule masks as well: it is refused by lint, and says that something is private.
        """
        values = [schema[KEYWORD] for schema, _ in self._schemas if schema.get(KEYWORD, False) is not False]
        named = [value for value in values if isinstance(value, str) and value in REDACTIONS]
        return named[0] if named else UNNAMED if values else None

    def member(self, name: str) -> "SchemaMarks | None":
        """The marks of a member of the value; None where no schema speaks of it."""
        return self._descend((part, root) for schema, root in self._schemas for part in _members(schema, name))

    def element(self, n: int) -> "SchemaMarks | None":
        """The marks of an element of the value; None where no schema speaks of it."""
        return self._descend((part, root) for schema, root in self._schemas for part in _elements(schema, n))

    @staticmethod
    def _descend(parts: Iterable[tuple[object, dict[str, Any]]]) -> "SchemaMarks | None":
        schemas = [(part, root) for part, root in parts if isinstance(part, dict)]
        return SchemaMarks(schemas) if schemas else None


def _members(schema: dict[str, Any], name: str) -> Iterator[object]:
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    named = False
    if isinstance(properties, dict) and name in properties:
        named = True
        yield properties[name]
    for pattern, part in patterns.items() if isinstance(patterns, dict) else ():
        # A pattern that cannot be matched safely may match anything.
        if pattern_problem(pattern) is not None or pattern_matches(pattern, name):
            named = True
            yield part
    if not named:
        yield schema.get("additionalProperties")
        yield schema.get("unevaluatedProperties")


def _elements(schema: dict[str, Any], n: int) -> Iterator[object]:
    first = schema.get("prefixItems")
    if isinstance(first, list) and n < len(first):
        yield first[n]
    else:
        yield schema.get("items")
        yield schema.get("unevaluatedItems")
    yield schema.get("contains")


def _expand(
    schemas: Iterable[tuple[dict[str, Any], dict[str, Any]]],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the schemas and all that apply to the same value: alternatives and references, each once."""
    todo = list(schemas)
    seen: set[int] = set()
    while todo and len(seen) < _MOST_SCHEMAS:
        schema, root = todo.pop()
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema, root
        parts: list[object] = [schema.get(name) for name in _SINGLE]
        for name in _LISTS:
            alternatives = schema.get(name)
            parts += alternatives if isinstance(alternatives, list) else []
        dependent = schema.get("dependentSchemas")
        parts += dependent.values() if isinstance(dependent, dict) else []
        parts += [_resolve(schema.get(name), root) for name in ("$ref", "$dynamicRef")]
        todo += [(part, root) for part in parts if isinstance(part, dict)]


def _resolve(reference: object, root: dict[str, Any]) -> object:
    """The schema that a local reference names; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    part: object = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, list) and name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        else:
            part = part.get(name) if isinstance(part, dict) else None
    return part
