"""The policy engine: `(rules, facts) -> PolicyDecision`. Pure and deterministic.

A pack's policy is compiled once. For a request, guardrails are judged first, then all rules of its intent in one call.
Then the outcomes are combined: a denial outweighs everything, and restrictions add up.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Self

from msgspec.structs import replace

from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.pack_layers import ApprovalGate, PolicyLayer
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.policy.bounds import DeclaredBound, DeclaredBounds
from contextplane.policy.clock import describe_missing
from contextplane.policy.decision import (
    ArgumentBound,
    BundleEffects,
    Denial,
    DenialKind,
    GuardrailKind,
    GuardrailVerdict,
    MissingFact,
    PolicyDecision,
    RuleEffect,
    RuleError,
    RuleIdle,
    TriggeredGuardrail,
    UndecidedKind,
)
from contextplane.policy.facts import Facts
from contextplane.policy.guardrails import GuardrailProgram
from contextplane.policy.logic.condition import CompiledCondition, ConditionBatch, Judgement
from contextplane.policy.rules import Branch, CompiledRule, RulePart, placed_rules
from contextplane.policy.validation import policy_problems, refuse_all

__all__ = [
    "FAILED",
    "FALSE",
    "FALSE_MISSING",
    "OUTSIDE",
    "TRUE",
    "TRUE_MISSING",
    "UNKNOWN",
    "AppliedRules",
    "DecisionBasis",
    "PolicyProgram",
    "RuleOutcomes",
    "apply_rules",
    "combine",
]

# --- From the states of rules to one decision ---

FALSE, TRUE, FALSE_MISSING, TRUE_MISSING, UNKNOWN, FAILED, OUTSIDE = range(7)
"""The state of a rule, as a byte. From `OUTSIDE` on: `OUTSIDE` plus an index into `CompiledRule.outside`.

