"""Policy: every condition can be evaluated, can come about, and says one thing."""

from collections.abc import Iterator

from contextplane.authoring.conditions import Condition, conditions, reads_at, unsound
from contextplane.authoring.contradictions import Uncompared, contradictions
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.nearest import nearest
from contextplane.authoring.scope import MATCHED, can_take_effect
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack.policy_layer import Effect
from contextplane.model.pointer import pointer
from contextplane.policy.solving import Tries

__all__ = ["LAWS"]

_FACTS = frozenset({"request", "user", "agent", "tenant_id", "intent", "safety_mode", "run"})
"""What JSONLogic sees, and nothing else."""

_INPUT = ("context", "intent", "message", "channel", "locale", "attachments")
"""What a request holds."""

_WHOLE = frozenset(
    {"tenant_id", "intent", "safety_mode", "request.intent", "request.message", "request.channel", "request.locale"}
)
"""Facts that are a text: nothing lies below them."""

_TRIES = 60_000
"""How much one law may try in one pack, however many conditions there are."""


def conditions_can_be_evaluated(subject: Subject) -> Iterator[Broken]:
    """Every condition is JSONLogic of known operators, bounded in size and depth."""
    for one in subject.once(conditions):
        for problem in one.problems:
            yield Broken(
                at=one.at + problem.at,
                cause=f"the condition of {one.name} {problem.message}",
                cure="use the operators of JSONLogic, and split what is too large",
            )


def conditions_read_known_facts(subject: Subject) -> Iterator[Broken]:
    """Every fact that a condition reads is one that a run has: anything else is always missing."""
    for one in subject.once(conditions):
        for path in sorted(path for path in one.reads if not _is_fact(path)):
            yield Broken(
                at=one.at,
                cause=f"the condition of {one.name} reads {path!a}, which no run has",
                cure=f"a path begins with one of: {', '.join(f'request.{name}' for name in _INPUT)}, "
                f"{', '.join(sorted(_FACTS - {'request'}))}",
            )


def _is_fact(path: str) -> bool:
    root, *rest = path.split(".")
    if not path.isascii() or any(path.startswith(f"{one}.") for one in _WHOLE):
        return False
    return not path or (root in _FACTS and (root != "request" or not rest or rest[0] in _INPUT))


def rules_apply_to_known_things(subject: Subject) -> Iterator[Broken]:
    """Every key of an applies_to is one that a run is matched by, and names at least one value."""
    for placed in subject.rules:
        for key, named in placed.rule.applies_to.items():
            at = f"{placed.at}/applies_to{pointer([key])}"
            if key not in MATCHED:
                cause = f"{placed.rule.rule_id} applies by {ascii(key)[:60]}, which no run is matched by"
                yield Broken(at=at, cause=cause, cure=nearest(key[:60], MATCHED, "take it out"))
            elif not named:
                cause = f"{placed.rule.rule_id} never applies: it names no {key}"
                yield Broken(at=at, cause=cause, cure=f"name one, or leave {key} out to mean every one")


def critical_rules_are_reachable(subject: Subject) -> Iterator[Broken]:
    """Every branch of a rule that denies, prohibits or asks for something can take effect where the rule applies."""
    tries = Tries(_TRIES)
    for placed in subject.effects:
        if not _restricts(placed.effect) or f"{placed.of.at}/if" in subject.once(unsound):
            continue
        rule, reads = placed.of.rule, subject.once(reads_at)[f"{placed.of.at}/if"]
        answer = can_take_effect(rule.condition, rule.applies_to, reads=reads, tries=tries, wanted=placed.branch)
        name = f"{placed.of.rule.rule_id}.{'then' if placed.branch else 'else'}"
        if answer == "no":
            yield Broken(
                at=placed.at,
                cause=f"{name} can never take effect: where it applies, its condition is "
                f"{'never' if placed.branch else 'always'} true",
                cure="mend the condition, or take the branch out",
            )
        elif answer == "unknown":
            yield _cannot_tell(placed.at, f"{name} can ever take effect")


def gates_can_become_active(subject: Subject) -> Iterator[Broken]:
    """The condition of every approval gate can hold."""
    tries = Tries(_TRIES)
    for one in _sound(subject, "gate"):
        yield from _can_hold(one, "so nobody would ever be asked", tries)


def guardrails_can_be_triggered(subject: Subject) -> Iterator[Broken]:
    """The condition of every guardrail can hold."""
    tries = Tries(_TRIES)
    for one in _sound(subject, "guardrail"):
        yield from _can_hold(one, "so it never speaks", tries)


def decisions_can_be_eligible(subject: Subject) -> Iterator[Broken]:
    """The eligibility rules of every decision can hold."""
    tries = Tries(_TRIES)
    for one in _sound(subject, "decision"):
        yield from _can_hold(one, "so it can never be made", tries)


