"""Every condition in a pack or a catalog, with its place: what makes a rule fire, a gate close, a guardrail speak.

Where a rule applies, as conditions on the facts: what `applies_to` matches, and what a fact can be at all.

The facts that a run has, and that conditions and plans can read. There are no others.

Whether a condition comes to true or false. To anything else a run has no answer, and takes that for a denial.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal

from contextplane.authoring.subject import Deciding, Subject
from contextplane.model.context_pack import Guardrail
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.value import Value
from contextplane.policy.facts import MATCHED
from contextplane.policy.logic.expression import LogicFailed, LogicProblem, compiled, examined
from contextplane.policy.logic.solver import Answer, Tries, can_be, solve, turns_freely
from contextplane.policy.logic.strict import COMPARING, ORDERING, PER_ELEMENT, operation

__all__ = [
    "MATCHED",
    "PATHS",
    "AppliesTo",
    "Condition",
    "answers",
    "can_take_effect",
    "conditions",
    "conditions_at",
    "facts_read",
    "is_fact",
    "known_within",
    "unsound",
    "values_of",
]

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
    conditions = []
    for of, name, at, expression in _placed(subject):
        plain, problems, reads = examined(expression)
        free = not problems and turns_freely(expression)
        conditions.append(
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
    return tuple(conditions)


def unsound(subject: Deciding) -> frozenset[str]:
    """The places of conditions that cannot be evaluated: what follows from them cannot be asked."""
    return frozenset(condition.at for condition in subject.once(conditions) if condition.problems)


def facts_read(subject: Deciding) -> frozenset[str]:
    """Every fact that a condition of the pack reads."""
    return frozenset[str]().union(*[condition.reads for condition in subject.once(conditions)])


def conditions_at(subject: Deciding) -> Mapping[str, Condition]:
    """All of them by their places."""
    return {condition.at: condition for condition in subject.once(conditions)}


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
        for n, guardrail in enumerate(entries):
            if isinstance(guardrail, Guardrail) and guardrail.when is not None:
                found.append(("guardrail", guardrail.id, f"/policy_layer/guardrails/{kind}/{n}/when", guardrail.when))
    for at, gate in subject.gates.values():
        if gate.when is not None:
            found.append(("gate", gate.gate_id, f"{at}/when", gate.when))
    return found


_MATCHED_FACTS = frozenset(MATCHED.values())
"""All of which something can be known."""

AppliesTo = Mapping[str, str | tuple[str, ...]]
"""What a rule is matched by, and of each the values that it is for: one, or any of several."""


def can_take_effect(condition: Condition, applies_to: AppliesTo, tries: Tries, *, wanted: bool = True) -> Answer:
    """Whether a condition can be as wanted where it is asked at all."""
    if not condition.reads and b'"var"' not in canonical(condition.expression):
        return _constantly(condition.expression, wanted=wanted)
    within = () if _MATCHED_FACTS.isdisjoint(condition.reads) else tuple(known_within(applies_to, condition.reads))
    if not within:
        return "yes" if condition.free else can_be(condition.expression, wanted, tries)
    return solve([(condition.expression, wanted), *((known, True) for _, known in within)], tries).answer


def _constantly(condition: Json, *, wanted: bool) -> Answer:
    """The same of a condition that reads nothing: it comes to the same in every run."""
    try:
        return "yes" if compiled(condition).holds({}) is wanted else "no"
    except LogicFailed:
        return "no"


def known_within(applies_to: AppliesTo, reads: frozenset[str] = _MATCHED_FACTS) -> Iterator[tuple[str, Json]]:
    """What is known of these facts wherever it is asked, each with the fact that it is known of."""
    if "safety_mode" in reads:
        yield "safety_mode", {"in": [{"var": "safety_mode"}, list(APPROVAL_MODES)]}
    for key, named in applies_to.items():
        if key in MATCHED and MATCHED[key] in reads:
            yield MATCHED[key], {"in": [{"var": MATCHED[key]}, [*sorted(values_of(named))]]}


def values_of(named: str | tuple[str, ...]) -> frozenset[str]:
    return frozenset((named,) if isinstance(named, str) else named)


_FACT_ROOTS = frozenset({"request", "user", "agent", "tenant_id", "intent", "safety_mode", "run"})
"""What JSONLogic sees, and nothing else."""

_INPUT = ("context", "intent", "message", "channel", "locale", "attachments")
"""What a request holds."""

_WHOLE = (
    *("tenant_id.", "intent.", "safety_mode."),
    *("request.intent.", "request.message.", "request.channel.", "request.locale."),
)
"""Facts that are a text: nothing lies below them."""

_ROOTS = (*(f"request.{name}" for name in _INPUT), *sorted(_FACT_ROOTS - {"request"}))
PATHS = f"a path begins with one of: {', '.join(_ROOTS)}"


@lru_cache(1024)
def is_fact(path: str) -> bool:
    """Whether a run can have something there. The empty path is all of them."""
    root, *rest = path.split(".")
    if not path.isascii() or path.startswith(_WHOLE):
        return False
    return not path or (root in _FACT_ROOTS and (root != "request" or not rest or rest[0] in _INPUT))


_DECIDES = COMPARING | {"!", "!!", "in", "all", "none", "some"}
_MAY_DECIDE = frozenset({"var", "reduce"})


def answers(expression: Json) -> Answer:
    """By its form alone: always, never, or as the facts are."""
    operator, operands = operation(expression)
    if not operator:
        return "yes" if isinstance(expression, bool) else "no"
    if operator in _DECIDES:
        return "no" if _always_fails(operator, operands) else "yes"
    if operator in _MAY_DECIDE:
        return "unknown"
    if operator in {"and", "or"}:
        # Each of them may be what it comes to: the first that decides it, or the last.
        return _together([answers(operand) for operand in operands])
    if operator in {"if", "?:"}:
        return _together([answers(end) for end in _ends(operands)])
    return "no"


def _always_fails(operator: str, operands: list[Json]) -> bool:
    """True and false have no order, and only a list can be gone through."""
    if operator in ORDERING:
        return any(isinstance(operand, bool) for operand in operands[:2])
    return operator in PER_ELEMENT and any(isinstance(operand, str | bool | int | float) for operand in operands[:1])


def _ends(operands: list[Json]) -> list[Json]:
    """What an `if` may come to: every second part, and the last. Without a last one it may be nothing."""
    ends = operands[1::2]
    return [*ends, operands[-1] if len(operands) % 2 else None]


def _together(parts: list[Answer]) -> Answer:
    if all(part == "yes" for part in parts) and parts:
        return "yes"
    return "no" if all(part == "no" for part in parts) else "unknown"
