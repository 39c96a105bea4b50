"""The facts that a caller must send: which of them a request lacks, or has as another type."""

from collections.abc import Iterator, Mapping
from typing import Literal, assert_never

from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import FactType, PolicyLayer, RequestFact
from contextplane.model.value import Value

__all__ = ["FactProblem", "has_type", "request_facts_by_intent", "request_problems"]


class FactProblem(Value, frozen=True):
    """A declared fact that a request lacks, or has as another type. `at`: its JSON Pointer in the request."""

    fact: RequestFact
    kind: Literal["missing", "wrong_type"]
    at: str

    @property
    def words(self) -> str:
        """What is wrong, what is expected, and what the fact is. The value itself is not repeated."""
        description = f": {self.fact.description}" if self.fact.description else ""
        if self.kind == "missing":
            return f"{self.fact.path} is missing ({self.fact.type}{description})"
        return f"{self.fact.path} is not of type {self.fact.type}{description and f' ({self.fact.description})'}"


def request_facts_by_intent(layer: PolicyLayer) -> dict[str, tuple[RequestFact, ...]]:
    """The declared facts of each intent. Of two lists for one intent, both count."""
    by_intent: dict[str, tuple[RequestFact, ...]] = {}
    for declared in layer.request_facts or ():
        by_intent[declared.intent] = (*by_intent.get(declared.intent, ()), *declared.facts)
    return by_intent


def request_problems(facts: tuple[RequestFact, ...], request: Mapping[str, Json]) -> Iterator[FactProblem]:
    """Every declared fact that is wrong in a request, in the order of the declaration.

    Null is missing, and so is an empty text: it would answer nothing.
    """
    for fact in facts:
        steps = fact.path.split(".")[1:]
        value: Json = dict(request)
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None or value == "":
            if fact.required:
                yield FactProblem(fact=fact, kind="missing", at=pointer(steps))
        elif not has_type(value, fact.type):
            yield FactProblem(fact=fact, kind="wrong_type", at=pointer(steps))


def has_type(value: Json, type_name: FactType) -> bool:
    """Whether a value is of a type. True is no number, and 1.0 is an integer, because it equals 1."""
    match type_name:
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "integer":
            return has_type(value, "number") and value == int(value)  # type: ignore[arg-type]
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, dict)
        case unreachable:
            assert_never(unreachable)
