"""The policy engine: `(rules, facts) -> PolicyDecision`. Pure, and the same for the same rules and facts.

A pack's policy is compiled once. For a request, guardrails are judged first, then every rule of its intent in one call.

From what became of every rule to one verdict: a denial outweighs everything, restrictions add up.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Self

from contextplane.model.context_pack import ApprovalGate, PolicyLayer
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
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
)
from contextplane.policy.facts import Facts
from contextplane.policy.guardrails import GuardrailProgram
from contextplane.policy.logic.condition import Condition, Conditions, Judgement
from contextplane.policy.rules import Branch, CompiledRule, placed_rules
from contextplane.policy.validation import policy_problems, refuse_all

__all__ = ["FAILED", "FALSE", "OUTSIDE", "TRUE", "Basis", "Outcome", "PolicyProgram", "Taken", "combine", "take"]

FALSE, TRUE, FAILED, OUTSIDE = range(4)
"""What became of a rule, as a byte. From `OUTSIDE` on: the place, in what keeps it outside, of what does so here."""

_SPEAKS: dict[GuardrailKind, DenialKind] = {"must_refuse": "refusal", "must_escalate": "escalation"}
_ID_DIGITS = 16


class Taken(NamedTuple):
    """What the branches in effect come to together: it follows from what became of each rule, and from nothing else."""

    effects: tuple[RuleEffect, ...]
    idle: tuple[RuleIdle, ...]
    bundles: tuple[BundleEffects, ...]
    rule_ids: tuple[str, ...]
    requires: tuple[str, ...]
    prohibits: tuple[str, ...]
    gates: tuple[str, ...]
    bounds: tuple[ArgumentBound, ...]
    mode: ApprovalMode | None
    denials: tuple[Denial, ...]
    allowing: dict[str, str]
    allowed_by: str
    applied: bool


class Outcome(NamedTuple):
    """What became of the rules: those that were decided, those that failed, and what they missed."""

    taken: Taken
    errors: tuple[RuleError, ...]
    missing: tuple[MissingFact, ...]


class Basis(NamedTuple):
    """All that a verdict follows from: the digest of the rules, what became of each, and the values that were read."""

    digest: str
    states: bytes
    values: Sequence[Json]


def take(rules: Sequence[CompiledRule], states: bytes, elsewhere: tuple[RuleIdle, ...]) -> Taken:
    """Put together what rules in these states do."""
    branches: list[Branch] = []
    idle: list[RuleIdle] = []
    for rule, state in zip(rules, states, strict=True):
        branch = rule.then if state == TRUE else rule.otherwise
        if state >= OUTSIDE:
            idle.append(rule.outside[state - OUTSIDE])
        elif state != FAILED and branch is not None:
            branches.append(branch)
        elif state != FAILED:
            idle.append(rule.idle)
    bundles: dict[str, list[str]] = {}
    for branch in branches:
        bundles.setdefault(branch.bundle_id, []).append(branch.rule_id)
    strict = [branch for branch in branches if branch.restricts]
    ranks = [branch.rank for branch in strict if branch.rank is not None]
    return Taken(
        effects=tuple([branch.effect for branch in branches]),
        idle=(*idle, *elsewhere),
        bundles=tuple([BundleEffects(bundle_id=name, rule_ids=tuple(ids)) for name, ids in bundles.items()]),
        rule_ids=tuple([branch.rule_id for branch in branches]),
        requires=_once([branch.says.requires for branch in strict]),
        prohibits=_once([branch.says.prohibits for branch in strict]),
        gates=_once([branch.gates for branch in strict]),
        bounds=tuple(chain.from_iterable([branch.bounds for branch in strict])),
        mode=APPROVAL_MODES[max(ranks)] if ranks else None,
        denials=tuple([_denied_by(branch.effect) for branch in strict if branch.says.allow is False]),
        allowing={branch.effect.at: branch.rule_id for branch in branches if branch.says.allow is True},
        allowed_by=", ".join([branch.rule_id for branch in branches if branch.says.allow is True]),
        applied=bool(states) and min(states) < OUTSIDE,
    )


def _once(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All of them, each where it stands first."""
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _denied_by(rule_effect: RuleEffect) -> Denial:
    return Denial(
        kind="rule", by=rule_effect.rule_id, reason=rule_effect.effect.reason or f"{rule_effect.rule_id} denies it"
    )


