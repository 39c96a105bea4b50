"""Constraints on the arguments of a call: those of a permission, and those of a branch of a rule.

A permission constrains the arguments of its own capability. A rule constrains an argument of every tool, or under the
id of a capability the arguments of that one. Docstrings of documents are descriptions in the published schema.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from contextplane.model.terms import Duration
from contextplane.model.value import Document

__all__ = [
    "CAPABILITY_ID",
    "ArgConstraint",
    "ArgConstraints",
    "BoundName",
    "CallLimit",
    "CapabilityId",
    "FactReference",
    "PlacedConstraint",
    "ResolvedConstraint",
    "RuleConstraints",
    "Scalar",
    "parse_rule_constraints",
    "placed_constraints",
]

_ARGUMENT = r"^[A-Za-z_][A-Za-z0-9_.]{0,127}\Z"
_CAPABILITY_ID = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\.[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z"
CAPABILITY_ID = re.compile(_CAPABILITY_ID)

CapabilityId = Annotated[str, Meta(pattern=_CAPABILITY_ID, description="adapter_id.capability")]
ArgumentName = Annotated[str, Meta(pattern=_ARGUMENT)]
Scalar = str | int | float | bool | None
BoundName = Literal["equals", "min", "max"]
"""The bounds that may be the value of a fact."""


_FACT_PATH = r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,255}\Z"
_FactPath = Annotated[
    str, Meta(description="The path of a fact, such as user.user_id.", extra_json_schema={"pattern": _FACT_PATH})
]
"""`FactReference` checks the pattern: beside a list it is no constraint of msgspec, as in `model.terms.LoneName`."""
_PathAndDefault = Annotated[
    tuple[str | int | float | bool, ...],
    Meta(
        min_length=2,
        max_length=2,
        description="The path of a fact, and what holds where it is missing.",
        extra_json_schema={"prefixItems": [{"type": "string", "pattern": _FACT_PATH}]},
    ),
]
"""A tuple of two types beside a text is one that msgspec decodes wrongly: `FactReference` checks the first part."""


class FactReference(Document, frozen=True):
    """The value of a fact, as conditions read it: `{"var": path}`, or `{"var": [path, default]}`.

    `var`: The path of the fact, or a list of the path and a default.
    """

    var: _FactPath | _PathAndDefault

    def __post_init__(self) -> None:
        path = self.var if isinstance(self.var, str) else self.var[0]
        if not isinstance(path, str) or not re.search(_FACT_PATH, path):
            raise ValueError("var names no fact")

    @property
    def path(self) -> str:
        return str(self.var if isinstance(self.var, str) else self.var[0])

    @property
    def default(self) -> Scalar:
        """What holds where the fact is missing; None without a default."""
        return None if isinstance(self.var, str) else self.var[1]


_Enum = Annotated[tuple[Scalar, ...], Meta(min_length=1)] | None
_Pattern = Annotated[str, Meta(min_length=1, max_length=512)] | None


class ArgConstraint(Document, frozen=True, omit_defaults=True):
    """What one argument must be. `unless_approved`: an approval lifts it.

    `equals`, `min` and `max` are values, or those that a fact has in the request.

    `min`: The smallest number that is allowed.
    `max`: The largest number that is allowed.
    `enum`: The only values that are allowed.
    `equals`: The only value that is allowed.
    `required`: Whether a call without this argument is refused.
    `pattern`: A regular expression that the whole text must match.
    `unless_approved`: Whether an approval lifts the constraint.
    """

    min: int | float | FactReference | None = None
    max: int | float | FactReference | None = None
    enum: _Enum = None
    equals: str | int | float | bool | FactReference | None = None
    required: bool = False
    pattern: _Pattern = None
    unless_approved: bool = False

    @property
    def references(self) -> tuple[tuple[BoundName, FactReference], ...]:
        """The facts that it refers to, each after the bound that it is."""
        if FactReference not in {type(self.equals), type(self.min), type(self.max)}:
            return ()
        bounds: tuple[tuple[BoundName, object], ...] = (("equals", self.equals), ("min", self.min), ("max", self.max))
        return tuple((name, bound) for name, bound in bounds if isinstance(bound, FactReference))


class ResolvedConstraint(Document, frozen=True, omit_defaults=True):
    """What one argument must be in one request: every fact is replaced by its value.

    `min`: The smallest number that is allowed.
    `max`: The largest number that is allowed.
    `enum`: The only values that are allowed.
    `equals`: The only value that is allowed.
    `required`: Whether a call without this argument is refused.
    `pattern`: A regular expression that the whole text must match.
    `unless_approved`: Whether an approval lifts the constraint.
    """

    min: int | float | None = None
    max: int | float | None = None
    enum: _Enum = None
    equals: Scalar = None
    required: bool = False
    pattern: _Pattern = None
    unless_approved: bool = False


ArgConstraints = dict[ArgumentName, ArgConstraint]

LimitScope = Literal["run", "user", "tenant"]


class CallLimit(Document, frozen=True, omit_defaults=True):
    """How often a tool may be called, or how much an argument may be in all, per run, user or tenant.

    It has `max_calls`, or `sum_of` and `max`. `period` is the time that it counts over: none for a run.

    `per`: What is counted together: the calls of a run, a user or a tenant.
    `period`: The time that it counts over.
    `max_calls`: The largest number of calls in a period.
    `sum_of`: The argument whose values are added up.
    `max`: The largest sum of that argument in a period.
    """

    per: LimitScope
    period: Duration | None = None
    max_calls: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    sum_of: ArgumentName | None = None
    max: Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)] | None = None

    def __post_init__(self) -> None:
        if (self.max_calls is None) is (self.sum_of is None) or (self.sum_of is None) is not (self.max is None):
            raise ValueError("a limit has max_calls, or sum_of and max")
        if (self.per == "run") is not (self.period is None):
            raise ValueError("a limit per user or tenant has a period, and one per run has none")


_CONSTRAINT: dict[str, Any] = {"$ref": "#/$defs/ArgConstraint"}
_SCOPED: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"pattern": _ARGUMENT},
    "additionalProperties": _CONSTRAINT,
}
_RULE_CONSTRAINTS: dict[str, Any] = {
    "description": "Constraints by the argument of any tool, or by adapter_id.capability and then by its arguments.",
    "propertyNames": {"pattern": rf"{_ARGUMENT}|{_CAPABILITY_ID}"},
    # A name without a dot is no capability, and one with a colon, a dash or a digit in front is no argument.
    "patternProperties": {r"^[^.]*\Z": _CONSTRAINT, r"^[0-9]|[:-]": _SCOPED},
    "additionalProperties": {"anyOf": [_CONSTRAINT, _SCOPED]},
}

if TYPE_CHECKING:
    RuleConstraints = dict[str, ArgConstraint | dict[str, ArgConstraint]]
else:
    # A union of an object and a struct is none that msgspec decodes: `parse_rule_constraints` does.
    RuleConstraints = Annotated[dict[str, Any], Meta(extra_json_schema=_RULE_CONSTRAINTS)]


def parse_rule_constraints(
    constraints: Mapping[str, Any],
) -> dict[str, ArgConstraint | dict[str, ArgConstraint]]:
    """Parse the constraints of a branch, or raise a `ValueError` that says what is wrong.

    An entry is of one capability when its members are objects, and of an argument when none is, apart from facts
    (`{"var": ...}`). An empty one is of an argument.
    """
    return {name: _parse_entry(name, value) for name, value in constraints.items()}


def _parse_entry(name: str, value: object) -> ArgConstraint | dict[str, ArgConstraint]:
    if isinstance(value, ArgConstraint):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"the constraint of {ascii(name)[:80]} is no object")  # noqa: TRY004  as msgspec wants it
    are_objects = {_is_constraint(member) for member in value.values()}
    if are_objects == {True, False}:
        raise ValueError(f"{ascii(name)[:80]} mixes bounds of an argument with arguments of a capability")
    is_scope = are_objects == {True}
    if not re.search(_CAPABILITY_ID if is_scope else _ARGUMENT, name):
        raise ValueError(f"{ascii(name)[:80]} is no {'adapter_id.capability' if is_scope else 'name of an argument'}")
    try:
        if is_scope:
            return msgspec.convert(msgspec.to_builtins(value), ArgConstraints)
        return msgspec.convert(value, ArgConstraint)
    except msgspec.ValidationError as error:
        raise ValueError(f"{ascii(name)[:80]}: {str(error).partition(' - at ')[0]}") from None


def _is_constraint(member: object) -> bool:
    return isinstance(member, ArgConstraint) or (isinstance(member, dict) and member.keys() != {"var"})


class PlacedConstraint(NamedTuple):
    """A constraint of an argument, and its place from where `arg_constraints` stands.

    `capability`: the one that it is scoped to; None for all that its owner constrains.
    """

    capability: str | None
    argument: str
    constraint: ArgConstraint
    at: str


def placed_constraints(
    constraints: Mapping[str, ArgConstraint | dict[str, ArgConstraint]] | Mapping[str, ArgConstraint],
) -> Iterator[PlacedConstraint]:
    """Yield each constraint, sorted by name."""
    for name, entry in sorted(constraints.items()):
        at = f"/arg_constraints/{name}"
        if isinstance(entry, ArgConstraint):
            yield PlacedConstraint(None, name, entry, at)
        else:
            for argument, constraint in sorted(entry.items()):
                yield PlacedConstraint(name, argument, constraint, f"{at}/{argument}")
