"""What the runs of a pack may do, request by request, and what a changed pack lets some request do besides.

The engines of the package decide here, not its lint and its diff: those are what the mutations test. Requests are the
cases of the pack's table, each with the facts of the changed condition at, beside and beyond its constants, left out,
and of other kinds.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.context_pack import ContextPack
from contextplane.model.terms import APPROVAL_MODES
from contextplane.policy.approval_gates import active_gates
from contextplane.policy.bounds import permission_references
from contextplane.policy.decision import ArgumentBound
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.facts import Facts
from contextplane.policy.request_facts import request_facts_by_intent, request_problems
from contextplane.policy.tool_surface import ToolProgram

__all__ = ["Powers", "facts_around", "gains"]

Json = Any
LEFT_OUT = object()
PAIRED = 4
"""In how many requests two facts are changed at once."""

ODD: tuple[Json, ...] = (LEFT_OUT, "", "intern", "42", 0, 7, True, False, [], ["x"])


class Range(NamedTuple):
    """What all bounds of one argument leave together. `values`: the closed set; None if there is none.

    `impossible`: a bound by a fact that no call keeps.
    """

    low: float = -math.inf
    high: float = math.inf
    values: frozenset[str] | None = None
    patterns: frozenset[str] = frozenset()
    required: bool = False
    impossible: bool = False

    def within(self, bound: ArgumentBound) -> "Range":
        """The part of this range that keeps one more bound."""
        constraint = bound.constraint
        values = self.values
        for allowed in (constraint.enum, None if constraint.equals is None else (constraint.equals,)):
            if allowed is not None:
                named = frozenset(map(repr, allowed))
                values = named if values is None else values & named
        return Range(
            low=max(self.low, -math.inf if constraint.min is None else constraint.min),
            high=min(self.high, math.inf if constraint.max is None else constraint.max),
            values=values,
            patterns=self.patterns | (frozenset() if constraint.pattern is None else {constraint.pattern}),
            required=self.required or constraint.required,
            impossible=self.impossible or bool(bound.problem),
        )

    def exceeds(self, other: "Range") -> bool:
        """Whether some value is in this range and not in the other."""
        if self.impossible or (self.values is not None and not self.values and self.required):
            return False
        listed = other.values is None or (self.values is not None and self.values <= other.values)
        return (
            other.impossible
            or self.low < other.low
            or self.high > other.high
            or not listed
            or not other.patterns <= self.patterns
            or (other.required and not self.required)
        )


ANYTHING = Range()


class Power(NamedTuple):
    """What one request may do. `tools`: each with its mode, its gates, and the bounds that no approval lifts.

    `attestable`: the required evidence that the request attests itself.
    """

    allowed: bool
    tools: dict[str, tuple[int, frozenset[str], dict[str, "Range"]]]
    requires: frozenset[str]
    attestable: frozenset[str]
    triggered: frozenset[str]

    def exceeds(self, other: "Power") -> bool:
        """Whether this request may do more than the other."""
        if self.allowed and not other.allowed:
            return True
        for tool, (mode, gates, bounds) in self.tools.items():
            if tool not in other.tools:
                return True
            other_mode, other_gates, other_bounds = other.tools[tool]
            if mode < other_mode or not other_gates <= gates:
                return True
            if any(
                name not in bounds or bounds[name].exceeds(other_range) for name, other_range in other_bounds.items()
            ):
                return True
        attests_more = not self.attestable <= other.attestable | (self.requires - other.requires)
        requires_less = not other.requires <= self.requires
        return not other.triggered <= self.triggered or (self.allowed and (requires_less or attests_more))


NOTHING = Power(allowed=False, tools={}, requires=frozenset(), attestable=frozenset(), triggered=frozenset())


class Powers:
    """A pack that is ready to decide."""

    def __init__(self, value: Json) -> None:
        pack = msgspec.convert(value, type=ContextPack)
        maxima = {spec.decision_key: spec.approval_mode for spec in pack.decision_layer.decision_specs}
        references = frozenset(permission_references(pack.tooling_layer))
        self.policy = PolicyProgram.of(pack.policy_layer, maxima=maxima, references=references)
        self.tools = ToolProgram.of(pack.tooling_layer, self.policy)
        self.view = PackView(pack, ontologies=())
        self.declared = request_facts_by_intent(pack.policy_layer)

    def of(self, facts: Facts) -> Power | None:
        """What a request may do; None if it is refused before policy."""
        if any(request_problems(self.declared.get(facts.intent, ()), facts.data["request"])):  # type: ignore[arg-type]
            return None
        decision = self.policy.decide(facts)
        intent = self.view.intent(facts.intent)
        surface = self.tools.surface(decision, facts.safety_mode, intent.reach)
        active = active_gates(self.policy, decision, surface, facts).active
        tools = {}
        for tool in surface.tools:
            gates = frozenset(gate.gate_id for gate in active if tool.capability_id in gate.capabilities)
            bounds: dict[str, Range] = {}
            for bound in tool.bounds:
                if not (gates and bound.constraint.unless_approved):
                    bounds[bound.argument] = bounds.get(bound.argument, ANYTHING).within(bound)
            tools[tool.capability_id] = (APPROVAL_MODES.index(tool.effective_mode), gates, bounds)
        requires = frozenset({*decision.requires, *intent.required_evidence})
        return Power(
            allowed=decision.allowed,
            tools=tools,
            requires=requires,
            attestable=requires - self.view.evidence_producers.names,
            triggered=frozenset(guardrail.id for guardrail in decision.guardrails.triggered),
        )


def gains(before: Powers, after: Powers, requests: Iterable[Facts]) -> bool:
    """Whether some request may do more in the pack after than in the pack before."""
    for facts in requests:
        power = after.of(facts)
        if power is not None and power.exceeds(before.of(facts) or NOTHING):
            return True
    return False


def facts_around(cases: Sequence[Facts], conditions: Sequence[Json]) -> Iterator[Facts]:
    """Yield the requests, and each with one or two of the facts that the conditions read at another value."""
    constants = [*_constants(conditions)]
    paths = sorted(set(_paths(conditions)))
    numbers = {
        near for number in constants if isinstance(number, int | float) for near in (number - 1, number, number + 1)
    }
    values = [*ODD, *sorted(numbers), *sorted({text for text in constants if isinstance(text, str)}), [*constants][:1]]
    yield from cases
    for facts in cases:
        for path in paths:
            for value in values:
                yield from _changed(facts, [(path, value)])
    for facts in cases[:PAIRED]:
        for first, second in itertools.combinations(paths, 2):
            for pair in itertools.product((LEFT_OUT, *constants[:3]), repeat=2):
                yield from _changed(facts, [(first, pair[0]), (second, pair[1])])


def _changed(facts: Facts, changes: Sequence[tuple[str, Json]]) -> Iterator[Facts]:
    data: Json = facts.data
    for path, value in changes:
        data = _put(data, path.split("."), value)
    if not _is_clock(data["run"]):
        return
    try:
        yield Facts.of(**data)
    except ContextPlaneError:
        return


def _put(part: Json, steps: list[str], value: Json) -> Json:
    copied = dict(part)
    if len(steps) > 1:
        copied[steps[0]] = _put(copied.get(steps[0], {}), steps[1:], value)
    elif value is LEFT_OUT:
        copied.pop(steps[0], None)
    else:
        copied[steps[0]] = value
    return copied


def _is_clock(run: Json) -> bool:
    """Whether the facts of the clock are such as a run has."""
    return (
        (run.get("weekday") is None or (type(run["weekday"]) is int and 1 <= run["weekday"] <= 7))
        and (run.get("hour") is None or (type(run["hour"]) is int and 0 <= run["hour"] <= 23))
        and (run.get("date") is None or (isinstance(run["date"], str) and len(run["date"]) == 10))
    )


def _paths(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        named = part.get("var")
        path = named[0] if isinstance(named, list) and named else named
        if isinstance(path, str) and "." in path and set(part) == {"var"}:
            yield path
        yield from part.get("missing", ())
    for below in part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ():
        yield from _paths(below)


def _constants(part: Json) -> Iterator[Json]:
    if isinstance(part, dict):
        for operator, below in part.items():
            if operator == "var":
                yield from below[1:] if isinstance(below, list) else ()
            elif operator != "missing":
                yield from _constants(below)
    elif isinstance(part, list | tuple):
        for below in part:
            yield from _constants(below)
    else:
        yield part
