"""The bounds on arguments as a pack declares them, resolved by the facts of each request.

A bound may be the value of a fact. Where that fact is missing or has a wrong type, no value keeps the bound.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from contextplane.model.arguments import (
    ArgConstraint,
    BoundName,
    PlacedConstraint,
    ResolvedConstraint,
    placed_constraints,
)
from contextplane.model.json.canonical import Json
from contextplane.model.pack_layers import PolicyLayer, ToolingLayer
from contextplane.policy.decision import ArgumentBound, BoundFact

__all__ = ["DeclaredBound", "DeclaredBounds", "permission_references", "rule_references"]


class DeclaredBound:
    """A constraint on an argument: what no request can change of it, and the facts that it refers to."""

    __slots__ = ("_literals", "_origin", "argument", "at", "capability", "fixed", "references")

    def __init__(self, placed: PlacedConstraint, *, origin: str, at: str) -> None:
        self.argument, self.capability, self.at, self._origin = placed.argument, placed.capability, at, origin
        self.references = tuple(placed.constraint.references)
        referring = {name for name, _ in self.references}
        self._literals: dict[str, Any] = {
            name: value for name, value in asdict(placed.constraint).items() if name not in referring
        }
        self.fixed = None if self.references else self.resolve({})

    def resolve(self, values: Mapping[str, Json]) -> ArgumentBound:
        """The bound in one request. `values`: the facts by path; one that is missing is not there."""
        literals = dict(self._literals)
        facts: list[BoundFact] = []
        for name, reference in self.references:
            value = values.get(reference.path, reference.default)
            problem = _problem(name, value)
            facts.append(BoundFact(bound=name, path=reference.path, problem=problem))
            if not problem:
                literals[name] = value
        return ArgumentBound(
            argument=self.argument,
            constraint=ResolvedConstraint(**literals),
            origin=self._origin,
            at=self.at,
            capability=self.capability,
            facts=tuple(facts),
        )


def _problem(name: BoundName, value: Json) -> str:
    """Why a value is no bound of this name; empty where it is one."""
    if value is None:
        return "is missing"
    if name == "equals":
        return "" if isinstance(value, str | int | float) else "is no text, number, true or false"
    return "" if isinstance(value, int | float) and not isinstance(value, bool) else "is no number"


class DeclaredBounds:
    """Constraints that hold together. Where none refers to a fact, they are the same for every request."""

    __slots__ = ("_declared", "_fixed", "references")

    def __init__(self, bounds: Iterable[DeclaredBound]) -> None:
        self._declared = tuple(bounds)
        self.references = frozenset(reference.path for bound in self._declared for _, reference in bound.references)
        fixed = tuple(bound.fixed for bound in self._declared if bound.fixed is not None)
        self._fixed = fixed if len(fixed) == len(self._declared) else None

    def resolve(self, values: Mapping[str, Json]) -> tuple[ArgumentBound, ...]:
        """The bounds in one request. `values`: the facts by path; one that is missing is not there."""
        if self._fixed is not None:
            return self._fixed
        return tuple(bound.fixed or bound.resolve(values) for bound in self._declared)


def rule_references(layer: PolicyLayer) -> Iterator[str]:
    """The paths of the facts that constraints of rules refer to."""
    for bundle in layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            for effect in (rule.then, rule.otherwise):
                if effect is not None:
                    yield from _paths(placed.constraint for placed in placed_constraints(effect.arg_constraints))


def permission_references(layer: ToolingLayer) -> Iterator[str]:
    """The paths of the facts that constraints of permissions refer to."""
    for permission in layer.permissions:
        yield from _paths(permission.arg_constraints.values())


def _paths(constraints: Iterable[ArgConstraint]) -> Iterator[str]:
    return (reference.path for constraint in constraints for _, reference in constraint.references)
