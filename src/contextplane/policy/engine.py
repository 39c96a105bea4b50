"""The policy engine: `(rules, facts) -> PolicyDecision`. Pure, and the same for the same rules and facts.

A pack's policy is compiled once. For a request, guardrails are judged first, then every rule of its intent in one call.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Self

from contextplane.model.canonical import Json, canonical
from contextplane.model.context_pack.policy_layer import ApprovalGate, PolicyLayer
from contextplane.model.context_pack.terms import ApprovalMode
from contextplane.model.ids import Digest
from contextplane.policy.combining import FAILED, OUTSIDE, TRUE, Basis, Outcome, Taken, combine, take
from contextplane.policy.condition import Condition, Conditions, Judgement
from contextplane.policy.decision import MissingFact, PolicyDecision
from contextplane.policy.facts import Facts
from contextplane.policy.guardrails import GuardrailProgram
from contextplane.policy.refusals import refuse_all
from contextplane.policy.rules import CompiledRule, placed_rules
from contextplane.policy.soundness import policy_problems

__all__ = ["PolicyProgram"]

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
        found = self._by_intent.get(key)
        if found is None:
            found = self._by_intent[key] = _IntentRules(self._rules, key)
        return found


class _Judged(NamedTuple):
    outcome: Outcome
    states: bytes
    values: Sequence[Json]


class _IntentRules:
    """The rules that apply to one intent, judged together; and all others, which do not."""

    def __init__(self, rules: Sequence[CompiledRule], intent: str | None) -> None:
        self._rules = [one for one in rules if one.intents is None or intent in one.intents]
        self._scoped = [(n, one) for n, one in enumerate(self._rules) if one.scope]
        self._elsewhere = tuple(one.elsewhere for one in rules if one.intents is not None and intent not in one.intents)
        self._conditions = Conditions([one.condition for one in self._rules])
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
        errors = [self._rules[n].failed(one) for n, one in judged.failures.items() if states[n] == FAILED]
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
