"""Intents: each is allowed by something and ends in a typed decision, and no decision and no plan stands alone."""

from collections.abc import Iterator

from contextplane.authoring.conditions import Condition, conditions, unsound
from contextplane.authoring.contradictions import applies_within
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject
from contextplane.policy.solving import Tries, solve

__all__ = ["LAWS"]

_TOGETHER = 12
"""So many denials are asked about together at most."""

_TRIES = 60_000


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


def every_decision_is_led_to(subject: Subject) -> Iterator[Broken]:
    """Every decision is one that a rule or a task template leads to: no run ends in another."""
    led_to = {placed.rule.decision_binding for placed in subject.rules}
    led_to |= {template.decision_key for _, template in subject.templates}
    for key, (at, _) in subject.decisions.items():
        if key not in led_to:
            cause = f"no rule and no task template leads to {key}, so it is never made"
            yield Broken(at=f"{at}/decision_key", cause=cause, cure="bind a rule to it, or take it out")


def every_plan_has_a_rule(subject: Subject) -> Iterator[Broken]:
    """Every intent of a task template has a rule that applies to it: where none does, a run may only read."""
    if not subject.templates or any(not placed.intents for placed in subject.rules):
        return
    ruled = {intent for placed in subject.rules for intent in placed.intents}
    for at, template in subject.templates:
        if template.intent not in ruled:
            cause = f"no rule applies to the intent {template.intent!r}, so nothing that the plan does is allowed"
            yield Broken(at=f"{at}/intent", cause=cause, cure="write a rule that applies to it")


def rules_say_which_intent(subject: Subject) -> Iterator[Broken]:
    """Every rule says which intent it applies to."""
    for placed in subject.rules:
        if not placed.intents:
            yield Broken(
                at=f"{placed.at}/applies_to",
                cause=f"{placed.rule.rule_id} applies to every intent",
                cure="name the intents that it is meant for",
            )


def some_rule_allows_every_intent(subject: Subject) -> Iterator[Broken]:
    """For every intent that rules apply to, one of them allows: where none does, everything is denied."""
    allowing = [placed.of for placed in subject.effects if placed.effect.allow is True]
    if any(not placed.intents for placed in allowing):
        return
    allowed = {intent for placed in allowing for intent in placed.intents}
    for placed in subject.rules:
        for intent in placed.intents:
            if intent not in allowed:
                allowed.add(intent)
                cause = f"no rule of the intent {intent!r} says allow: true, so it is always denied"
                yield Broken(at=placed.at, cause=cause, cure="say where it is allowed, or take the intent out")


def decisions_are_eligible_where_allowed(subject: Subject) -> Iterator[Broken]:
    """The eligibility rules of every decision can hold where a rule that leads to it allows."""
    tries = Tries(_TRIES)
    for one in subject.once(conditions):
        if one.of == "decision" and not one.problems and _is_never_allowed(subject, one, tries):
            cause = f"{one.name} is eligible only where no rule allows it, so it can never be made"
            yield Broken(at=one.at, cause=cause, cure="let the rules and the eligibility meet somewhere")


def _is_never_allowed(subject: Subject, one: Condition, tries: Tries) -> bool:
    """A proof that wherever a rule of a decision allows it, it is not eligible, or something denies it."""
    sound = [placed for placed in subject.effects if f"{placed.of.at}/if" not in subject.once(unsound)]
    allowing = [
        placed for placed in sound if placed.effect.allow is True and placed.of.rule.decision_binding == one.name
    ]
    denying = [placed for placed in sound if placed.effect.allow is False]
    for allows in allowing:
        others = [denies for denies in denying if denies.of.at != allows.of.at and applies_within(allows, denies)]
        wanted = [(one.expression, True), (allows.of.rule.condition, allows.branch)]
        wanted += [(denies.of.rule.condition, not denies.branch) for denies in others[:_TOGETHER]]
        if solve(wanted, tries).answer != "no":
            return False
    return bool(allowing) and solve([(one.expression, True)], tries).answer != "no"


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="policy", code="eligibility_never_allowed", check=decisions_are_eligible_where_allowed),
    Law(gate="policy", code="intent_without_decision", check=every_intent_ends_in_a_decision),
    Law(gate="policy", code="decision_unreached", check=every_decision_is_led_to, severity="warning"),
    Law(gate="policy", code="intent_never_allowed", check=some_rule_allows_every_intent, severity="warning"),
    Law(gate="policy", code="plan_without_rule", check=every_plan_has_a_rule, severity="warning"),
    Law(gate="policy", code="rule_for_every_intent", check=rules_say_which_intent, severity="warning"),
)