`FALSE_MISSING`, `TRUE_MISSING`: its condition came to that answer with null in place of a missing fact. `UNKNOWN`: it
met that null, and has no answer.
"""

_ANSWERS = {FALSE: False, TRUE: True, FALSE_MISSING: False, TRUE_MISSING: True}
_DECIDED = frozenset({FALSE, TRUE})

_DENIAL_KINDS: dict[GuardrailKind, DenialKind] = {"must_refuse": "refusal", "must_escalate": "escalation"}
_ID_DIGITS = 16


_NONE_REFERRED: dict[str, Json] = {}


class AppliedRules(NamedTuple):
    """The combined effect of all rules in effect. It depends only on the state of each rule.

    `digest` covers the parts of rules that took part, and nothing else of the pack.
    """

    effects: tuple[RuleEffect, ...]
    idle: tuple[RuleIdle, ...]
    bundles: tuple[BundleEffects, ...]
    rule_ids: tuple[str, ...]
    requires: tuple[str, ...]
    prohibits: tuple[str, ...]
    gates: tuple[str, ...]
    bounds: DeclaredBounds
    mode: ApprovalMode | None
    denials: tuple[Denial, ...]
    allowing: dict[str, str]
    allowed_by: str
    applied: bool
    digest: str


class RuleOutcomes(NamedTuple):
    """The outcome of all rules: those in effect, those that failed, and the facts they missed."""

    applied: AppliedRules
    errors: tuple[RuleError, ...]
    missing: tuple[MissingFact, ...]


class DecisionBasis(NamedTuple):
    """Everything a decision depends on: digest of what took part, state of each rule, and the values read.

    `referred`: the facts that bounds of arguments refer to, by path; one that is missing is not there.
    """

    digest: str
    states: bytes
    values: Sequence[Json]
    referred: dict[str, Json] = _NONE_REFERRED


def apply_rules(rules: Sequence[CompiledRule], states: bytes, elsewhere: tuple[RuleIdle, ...]) -> AppliedRules:
    """Combine the effects of rules in these states.

    A rule that failed, misses a fact or applies by one that is missing is undecided: it chooses neither branch, and the
    restrictions of both hold.
    """
    branches: list[Branch] = []
    idle: list[RuleIdle] = []
    chosen: list[Branch] = []
    allowing: list[CompiledRule] = []
    for rule, state in zip(rules, states, strict=True):
        answer = _ANSWERS.get(state)
        branch = None if answer is None else rule.then if answer else rule.otherwise
        if branch is not None:
            chosen.append(branch)
        if state in _DECIDED and branch is not None:
            branches.append(branch)
        elif state != FAILED:
            idle.append(_idle_rule(rule, state))
        undecided = _undecided_kind(rule, state)
        if undecided is not None:
            branches += rule.undecided_branches(undecided)
        if state < FAILED and rule.allows(answer):
            allowing.append(rule)
    strict = [branch for branch in branches if branch.restricts]
    ranks = [branch.rank for branch in strict if branch.rank is not None]
    return AppliedRules(
        effects=tuple([branch.effect for branch in branches]),
        idle=(*idle, *elsewhere),
        bundles=tuple(_bundle_effects(branches)),
        rule_ids=tuple([branch.rule_id for branch in branches if branch.undecided is None]),
        requires=_distinct([branch.declared.requires for branch in strict]),
        prohibits=_distinct([branch.declared.prohibits for branch in strict]),
        gates=_distinct([branch.gates for branch in strict]),
        bounds=DeclaredBounds(chain.from_iterable([branch.bounds for branch in strict])),
        mode=APPROVAL_MODES[max(ranks)] if ranks else None,
        denials=tuple([_rule_denial(branch.effect) for branch in chosen if branch.declared.allow is False]),
        allowing={rule.at: rule.rule_id for rule in allowing},
        allowed_by=", ".join([rule.rule_id for rule in allowing]),
        applied=bool(states) and min(states) < OUTSIDE,
        digest=Digest.of(
            b"".join([rule.part_digest(_part(rule, state)) for rule, state in zip(rules, states, strict=True)])
        ).hex,
    )


def _part(rule: CompiledRule, state: int) -> RulePart:
    """The part of a rule in this state that a decision depends on."""
    if _undecided_kind(rule, state) is not None:
        return "undecided"
    if state >= OUTSIDE:
        return "outside"
    return "then" if state == TRUE else "else"


def _idle_rule(rule: CompiledRule, state: int) -> RuleIdle:
    if state >= OUTSIDE:
        return rule.outside[state - OUTSIDE]
    return rule.idle if state in _DECIDED else rule.unknown


def _undecided_kind(rule: CompiledRule, state: int) -> UndecidedKind | None:
    """Why a rule in this state is undecided; None when it is decided, or does not apply."""
    if state >= OUTSIDE:
        return "scope" if state - OUTSIDE >= len(rule.scope) else None
    if state == FAILED:
        return "error"
    return None if state in _DECIDED else "missing_fact"


def _bundle_effects(branches: Sequence[Branch]) -> Iterator[BundleEffects]:
    for name in dict.fromkeys(branch.bundle_id for branch in branches):
        own = [branch for branch in branches if branch.bundle_id == name]
        decided = [branch.rule_id for branch in own if branch.undecided is None]
        undecided = dict.fromkeys(branch.rule_id for branch in own if branch.undecided is not None)
        yield BundleEffects(bundle_id=name, rule_ids=tuple(decided), undecided=tuple(undecided))


def _distinct(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All names, each where it occurs first."""
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _rule_denial(rule_effect: RuleEffect) -> Denial:
    return Denial(
        kind="rule", by=rule_effect.rule_id, reason=rule_effect.effect.reason or f"{rule_effect.rule_id} denies it"
    )


