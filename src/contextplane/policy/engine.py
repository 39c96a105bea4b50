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
from contextplane.policy.condition import Condition, Conditions
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
        values = judged.values
        if self._scoped:
            values = [*values, *(facts.matched(key) for _, rule in self._scoped for key, _ in rule.scope)]
            for n, rule in self._scoped:
                outside = rule.not_matched(facts)
                if outside is not None:
                    states[n] = OUTSIDE + outside
        errors = [self._rules[n].failed(one) for n, one in judged.failures.items() if states[n] == FAILED]
        missing = self._missing(states, judged.missing, facts) if judged.missing else ()
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

    def _missing(self, states: bytearray, paths: frozenset[str], facts: Facts) -> tuple[MissingFact, ...]:
        """The facts that rules came to read and did not find.

        Such a rule was decided as if they were null. That denies when the branch that was not taken restricts: nobody
        escapes a restriction by leaving a fact out.
        """
        reading = [
            n for n, one in enumerate(self._rules) if states[n] < OUTSIDE and not paths.isdisjoint(one.condition.plain)
        ]
        reached = self._conditions.reaching([n for n in reading if states[n] != FAILED], paths, facts)
        found: list[MissingFact] = []
        for n in reading:
            rule = self._rules[n]
            if states[n] == FAILED:
                lacking, not_taken = sorted(paths & rule.condition.plain), None  # how far it came cannot be told
            else:
                lacking, not_taken = reached.get(n, []), rule.otherwise if states[n] == TRUE else rule.then
            denies = not_taken is not None and not_taken.restricts
            found += [rule.missing(path, denies=denies) for path in lacking]
        return tuple(found)