def _sound(subject: Subject, kind: str) -> Iterator[Condition]:
    return (one for one in subject.once(conditions) if one.of == kind and not one.problems)


def _can_hold(one: Condition, consequence: str, tries: Tries) -> Iterator[Broken]:
    answer = can_take_effect(one.expression, {}, reads=one.reads, tries=tries)
    if answer == "no":
        cause = f"the condition of {one.name} is never true, {consequence}"
        yield Broken(at=one.at, cause=cause, cure="mend the condition")
    elif answer == "unknown":
        yield _cannot_tell(one.at, f"the condition of {one.name} can ever hold")


def _cannot_tell(at: str, what: str) -> Broken:
    return Broken(
        at=at,
        cause=f"cannot tell whether {what}: it computes with facts, compares them, or has too many cases",
        cure="compare facts with constants only, or cover it with a golden case",
        unknown=True,
    )


def rules_do_not_contradict(subject: Subject) -> Iterator[Broken]:
    """No rule allows only where another rule of the same priority denies."""
    for found in contradictions(subject):
        if isinstance(found, Uncompared):
            yield Broken(
                at=found.at,
                cause=f"cannot tell whether rules contradict: {found.pairs} pairs on the same facts were not compared",
                cure="split the intent, or merge rules",
                unknown=True,
            )
        else:
            denies = found.denies.of.rule.rule_id
            yield Broken(
                at=found.allows.at,
                cause=f"{found.allows.of.rule.rule_id} allows only where {denies} denies, so it never takes effect",
                cure=f"narrow one of the two, or give the bundle of {denies} another priority",
            )


def every_gate_is_used(subject: Subject) -> Iterator[Broken]:
    """Every approval gate is named by a rule or by a permission."""
    used = {placed.effect.requires_approval_gate for placed in subject.effects}
    used |= {permission.requires_approval_gate for _, permission in subject.permissions}
    for name, (at, _) in subject.gates.items():
        if name not in used:
            yield Broken(at=at, cause=f"nothing names the approval gate {name}", cure="name it, or take it out")


def every_intent_ends_in_a_decision(subject: Subject) -> Iterator[Broken]:
    """Every intent that rules apply to has a rule or a task template that is bound to a decision."""
    bound = {intent for placed in subject.rules if placed.rule.decision_binding for intent in placed.intents}
    bound |= {template.intent for template in subject.pack.task_layer.task_templates}
    for placed in subject.rules:
        for intent in placed.intents:
            if intent not in bound:
                bound.add(intent)
                yield Broken(
                    at=placed.at,
                    cause=f"no rule of the intent {intent!r} is bound to a decision: it would end in free text",
                    cure="set decision_binding to a decision of decision_layer",
                )


def rules_say_which_intent(subject: Subject) -> Iterator[Broken]:
    """Every rule says which intent it applies to."""
    for placed in subject.rules:
        if not placed.intents:
            yield Broken(
                at=f"{placed.at}/applies_to",
                cause=f"{placed.rule.rule_id} applies to every intent",
                cure="name the intents that it is meant for",
            )


def rules_have_a_rationale(subject: Subject) -> Iterator[Broken]:
    """Every rule says why it is there."""
    for placed in subject.rules:
        if placed.rule.rationale is None:
            yield Broken(at=placed.at, cause=f"{placed.rule.rule_id} has no rationale", cure="say why it is there")


def _restricts(effect: Effect) -> bool:
    held = (effect.requires, effect.prohibits, effect.requires_approval_gate, effect.approval_mode)
    return effect.allow is False or any(held) or bool(effect.arg_constraints)


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="policy", code="condition_invalid", check=conditions_can_be_evaluated),
    Law(gate="policy", code="fact_unknown", check=conditions_read_known_facts),
    Law(gate="policy", code="rule_scope_unknown", check=rules_apply_to_known_things),
    Law(gate="policy", code="rule_unreachable", check=critical_rules_are_reachable),
    Law(gate="policy", code="gate_unsatisfiable", check=gates_can_become_active),
    Law(gate="policy", code="guardrail_unsatisfiable", check=guardrails_can_be_triggered),
    Law(gate="policy", code="eligibility_unsatisfiable", check=decisions_can_be_eligible),
    Law(gate="policy", code="rules_contradict", check=rules_do_not_contradict),
    Law(gate="policy", code="gate_unused", check=every_gate_is_used, severity="warning"),
    Law(gate="policy", code="intent_without_decision", check=every_intent_ends_in_a_decision),
    Law(gate="policy", code="rule_for_every_intent", check=rules_say_which_intent, severity="warning"),
    Law(gate="policy", code="rule_without_rationale", check=rules_have_a_rationale, severity="warning"),
)