def combine(
    outcome: RuleOutcomes, guardrails: GuardrailVerdict, *, intent: str, basis: DecisionBasis
) -> PolicyDecision:
    """Combine outcomes and guardrails into one decision, with an id derived from its basis."""
    applied = outcome.applied
    allowed_by = _allowing_rules(outcome)
    denials = tuple(_denials(outcome, guardrails, allowed_by, intent))
    return PolicyDecision(
        policy_decision_id=_decision_id(outcome, guardrails, basis),
        intent=intent,
        allowed=not denials,
        reason="; ".join([denial.reason for denial in denials]) if denials else f"allowed by {allowed_by}",
        denials=denials,
        effective_approval_mode=applied.mode,
        requires_approval_gates=applied.gates,
        requires=applied.requires,
        prohibits=applied.prohibits,
        matched_rule_ids=applied.rule_ids,
        bundles=applied.bundles,
        arg_constraints=applied.bounds.resolve(basis.referred),
        effects=applied.effects,
        idle=applied.idle,
        errors=outcome.errors,
        missing_facts=outcome.missing,
        guardrails=guardrails,
        fact_values=basis.referred,
    )


def _allowing_rules(outcome: RuleOutcomes) -> str:
    """The rules that allow the intent. One that allows by a missing fact does not count."""
    void = {fact.at.removesuffix("/if") for fact in outcome.missing if fact.voids}
    if not void:
        return outcome.applied.allowed_by
    return ", ".join(rule_id for at, rule_id in outcome.applied.allowing.items() if at not in void)


def _denials(outcome: RuleOutcomes, guardrails: GuardrailVerdict, allowed_by: str, intent: str) -> Iterator[Denial]:
    """All denials, the weightiest first: guardrails, then rules, then what could not be decided."""
    for guardrail in guardrails.triggered:
        yield Denial(kind=_DENIAL_KINDS[guardrail.kind], by=guardrail.id, reason=_guardrail_reason(guardrail))
    yield from outcome.applied.denials
    for error in outcome.errors:
        yield Denial(kind="error", by=error.rule_id, reason=f"the condition of {error.rule_id} {error.why}")
    for fact in outcome.missing:
        if fact.denies or (fact.voids and not allowed_by):
            use = "applies by" if fact.scope else "reads"
            reason = f"{describe_missing([fact.path])}, which {fact.rule_id} {use}"
            yield Denial(kind="missing_fact", by=fact.rule_id, reason=reason)
    if not outcome.applied.applied:
        yield Denial(kind="no_rule", by="", reason=f"no rule applies to the intent {intent}")
    elif not outcome.applied.allowing and not outcome.applied.denials and not outcome.errors:
        yield Denial(kind="nothing_allows", by="", reason=f"no rule in effect allows the intent {intent}")


def _guardrail_reason(guardrail: TriggeredGuardrail) -> str:
    reason = guardrail.message or f"{guardrail.kind}: {guardrail.id}"
    return f"{reason} ({describe_missing(guardrail.missing)})" if "missing" in guardrail.by else reason


def _decision_id(outcome: RuleOutcomes, guardrails: GuardrailVerdict, basis: DecisionBasis) -> str:
    """The id of a decision: equal for equal parts of rules, facts read and verdict. No clock, no run id.

    A rule of another intent, and the text of a branch that was not taken, have no influence on it.
    """
    # By their ids: a place moves when another rule is added before it.
    errors = [[error.bundle_id, error.rule_id, error.kind] for error in outcome.errors]
    missing = [[fact.bundle_id, fact.rule_id, fact.scope, fact.path] for fact in outcome.missing]
    triggered = [
        [guardrail.kind, guardrail.id, guardrail.message, *guardrail.by, *guardrail.missing]
        for guardrail in guardrails.triggered
    ]
    referred = [basis.referred] if basis.referred else []
    content = canonical([basis.digest, basis.states.hex(), basis.values, errors, missing, triggered, *referred])
    return f"pol_{Digest.of(content).hex[:_ID_DIGITS]}"


# --- The compiled policy of a pack ---

_CACHE_SIZE = 256


