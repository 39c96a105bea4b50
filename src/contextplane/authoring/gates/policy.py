"""The policy gate: every condition can be evaluated, can take effect, and contradicts no other.

Also: every intent is allowed by some rule and ends in a typed decision, and every decision and task template is used.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from contextplane.authoring.conditions import (
    PATHS,
    AppliesTo,
    PlacedCondition,
    can_take_effect,
    conditions,
    conditions_by_place,
    invalid_condition_places,
    is_fact,
    returns_boolean,
    scope_constraints,
    values_of,
)
from contextplane.authoring.contradictions import UncomparedPairs, applies_within, find_contradictions
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import DecisionDocument, Subject
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import Effect
from contextplane.model.suggestion import did_you_mean
from contextplane.model.terms import APPROVAL_MODES
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.logic.condition import no_missing_reads
from contextplane.policy.logic.expression import computed_names
from contextplane.policy.logic.solver import solve

__all__ = ["DECISION_LAWS", "LAWS"]

_NAMED = 3
_CLOSED_KEYS = frozenset({"safety_mode", "tenant_id"})
"""Keys of `applies_to` whose possible values are known."""

_SERVED_FACTS = frozenset({"intent", "tenant_id"})


def conditions_can_be_evaluated(subject: DecisionDocument) -> Iterator[Violation]:
    """Every condition is JSONLogic of known operators, bounded in size and depth."""
    for condition in subject.compute_once(conditions):
        for problem in condition.problems:
            yield Violation(
                at=condition.at + problem.at,
                cause=f"the condition of {condition.name} {problem.message}",
                cure="use the operators of JSONLogic, and split what is too large",
            )


def conditions_come_to_true_or_false(subject: DecisionDocument) -> Iterator[Violation]:
    """Every condition comes to true or false: a number, a text or nothing counts as a denial."""
    for condition in subject.compute_once(conditions):
        # A plain comparison of facts with constants that can be true and can be false is always one of the two.
        answer = (
            "yes"
            if condition.problems or (condition.plain and condition.free)
            else returns_boolean(condition.expression)
        )
        if answer == "no":
            cause = f"the condition of {condition.name} is never true or false, so it denies"
            yield Violation(at=condition.at, cause=cause, cure='compare it with something: {"==": [..., true]}')
        elif answer == "unknown":
            yield Violation(
                at=condition.at,
                cause=f"cannot tell whether the condition of {condition.name} comes to true or false: "
                "a fact may be missing",
                cure='write {"==": [{"var": "..."}, true]} where a fact stands alone',
                unknown=True,
            )


def conditions_read_known_facts(subject: DecisionDocument) -> Iterator[Violation]:
    """Every fact that a condition reads is named outright, and one that a run has: others are missing."""
    for condition in subject.compute_once(conditions):
        for place in computed_names(condition.expression) if not condition.plain and not condition.problems else ():
            cause = f"the condition of {condition.name} computes which fact it reads, so a missing fact goes unnoticed"
            yield Violation(
                at=condition.at + place, cause=cause, cure='name it: {"var": "request.context.refund_amount"}'
            )
        for path in (
            () if all(map(is_fact, condition.reads)) else sorted(path for path in condition.reads if not is_fact(path))
        ):
            yield Violation(
                at=condition.at,
                cause=f"the condition of {condition.name} reads {path!a}, which no run has",
                cure=PATHS,
            )


def rules_apply_to_known_things(subject: Subject) -> Iterator[Violation]:
    """Every key of an applies_to is one that a run is matched by, and names values that a run can have."""
    for placed in subject.rules:
        for key, named in placed.rule.applies_to.items():
            if key in SCOPE_FACTS and named and key not in _CLOSED_KEYS:
                continue
            at = f"{placed.at}/applies_to{pointer([key])}"
            if key not in SCOPE_FACTS:
                cause = f"{placed.rule.rule_id} applies by {ascii(key)[:60]}, which no run is matched by"
                yield Violation(at=at, cause=cause, cure=did_you_mean(key[:60], SCOPE_FACTS, "take it out"))
            elif not named:
                cause = f"{placed.rule.rule_id} never applies: it names no {key}"
                yield Violation(at=at, cause=cause, cure=f"name one, or leave {key} out to mean every one")
            else:
                known = _tenants(subject) if key == "tenant_id" else APPROVAL_MODES
                for value in values_of(named).difference(known):
                    cause = f"{placed.rule.rule_id} applies where {key} is {value[:60]!r}, which is so in no run"
                    yield Violation(at=at, cause=cause, cure=did_you_mean(value, known, "name another"))


def critical_rules_are_reachable(subject: Subject) -> Iterator[Violation]:
    """Every branch that denies, prohibits or asks for something can take effect where its rule applies."""
    placed_at = subject.compute_once(conditions_by_place)
    for placed in subject.effects:
        condition, within = placed_at[f"{placed.of.at}/if"], placed.of.rule.applies_to
        if condition.problems or not _restricts(placed.effect):
            continue
        if "tenant_id" in condition.reads:
            within = {"tenant_id": _tenants(subject), **within}
        answer = can_take_effect(condition, within, outcome=placed.branch)
        if answer == "yes":
            continue
        name = f"{placed.of.rule.rule_id}.{'then' if placed.branch else 'else'}"
        if answer == "no":
            yield Violation(
                at=placed.at,
                cause=f"{name} can never take effect: where it applies, its condition is "
                f"{'never' if placed.branch else 'always'} true",
                cure="fix the condition, or remove the branch",
            )
        else:
            yield _cannot_tell(placed.at, f"{name} can ever take effect")


def gates_can_become_active(subject: Subject) -> Iterator[Violation]:
    """The condition of every approval gate can hold."""
    for condition in _sound_conditions(subject, "gate"):
        within = {} if _SERVED_FACTS.isdisjoint(condition.reads) else _served_scope(subject)
        yield from _can_hold(condition, "so the gate is never reached", within)


def guardrails_can_be_triggered(subject: Subject) -> Iterator[Violation]:
    """The condition of every guardrail can hold."""
    for condition in _sound_conditions(subject, "guardrail"):
        yield from _can_hold(condition, "so it never speaks", {"tenant_id": _tenants(subject)})


def guardrails_let_something_pass(subject: Subject) -> Iterator[Violation]:
    """No guardrail holds in every run: each would end there, and nothing would ever be decided."""
    for condition in _sound_conditions(subject, "guardrail"):
        within: AppliesTo = {"tenant_id": _tenants(subject)}
        if can_take_effect(condition, within, outcome=False) == "no":
            cause = f"the condition of {condition.name} is always true, so every run ends there"
        elif not condition.free and _holds_or_misses_a_fact(condition, within):
            cause = f"the condition of {condition.name} is true or misses a fact in every run, so every run ends there"
        else:
            continue
        cure = "fix the condition; without one, a signal of the request triggers it"
        yield Violation(at=condition.at, cause=cause, cure=cure)


def _holds_or_misses_a_fact(condition: PlacedCondition, within: AppliesTo) -> bool:
    """Whether a condition is proven false only where it reads a missing fact, which triggers it as well."""
    constraints = [(constraint, True) for _, constraint in scope_constraints(within, condition.reads)]
    complete = [(constraint, True) for constraint in no_missing_reads(condition.expression)]
    return solve([(condition.expression, False), *complete, *constraints]).answer == "no"


def decisions_can_be_eligible(subject: DecisionDocument) -> Iterator[Violation]:
    """The eligibility rules of every decision can hold."""
    for condition in _sound_conditions(subject, "decision"):
        yield from _can_hold(condition, "so it can never be made", {"tenant_id": _tenants(subject)})


def _sound_conditions(subject: DecisionDocument, kind: str) -> Iterator[PlacedCondition]:
    return (
        condition for condition in subject.compute_once(conditions) if condition.kind == kind and not condition.problems
    )


def _tenants(subject: DecisionDocument) -> tuple[str, ...]:
    """Return the tenants that may run the document."""
    tenant = subject.tenant[1]
    return (tenant.tenant_id, *tenant.shared_with)


def _served_scope(subject: Subject) -> AppliesTo:
    """Return the scope in which a run can do more than read."""
    within: AppliesTo = {"tenant_id": _tenants(subject)}
    if any(not placed.intents for placed in subject.rules):
        return within
    return {**within, "intent": tuple(subject.intents)}


def _can_hold(condition: PlacedCondition, consequence: str, within: AppliesTo) -> Iterator[Violation]:
    answer = can_take_effect(condition, within)
    if answer == "no":
        cause = f"the condition of {condition.name} is never true, {consequence}"
        yield Violation(at=condition.at, cause=cause, cure="fix the condition")
    elif answer == "unknown":
        yield _cannot_tell(condition.at, f"the condition of {condition.name} can ever hold")


def _cannot_tell(at: str, what: str) -> Violation:
    return Violation(
        at=at,
        cause=f"cannot tell whether {what}: it computes with facts, compares them, or has too many cases",
        cure="compare facts with constants only, or cover it with a golden case",
        unknown=True,
    )


def rules_do_not_contradict(subject: Subject) -> Iterator[Violation]:
    """No rule allows only where another one denies: a denial holds at any priority."""
    for contradiction in find_contradictions(subject):
        if isinstance(contradiction, UncomparedPairs):
            yield Violation(
                at=contradiction.at,
                cause=f"cannot tell whether rules contradict: {contradiction.pairs} pairs on the same facts "
                "were not compared",
                cure="split the intent, or merge rules",
                unknown=True,
            )
            continue
        allows = contradiction.allows.of.rule.rule_id
        denies = _join_names([deny.of.rule.rule_id for deny in contradiction.denies])
        if not contradiction.sure:
            yield _cannot_tell(contradiction.allows.at, f"{allows} ever allows what is not denied by {denies}")
            continue
        yield Violation(
            at=contradiction.allows.at,
            cause=f"{allows} allows only what is denied by {denies}, so it never takes effect",
            cure="narrow one of them, or remove one: no priority lets a rule allow what another denies",
        )


def _join_names(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = f" or {len(unique) - _NAMED} others" if len(unique) > _NAMED else ""
    return " or ".join(unique[:_NAMED]) + more


def every_gate_is_used(subject: Subject) -> Iterator[Violation]:
    """Every approval gate is named by a rule or by a permission."""
    if not subject.gates:
        return
    used: set[str] = set()
    for placed in subject.effects:
        if placed.effect.requires_approval_gate is not None:
            used.update(placed.effect.gate_ids)
    for _, permission in subject.permissions:
        if permission.requires_approval_gate is not None:
            used.update(permission.gate_ids)
    for name, (at, _) in subject.gates.items():
        if name not in used:
            yield Violation(at=at, cause=f"nothing names the approval gate {name}", cure="name it, or remove it")


def rules_have_a_rationale(subject: Subject) -> Iterator[Violation]:
    """Every rule says why it is there."""
    for placed in subject.rules:
        if placed.rule.rationale is None:
            yield Violation(at=placed.at, cause=f"{placed.rule.rule_id} has no rationale", cure="give its purpose")


def rules_turn_on_their_condition(subject: Subject) -> Iterator[Violation]:
    """No rule does the same whether its condition holds or not: it would only seem to decide something."""
    for placed in subject.rules:
        then, otherwise = placed.rule.then, placed.rule.otherwise
        if (
            otherwise is not None
            and then.allow is otherwise.allow
            and _comparable_effect(then) == _comparable_effect(otherwise)
        ):
            verdict = "denies" if then.allow is False else "allows" if then.allow is True else "does the same"
            yield Violation(
                at=f"{placed.at}/else",
                cause=f"{placed.rule.rule_id} {verdict} in either branch, so its condition has no meaning",
                cure="say what one of the branches does and the other does not, or write the condition as true",
            )


def _comparable_effect(effect: Effect) -> Effect:
    """Return an effect without its reason, and with its lists sorted."""
    requires, prohibits = tuple(sorted(effect.requires)), tuple(sorted(effect.prohibits))
    return replace(effect, reason=None, requires=requires, prohibits=prohibits)


def _restricts(effect: Effect) -> bool:
    restrictions = (effect.requires, effect.prohibits, effect.requires_approval_gate, effect.approval_mode)
    return effect.allow is False or any(restrictions) or bool(effect.arg_constraints)


DECISION_LAWS: tuple[Law[DecisionDocument], ...] = (
    Law(gate="policy", code="condition_invalid", check=conditions_can_be_evaluated),
    Law(gate="policy", code="condition_undecided", check=conditions_come_to_true_or_false),
    Law(gate="policy", code="fact_unknown", check=conditions_read_known_facts),
    Law(
        gate="policy", code="eligibility_unsatisfiable", check=decisions_can_be_eligible, about="conditional_decisions"
    ),
)
"""The laws that hold for a decision catalog as well."""

_RULE_LAWS: tuple[Law[Subject], ...] = (
    *DECISION_LAWS,
    Law(gate="policy", code="rule_scope_unknown", check=rules_apply_to_known_things),
    Law(gate="policy", code="rule_unreachable", check=critical_rules_are_reachable),
    Law(gate="policy", code="gate_unsatisfiable", check=gates_can_become_active),
    Law(
        gate="policy", code="guardrail_unsatisfiable", check=guardrails_can_be_triggered, about="conditional_guardrails"
    ),
    Law(
        gate="policy",
        code="guardrail_unconditional",
        check=guardrails_let_something_pass,
        about="conditional_guardrails",
    ),
    Law(gate="policy", code="rules_contradict", check=rules_do_not_contradict),
    Law(gate="policy", code="rule_indifferent", check=rules_turn_on_their_condition, severity="warning"),
    Law(gate="policy", code="gate_unused", check=every_gate_is_used, severity="warning"),
    Law(gate="policy", code="rule_without_rationale", check=rules_have_a_rationale, severity="warning"),
)


# --- intents ---

_TOGETHER = 12
"""How many denials are solved together at most."""


def every_intent_ends_in_a_decision(subject: Subject) -> Iterator[Violation]:
    """Every intent that rules apply to has a rule or a task template that is bound to a decision."""
    bound = {intent for placed in subject.rules if placed.rule.decision_binding for intent in placed.intents}
    bound |= {template.intent for template in subject.pack.task_layer.task_templates}
    for placed in subject.rules:
        for intent in placed.intents:
            if intent not in bound:
                bound.add(intent)
                yield Violation(
                    at=placed.at,
                    cause=f"no rule of the intent {intent!r} is bound to a decision: it would end in free text",
                    cure="set decision_binding to a decision of decision_layer",
                )


def every_decision_is_led_to(subject: Subject) -> Iterator[Violation]:
    """Every decision is one that a rule or a task template leads to: no run ends in another."""
    led_to = {placed.rule.decision_binding for placed in subject.rules}
    led_to |= {template.decision_key for _, template in subject.templates}
    for key, (at, _) in subject.decisions.items():
        if key not in led_to:
            cause = f"no rule and no task template leads to {key}, so it is never made"
            yield Violation(at=f"{at}/decision_key", cause=cause, cure="bind a rule to it, or remove it")


def every_plan_has_a_rule(subject: Subject) -> Iterator[Violation]:
    """Every intent of a task template has a rule that applies to it: where none does, a run may only read."""
    if not subject.templates or any(not placed.intents for placed in subject.rules):
        return
    ruled = {intent for placed in subject.rules for intent in placed.intents}
    for at, template in subject.templates:
        if template.intent not in ruled:
            cause = f"no rule applies to the intent {template.intent!r}, so nothing that the plan does is allowed"
            yield Violation(at=f"{at}/intent", cause=cause, cure="write a rule that applies to it")


def rules_say_which_intent(subject: Subject) -> Iterator[Violation]:
    """Every rule says which intent it applies to."""
    for placed in subject.rules:
        if not placed.intents:
            yield Violation(
                at=f"{placed.at}/applies_to",
                cause=f"{placed.rule.rule_id} applies to every intent",
                cure="name the intents that it is meant for",
            )


def decisions_are_eligible_where_allowed(subject: Subject) -> Iterator[Violation]:
    """The eligibility rules of every decision can hold where a rule that leads to it allows."""
    for condition in subject.compute_once(conditions):
        if condition.kind == "decision" and not condition.problems and _is_never_allowed(subject, condition):
            cause = f"{condition.name} is eligible only where no rule allows it, so it can never be made"
            yield Violation(at=condition.at, cause=cause, cure="let the rules and the eligibility meet somewhere")


def _is_never_allowed(subject: Subject, condition: PlacedCondition) -> bool:
    """Whether it is proven that a decision is ineligible or denied wherever a rule allows it."""
    sound = [
        placed
        for placed in subject.effects
        if f"{placed.of.at}/if" not in subject.compute_once(invalid_condition_places)
    ]
    allowing = [
        placed for placed in sound if placed.effect.allow is True and placed.of.rule.decision_binding == condition.name
    ]
    denying = [placed for placed in sound if placed.effect.allow is False]
    for allows in allowing:
        others = [denies for denies in denying if denies.of.at != allows.of.at and applies_within(allows, denies)]
        outcomes = [(condition.expression, True), (allows.of.rule.condition, allows.branch)]
        outcomes += [(denies.of.rule.condition, not denies.branch) for denies in others[:_TOGETHER]]
        if solve(outcomes).answer != "no":
            return False
    return bool(allowing) and solve([(condition.expression, True)]).answer != "no"


_INTENT_LAWS: tuple[Law[Subject], ...] = (
    Law(
        gate="policy",
        code="eligibility_never_allowed",
        check=decisions_are_eligible_where_allowed,
        about="conditional_decisions",
    ),
    Law(gate="policy", code="intent_without_decision", check=every_intent_ends_in_a_decision),
    Law(gate="policy", code="decision_unreached", check=every_decision_is_led_to, severity="warning"),
    Law(gate="policy", code="plan_without_rule", check=every_plan_has_a_rule, severity="warning", about="templates"),
    Law(gate="policy", code="rule_for_every_intent", check=rules_say_which_intent, severity="warning"),
)

LAWS: tuple[Law[Subject], ...] = (*_RULE_LAWS, *_INTENT_LAWS)
