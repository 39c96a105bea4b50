"""The rules of a pack, compiled: in the order in which they are taken, with their scope and both of their branches."""

from collections.abc import Iterable, Iterator, Mapping

from contextplane.model.context_pack import Effect, PolicyBundle, PolicyLayer, Rule
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.policy.decision import ArgumentBound, IdleKind, MissingFact, RuleEffect, RuleError, RuleIdle
from contextplane.policy.facts import MATCHED, Facts
from contextplane.policy.logic.condition import Condition, Failure

__all__ = ["Branch", "CompiledRule", "placed_rules", "restricts"]


class Branch:
    """What a rule does when its condition is decided: prepared once, handed out many times."""

    def __init__(self, effect: RuleEffect) -> None:
        self.effect = effect
        self.bundle_id, self.rule_id = effect.bundle_id, effect.rule_id
        self.says = effect.effect
        self.restricts = restricts(self.says)
        self.rank = None if effect.approval_mode is None else APPROVAL_MODES.index(effect.approval_mode)
        gate = self.says.requires_approval_gate
        self.gates = () if gate is None else (gate,)
        origin = f"rule:{effect.bundle_id}#{effect.rule_id}"
        self.bounds = tuple(
            ArgumentBound(
                argument=name,
                constraint=arg_constraint,
                origin=origin,
                at=f"{effect.at}/{effect.branch}/arg_constraints/{name}",
            )
            for name, arg_constraint in sorted(effect.effect.arg_constraints.items())
        )


class CompiledRule:
    """One rule: its scope apart from the intent, its condition, and what either answer brings about."""

    def __init__(self, bundle: PolicyBundle, rule: Rule, at: str, maxima: Mapping[str, ApprovalMode]) -> None:
        self.bundle_id = bundle.bundle_id
        self.rule_id = rule.rule_id
        self.at = at
        self.intents = _names(rule, "intent")
        self.scope = tuple(
            (key, frozenset(_names(rule, key) or ())) for key in sorted(rule.applies_to) if key != "intent"
        )
        self.outside = [
            self._idle("out_of_scope", f"applies to {key} {', '.join(sorted(named))} only") for key, named in self.scope
        ] + [self._idle("scope_unknown", f"applies by {key}, and {MATCHED[key]} is missing") for key, _ in self.scope]
        self.condition = Condition(rule.condition)
        self.then = Branch(self._effect(rule, "then", rule.then, maxima))
        self.otherwise = None
        if rule.otherwise is not None:
            self.otherwise = Branch(self._effect(rule, "else", rule.otherwise, maxima))
        self.restricts = self.then.restricts or (self.otherwise is not None and self.otherwise.restricts)
        self.idle = self._idle("no_else", "its if is false, and it has no else")
        self.elsewhere = self._idle("out_of_scope", f"applies to the intent {', '.join(self.intents or ())} only")

    def not_matched(self, facts: Facts) -> int | None:
        """Which of `outside` these facts make it, whose intent it applies to; None when it applies.

        What is given is compared exactly. When all of that matches and something is missing, nobody can tell.
        """
        unknown = None
        for n, (key, named) in enumerate(self.scope):
            value = facts.matched(key)
            if value is None:
                unknown = len(self.scope) + n if unknown is None else unknown
            elif value not in named:
                return n
        return unknown

    def missed(self, paths: Iterable[str], *, answer: bool | None) -> list[MissingFact]:
        """What its condition read and did not find, when it came to this answer, or to none.

        It was decided as if that were null. Where the branch not taken restricts, that denies; where only the one taken
        allows, it does not count.
        """
        taken, other = (self.then, self.otherwise) if answer else (self.otherwise, self.then)
        decided = answer is not None
        denies = decided and other is not None and other.restricts
        voids = decided and _allows(taken) and not _allows(other)
        return [
            MissingFact(
                path=path,
                bundle_id=self.bundle_id,
                rule_id=self.rule_id,
                at=f"{self.at}/if",
                denies=denies,
                voids=voids,
            )
            for path in paths
        ]

    def missing_of_scope(self, facts: Facts) -> list[MissingFact]:
        """What it applies by and is not given. That denies when one of its branches restricts."""
        return [
            MissingFact(
                path=MATCHED[key],
                bundle_id=self.bundle_id,
                rule_id=self.rule_id,
                at=f"{self.at}/applies_to/{key}",
                denies=self.restricts,
                scope=True,
            )
            for key, _ in self.scope
            if facts.matched(key) is None
        ]

    def failed(self, failure: Failure) -> RuleError:
        return RuleError(
            bundle_id=self.bundle_id, rule_id=self.rule_id, at=f"{self.at}/if", kind=failure.kind, why=failure.why
        )

    def _idle(self, kind: IdleKind, why: str) -> RuleIdle:
        return RuleIdle(bundle_id=self.bundle_id, rule_id=self.rule_id, at=self.at, kind=kind, why=why)

    def _effect(self, rule: Rule, branch: str, effect: Effect, maxima: Mapping[str, ApprovalMode]) -> RuleEffect:
        return RuleEffect(
            bundle_id=self.bundle_id,
            rule_id=self.rule_id,
            at=self.at,
            branch="then" if branch == "then" else "else",
            effect=effect,
            approval_mode=_capped(effect.approval_mode, maxima.get(rule.decision_binding or "")),
            decision_binding=rule.decision_binding,
        )


def placed_rules(layer: PolicyLayer) -> Iterator[tuple[PolicyBundle, Rule, str]]:
    """Every rule with its bundle and place: bundles by descending priority, ties by id, rules as they are written."""
    order = sorted(
        enumerate(layer.policy_bundles),
        key=lambda policy_bundle: (-policy_bundle[1].priority, policy_bundle[1].bundle_id, policy_bundle[0]),
    )
    for b, bundle in order:
        for r, rule in enumerate(bundle.policy_dsl.rules):
            yield bundle, rule, f"/policy_layer/policy_bundles/{b}/policy_dsl/rules/{r}"


def restricts(effect: Effect) -> bool:
    """Whether a branch takes something away: it denies, or asks for, prohibits or bounds something."""
    held = (
        effect.requires,
        effect.prohibits,
        effect.requires_approval_gate,
        effect.approval_mode,
        effect.arg_constraints,
    )
    return effect.allow is False or any(held)


def _allows(branch: Branch | None) -> bool:
    return branch is not None and branch.says.allow is True


def _names(rule: Rule, key: str) -> tuple[str, ...] | None:
    """What a rule names under a key of its scope; None where it has no such key, and so applies to all."""
    named = rule.applies_to.get(key)
    return (named,) if isinstance(named, str) else named


def _capped(mode: ApprovalMode | None, maximum: ApprovalMode | None) -> ApprovalMode | None:
    """A mode, never above the declared maximum."""
    if mode is None or maximum is None:
        return mode
    return min(mode, maximum, key=APPROVAL_MODES.index)
