"""Approval gates: which of them a run must pass, which not, and why."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from contextplane.model.pack_layers import ApprovalGate
from contextplane.model.value import Value
from contextplane.policy.clock import describe_missing
from contextplane.policy.decision import PolicyDecision
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.facts import Facts
from contextplane.policy.logic.condition import CompiledCondition, ConditionFailure
from contextplane.policy.tool_surface import Surface

__all__ = [
    "ActiveGate",
    "GateAnswer",
    "GateVerdict",
    "InactiveGate",
    "active_gates",
    "choose_gates",
    "gate_answers",
]


class ActiveGate(Value, frozen=True):
    """A gate that must be passed. `because` names the rules and tools that require it.

    `capabilities` are the surfaced ones whose calls wait for it. `undecided`: why its condition could not be evaluated,
    when only that keeps it active.
    """

    gate: ApprovalGate
    because: tuple[str, ...]
    capabilities: tuple[str, ...] = ()
    undecided: str | None = None

    @property
    def gate_id(self) -> str:
        return self.gate.gate_id


class InactiveGate(Value, frozen=True):
    gate_id: str
    why: str


class GateVerdict(Value, frozen=True):
    """Every gate of the pack is in one of the two, in the order of the document."""

    active: tuple[ActiveGate, ...]
    inactive: tuple[InactiveGate, ...]


class GateAnswer(NamedTuple):
    """Whether the condition of a gate holds or must be assumed to hold; `undecided` is then the reason."""

    holds: bool
    undecided: str | None = None


_HOLDS, _NOT_ASKED = GateAnswer(holds=True), GateAnswer(holds=False)


def active_gates(policy: PolicyProgram, decision: PolicyDecision, surface: Surface, facts: Facts) -> GateVerdict:
    """The active gates: required by a rule in effect, or named by a surfaced tool while `when` holds.

    Without `when` it always holds. When the condition fails, or depends on a missing fact, the gate is active: asking
    once too often costs a person a moment. The calls of the tools that name a gate wait for it; if a rule requires it,
    every call that can change something does.
    """
    return choose_gates(policy, decision, surface, gate_answers(policy, surface, facts))


def gate_answers(policy: PolicyProgram, surface: Surface, facts: Facts) -> tuple[GateAnswer, ...]:
    """The answer of the condition of each gate, in the order of the document.

    Facts decide nothing else about gates. A gate that no surfaced tool names is not asked.
    """
    named = surface.gate_ids
    return tuple(
        [_answer(policy.gate_conditions.get(name), facts) if name in named else _NOT_ASKED for name in policy.gates]
    )


def choose_gates(
    policy: PolicyProgram, decision: PolicyDecision, surface: Surface, answers: Iterable[GateAnswer]
) -> GateVerdict:
    """The active gates where their conditions have these answers."""
    active: list[ActiveGate] = []
    inactive: list[InactiveGate] = []
    asking = _gate_requesters(decision, surface)
    for (name, gate), (holds, undecided) in zip(policy.gates.items(), answers, strict=True):
        rules, tools = asking.get(name, ((), ()))
        if not rules and not tools:
            inactive.append(InactiveGate(gate_id=name, why="no rule in effect and no surfaced tool asks for it"))
            continue
        if rules or holds:
            because = (*rules, *(tools if holds else ()))
            waiting = tuple(
                tool.capability_id
                for tool in surface.tools
                if name in tool.gate_ids or (rules and tool.declared_mode != "read_only")
            )
            active.append(
                ActiveGate(gate=gate, because=because, capabilities=waiting, undecided=None if rules else undecided)
            )
        else:
            inactive.append(InactiveGate(gate_id=name, why="its when does not hold"))
    return GateVerdict(active=tuple(active), inactive=tuple(inactive))


def _gate_requesters(decision: PolicyDecision, surface: Surface) -> Mapping[str, tuple[list[str], list[str]]]:
    """For each requested gate, the rules and the tools that request it."""
    asking: dict[str, tuple[list[str], list[str]]] = {}
    for effect in decision.effects if decision.requires_approval_gates else ():
        for name in effect.effect.gate_ids:
            rules, _ = asking.setdefault(name, ([], []))
            # Both branches of a rule that is undecided may ask for it.
            rules += [] if f"rule:{effect.rule_id}" in rules else [f"rule:{effect.rule_id}"]
    for tool in surface.tools:
        for name in tool.gate_ids:
            asking.setdefault(name, ([], []))[1].append(f"tool:{tool.capability_id}")
    return asking


def _answer(condition: CompiledCondition | None, facts: Facts) -> GateAnswer:
    if condition is None:
        return _HOLDS
    answer = condition.judge(facts)
    if isinstance(answer, ConditionFailure):
        return GateAnswer(
            holds=True,
            undecided=describe_missing(answer.missing) if answer.missing else f"its when {answer.why}",
        )
    missing = [] if answer else condition.missing_facts(facts)
    return GateAnswer(holds=answer or bool(missing), undecided=describe_missing(missing) if missing else None)