class PolicyProgram:
    """The compiled policy layer of one pack. `gates` are its approval gates by id."""

    def __init__(self, layer: PolicyLayer, maxima: Mapping[str, ApprovalMode], references: Iterable[str] = ()) -> None:
        self.references = frozenset(references)
        self.gates: Mapping[str, ApprovalGate] = {gate.gate_id: gate for gate in layer.approval_gates}
        self._rules = tuple(CompiledRule(bundle, rule, at, maxima) for bundle, rule, at in placed_rules(layer))
        self._guardrails = GuardrailProgram(layer.guardrails)
        self._named = frozenset(intent for rule in self._rules for intent in rule.intents or ())
        self._by_intent: dict[str | None, _IntentRules] = {}

    @classmethod
    def of(
        cls,
        layer: PolicyLayer,
        *,
        maxima: Mapping[str, ApprovalMode] | None = None,
        references: Collection[str] = (),
    ) -> Self:
        """Compile a policy layer, or refuse it with all of its problems.

        `maxima` is the approval mode of each decision by its key: no rule bound to a decision asks for more than that.
        `references` are the facts that permissions refer to: a decision holds their values.
        """
        # Before anything recurses into it: a value without a canonical form may be too deep for that.
        canonical([layer, dict(maxima or {})])
        refuse_all(policy_problems(layer))
        return cls(layer, maxima or {}, references)

    @cached_property
    def _gate_digests(self) -> Mapping[str, str]:
        return {name: Digest.of(canonical(gate)).hex for name, gate in self.gates.items()}

    @cached_property
    def gate_conditions(self) -> Mapping[str, CompiledCondition]:
        """The conditions of the approval gates that have one."""
        return {name: CompiledCondition(gate.when) for name, gate in self.gates.items() if gate.when is not None}

    @cached_property
    def general_arguments(self) -> tuple[tuple[str, str], ...]:
        """The arguments that rules constrain for every tool, each after its place."""
        branches = [branch for rule in self._rules for branch in rule.branches]
        return tuple(
            (bound.at, bound.argument) for branch in branches for bound in branch.bounds if bound.capability is None
        )

    def knows(self, intent: str) -> bool:
        """Whether a rule names this intent."""
        return intent in self._named

    def prohibitable(self, intent: str) -> frozenset[str]:
        """The tools that a rule which may apply to the intent prohibits, in one of its branches."""
        return self._rules_of(intent).prohibitable

    def decide(self, facts: Facts) -> PolicyDecision:
        """Decide one request: guardrails first, then the rules of its intent."""
        guardrails, values = self._guardrails.judge(facts)
        rules = self._rules_of(facts.intent)
        judged = rules.judge(facts)
        applied = judged.outcome.applied
        gates = [self._gate_digests[name] for name in applied.gates if name in self.gates]
        referred = applied.bounds.references
        if self.references:
            referred |= self.references
        basis = DecisionBasis(
            digest=".".join((self._guardrails.digest, applied.digest, *gates)),
            states=judged.states,
            values=[facts.intent, *values, *judged.values],
            referred=facts.values_at(sorted(referred)) if referred else _NONE_REFERRED,
        )
        decision = combine(judged.outcome, guardrails, intent=facts.intent, basis=basis)
        if decision.allowed or not rules.bounds:
            return decision
        return replace(decision, fact_values=facts.values_at(sorted(referred | rules.references)))

    def bounds_after_denial(self, decision: PolicyDecision) -> tuple[ArgumentBound, ...]:
        """The constraints that hold after a denial: those of both branches of every rule that may apply.

        A run that is denied may not read more than one that is allowed.
        """
        outside = {idle.at for idle in decision.idle if idle.kind == "out_of_scope"}
        bounds = self._rules_of(decision.intent).bounds
        held = DeclaredBounds(chain.from_iterable(bounds[at] for at in bounds if at not in outside))
        return held.resolve(decision.fact_values)

    def gates_after_denial(self, intent: str) -> frozenset[str]:
        """The gates that a rule which may apply to the intent requires, in one of its branches."""
        return self._rules_of(intent).gates

    def _rules_of(self, intent: str) -> "_IntentRules":
        # Intents that no rule names share one entry: a caller may invent any number of them.
        key = intent if intent in self._named else None
        intent_rules = self._by_intent.get(key)
        if intent_rules is None:
            intent_rules = self._by_intent[key] = _IntentRules(self._rules, key)
        return intent_rules


class _JudgedRules(NamedTuple):
    outcome: RuleOutcomes
    states: bytes
    values: Sequence[Json]