def combine(outcome: Outcome, guarded: GuardrailVerdict, *, intent: str, basis: Basis) -> PolicyDecision:
    """Put one verdict together, and name it by what it follows from."""
    taken = outcome.taken
    allowed_by = _allowed_by(outcome)
    denials = tuple(_denials(outcome, guarded, allowed_by, intent))
    return PolicyDecision(
        policy_decision_id=_named(outcome, guarded, basis),
        intent=intent,
        allowed=not denials,
        reason="; ".join([denial.reason for denial in denials]) if denials else f"allowed by {allowed_by}",
        denials=denials,
        effective_approval_mode=taken.mode,
        requires_approval_gates=taken.gates,
        requires=taken.requires,
        prohibits=taken.prohibits,
        matched_rule_ids=taken.rule_ids,
        bundles=taken.bundles,
        arg_constraints=taken.bounds,
        effects=taken.effects,
        idle=taken.idle,
        errors=outcome.errors,
        missing_facts=outcome.missing,
        guardrails=guarded,
    )


def _allowed_by(outcome: Outcome) -> str:
    """The rules that allow it, if any do. One that does so by a fact that is missing does not count."""
    void = {fact.at.removesuffix("/if") for fact in outcome.missing if fact.voids}
    if not void:
        return outcome.taken.allowed_by
    return ", ".join(rule_id for at, rule_id in outcome.taken.allowing.items() if at not in void)


def _denials(outcome: Outcome, guarded: GuardrailVerdict, allowed_by: str, intent: str) -> Iterator[Denial]:
    """Everything that denies, the weightiest first: guardrails, then rules, then what could not be decided."""
    for guardrail in guarded.triggered:
        yield Denial(kind=_SPEAKS[guardrail.kind], by=guardrail.id, reason=_said(guardrail))
    yield from outcome.taken.denials
    for error in outcome.errors:
        yield Denial(kind="error", by=error.rule_id, reason=f"the condition of {error.rule_id} {error.why}")
    for fact in outcome.missing:
        if fact.denies or (fact.voids and not allowed_by):
            reason = f"{fact.path} is missing, which {fact.rule_id} {'applies by' if fact.scope else 'reads'}"
            yield Denial(kind="missing_fact", by=fact.rule_id, reason=reason)
    if not outcome.taken.applied:
        yield Denial(kind="no_rule", by="", reason=f"no rule applies to the intent {intent}")
    elif not outcome.taken.allowing and not outcome.taken.denials and not outcome.errors:
        yield Denial(kind="nothing_allows", by="", reason=f"no rule in effect allows the intent {intent}")


def _said(guardrail: TriggeredGuardrail) -> str:
    said = guardrail.message or f"{guardrail.kind}: {guardrail.id}"
    return f"{said} ({', '.join(guardrail.missing)} is missing)" if "missing" in guardrail.by else said


def _named(outcome: Outcome, guarded: GuardrailVerdict, basis: Basis) -> str:
    """An id that the same rules, facts read and verdict always get, and others do not. No clock, no id of a run."""
    failed = [[error.at, error.kind] for error in outcome.errors]
    lacking = [[fact.at, fact.path] for fact in outcome.missing]
    spoken = [[guardrail.kind, guardrail.id, *guardrail.by, *guardrail.missing] for guardrail in guarded.triggered]
    content = canonical([basis.digest, basis.states.hex(), basis.values, failed, lacking, spoken])
    return f"pol_{Digest.of(content).hex[:_ID_DIGITS]}"


_KEPT = 256


