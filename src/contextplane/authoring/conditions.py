"""Every condition in a pack or a catalog, with its place: what makes a rule fire, a gate close, a guardrail speak."""

from collections.abc import Mapping
from typing import Literal

from contextplane.authoring.deciding import Deciding
from contextplane.authoring.subject import Subject
from contextplane.model.canonical import Json
from contextplane.model.context_pack.policy_layer import Guardrail
from contextplane.model.value import Value
from contextplane.policy.logic import LogicProblem, examined
from contextplane.policy.solving import turns_freely

__all__ = ["Condition", "conditions", "conditions_at", "facts_read", "unsound"]

Kind = Literal["rule", "gate", "guardrail", "decision"]


class Condition(Value, frozen=True):
    """An expression, what it is the condition of, and its JSON Pointer.

    A `plain` one compares facts with constants, and does nothing else. A `free` one can be true and can be false: its
    form tells that already.
    """

    of: Kind
    name: str
    at: str
    expression: Json
    problems: tuple[LogicProblem, ...]
    reads: frozenset[str]
    plain: bool
    free: bool


def conditions(subject: Deciding) -> tuple[Condition, ...]:
    """All of them, in the order of the document."""
    found = []
    for of, name, at, expression in _placed(subject):
        plain, problems, reads = examined(expression)
        free = not problems and turns_freely(expression)
        found.append(
            Condition(
                of=of,
                name=name,
                at=at,
                expression=expression,
                problems=problems,
                reads=reads,
                plain=plain,
                free=free,
            )
        )
    return tuple(found)


def unsound(subject: Deciding) -> frozenset[str]:
    """The places of conditions that cannot be evaluated: what follows from them cannot be asked."""
    return frozenset(one.at for one in subject.once(conditions) if one.problems)


def facts_read(subject: Deciding) -> frozenset[str]:
    """Every fact that a condition of the pack reads."""
    return frozenset[str]().union(*[one.reads for one in subject.once(conditions)])


def conditions_at(subject: Deciding) -> Mapping[str, Condition]:
    """All of them by their places."""
    return {one.at: one for one in subject.once(conditions)}


def _placed(subject: Deciding) -> list[tuple[Kind, str, str, Json]]:
    found = _of_policy(subject) if isinstance(subject, Subject) else []
    for at, spec in subject.decisions.values():
        if spec.eligibility_rules is not None:
            found.append(("decision", spec.decision_key, f"{at}/eligibility_rules", spec.eligibility_rules))
    return found


def _of_policy(subject: Subject) -> list[tuple[Kind, str, str, Json]]:
    found: list[tuple[Kind, str, str, Json]] = [
        ("rule", placed.rule.rule_id, f"{placed.at}/if", placed.rule.condition) for placed in subject.rules
    ]
    guardrails = subject.pack.policy_layer.guardrails
    for kind, entries in (("must_refuse", guardrails.must_refuse), ("must_escalate", guardrails.must_escalate)):
        for n, one in enumerate(entries):
            if isinstance(one, Guardrail) and one.when is not None:
                found.append(("guardrail", one.id, f"/policy_layer/guardrails/{kind}/{n}/when", one.when))
    for at, gate in subject.gates.values():
        if gate.when is not None:
            found.append(("gate", gate.gate_id, f"{at}/when", gate.when))
    return found