class _IntentRules:
    """The rules that apply to one intent, judged together; and all others, which do not apply."""

    def __init__(self, rules: Sequence[CompiledRule], intent: str | None) -> None:
        self._rules = [rule for rule in rules if rule.intents is None or intent in rule.intents]
        self._scoped = [(n, rule) for n, rule in enumerate(self._rules) if rule.scope]
        self._elsewhere = tuple(
            rule.elsewhere for rule in rules if rule.intents is not None and intent not in rule.intents
        )
        self._conditions = ConditionBatch([rule.condition for rule in self._rules])
        self._applied: dict[bytes, AppliedRules] = {}

    @cached_property
    def prohibitable(self) -> frozenset[str]:
        """The tools that one of these rules prohibits in one of its branches."""
        return frozenset(name for rule in self._rules for branch in rule.branches for name in branch.declared.prohibits)

    @cached_property
    def gates(self) -> frozenset[str]:
        """The approval gates that one of these rules requires in one of its branches."""
        return frozenset(name for rule in self._rules for branch in rule.branches for name in branch.gates)

    @cached_property
    def bounds(self) -> Mapping[str, tuple[DeclaredBound, ...]]:
        """What both branches of each rule constrain, by the place of the rule; nothing for a rule without."""
        bounds = {rule.at: tuple(bound for branch in rule.branches for bound in branch.bounds) for rule in self._rules}
        return {at: declared for at, declared in bounds.items() if declared}

    @cached_property
    def references(self) -> frozenset[str]:
        """The facts that these constraints refer to."""
        return DeclaredBounds(chain.from_iterable(self.bounds.values())).references

    def judge(self, facts: Facts) -> _JudgedRules:
        """The outcome of each rule, and the values that decided it."""
        judgement = self._conditions.judge(facts)
        states = bytearray(judgement.answers)
        for n, failure in judgement.failures.items():
            states[n] = UNKNOWN if failure.missing else FAILED
        values, unknown = judgement.values, False
        if self._scoped:
            values = [*values, *(facts.scope_value(key) for _, rule in self._scoped for key, _ in rule.scope)]
            for n, rule in self._scoped:
                outside = rule.outside_index(facts)
                if outside is not None:
                    states[n] = OUTSIDE + outside
                    unknown = unknown or outside >= len(rule.scope)
        errors = [self._rules[n].error(failure) for n, failure in judgement.failures.items() if states[n] == FAILED]
        missing = self._missing_facts(states, judgement, facts) if judgement.has_missing or unknown else ()
        key = bytes(states)
        return _JudgedRules(
            RuleOutcomes(applied=self._applied_rules(key), errors=tuple(errors), missing=missing), key, values
        )

    def _applied_rules(self, states: bytes) -> AppliedRules:
        """The combined effect of these states, cached: requests are much alike."""
        applied = self._applied.get(states)
        if applied is None:
            if len(self._applied) >= _CACHE_SIZE:
                self._applied.clear()
            applied = self._applied[states] = apply_rules(self._rules, states, self._elsewhere)
        return applied

    def _missing_facts(self, states: bytearray, judgement: Judgement, facts: Facts) -> tuple[MissingFact, ...]:
        """The missing facts that rules read, and those that they apply by. Marks the states of the former.

        Such a rule was evaluated as if they were null, or not applied. No caller escapes a restriction, or is allowed,
        by leaving a fact out.
        """
        by_place = self._conditions.missing_facts(
            [n for n, state in enumerate(states) if state < OUTSIDE], judgement, facts
        )
        missing: list[MissingFact] = []
        for n, (rule, state) in enumerate(zip(self._rules, states, strict=True)):
            if state >= OUTSIDE + len(rule.scope):
                missing += rule.missing_scope_facts(facts)
            elif n in by_place:
                missing += rule.missing_facts(by_place[n], answer=_ANSWERS.get(state), failed=state == FAILED)
                if state in _DECIDED:
                    states[n] = TRUE_MISSING if state == TRUE else FALSE_MISSING
        return tuple(missing)