class PolicyProgram:
    """The policy layer of one pack, ready to decide. `gates` are its approval gates by id, as they are written."""

    def __init__(self, layer: PolicyLayer, maxima: Mapping[str, ApprovalMode], digest: Digest) -> None:
        self.digest = digest
        self.gates: Mapping[str, ApprovalGate] = {gate.gate_id: gate for gate in layer.approval_gates}
        self._rules = tuple(CompiledRule(bundle, rule, at, maxima) for bundle, rule, at in placed_rules(layer))
        self._guardrails = GuardrailProgram(layer.guardrails)
        self._named = frozenset(intent for rule in self._rules for intent in rule.intents or ())
        self._by_intent: dict[str | None, _IntentRules] = {}

    @classmethod
    def of(cls, layer: PolicyLayer, *, maxima: Mapping[str, ApprovalMode] | None = None) -> Self:
        """Compile a policy layer, or refuse it with everything that is wrong with it.

        `maxima` is the approval mode of each decision by its key: no rule bound to a decision asks for more than that.
        """
        # Before anything walks it: what has no canonical form may be deeper than any walk can go.
        digest = Digest.of(canonical([layer, dict(maxima or {})]))
        refuse_all(policy_problems(layer))
        return cls(layer, maxima or {}, digest)

    @cached_property
    def gate_conditions(self) -> Mapping[str, Condition]:
        """The conditions of the approval gates that have one."""
        return {name: Condition(gate.when) for name, gate in self.gates.items() if gate.when is not None}

    def knows(self, intent: str) -> bool:
        """Whether a rule names this intent."""
        return intent in self._named

    def decide(self, facts: Facts) -> PolicyDecision:
        """What policy says of one request. Guardrails first, then the rules of its intent."""
        guarded, values = self._guardrails.judge(facts)
        judged = self._rules_of(facts.intent).judge(facts)
        basis = Basis(digest=self.digest.hex, states=judged.states, values=[facts.intent, *values, *judged.values])
        return combine(judged.outcome, guarded, intent=facts.intent, basis=basis)

    def _rules_of(self, intent: str) -> "_IntentRules":
        # Intents that no rule names share one entry: a caller may make up as many as it likes.
        key = intent if intent in self._named else None
        intent_rules = self._by_intent.get(key)
        if intent_rules is None:
            intent_rules = self._by_intent[key] = _IntentRules(self._rules, key)
        return intent_rules


class _Judged(NamedTuple):
    outcome: Outcome
    states: bytes
    values: Sequence[Json]


class _IntentRules:
    """The rules that apply to one intent, judged together; and all others, which do not."""

    def __init__(self, rules: Sequence[CompiledRule], intent: str | None) -> None:
        self._rules = [rule for rule in rules if rule.intents is None or intent in rule.intents]
        self._scoped = [(n, compiled_rule) for n, compiled_rule in enumerate(self._rules) if compiled_rule.scope]
        self._elsewhere = tuple(
            rule.elsewhere for rule in rules if rule.intents is not None and intent not in rule.intents
        )
        self._conditions = Conditions([rule.condition for rule in self._rules])
        self._taken: dict[bytes, Taken] = {}

    def judge(self, facts: Facts) -> _Judged:
        """What becomes of each rule, and the values that this was decided by."""
        judged = self._conditions.judge(facts)
        states = bytearray(judged.answers)
        for n in judged.failures:
            states[n] = FAILED
        values, unknown = judged.values, False
        if self._scoped:
            values = [*values, *(facts.matched(key) for _, rule in self._scoped for key, _ in rule.scope)]
            for n, rule in self._scoped:
                outside = rule.not_matched(facts)
                if outside is not None:
                    states[n] = OUTSIDE + outside
                    unknown = unknown or outside >= len(rule.scope)
        errors = [self._rules[n].failed(failure) for n, failure in judged.failures.items() if states[n] == FAILED]
        missing = self._missing(states, judged, facts) if judged.lacks or unknown else ()
        key = bytes(states)
        return _Judged(Outcome(taken=self._take(key), errors=tuple(errors), missing=missing), key, values)

    def _take(self, states: bytes) -> Taken:
        """What follows from these states; some hundreds are kept, for requests are much alike."""
        found = self._taken.get(states)
        if found is None:
            if len(self._taken) >= _KEPT:
                self._taken.clear()
            found = self._taken[states] = take(self._rules, states, self._elsewhere)
        return found

    def _missing(self, states: bytearray, judged: Judgement, facts: Facts) -> tuple[MissingFact, ...]:
        """The facts that rules came to read and did not find, and those that they apply by.

        Such a rule was decided as if they were null, or not applied. Nobody escapes a restriction, and nobody is
        allowed, by leaving a fact out.
        """
        missed = self._conditions.missed([n for n, state in enumerate(states) if state < OUTSIDE], judged, facts)
        found: list[MissingFact] = []
        for n, (rule, state) in enumerate(zip(self._rules, states, strict=True)):
            if state >= OUTSIDE + len(rule.scope):
                found += rule.missing_of_scope(facts)
            elif n in missed:
                found += rule.missed(missed[n], answer=None if state == FAILED else state == TRUE)
        return tuple(found)
