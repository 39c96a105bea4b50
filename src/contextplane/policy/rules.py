"""The compiled rules of a pack, in order of evaluation, each with its scope and both branches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import UNSET
from msgspec.structs import replace

from contextplane.model.arguments import placed_constraints
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.pack_layers import Effect, PolicyBundle, PolicyLayer, Rule
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.policy.bounds import DeclaredBound
from contextplane.policy.decision import (
    IdleKind,
    MissingFact,
    RuleEffect,
    RuleError,
    RuleIdle,
    UndecidedKind,
)
from contextplane.policy.facts import SCOPE_FACTS, Facts
from contextplane.policy.logic.condition import CompiledCondition, ConditionFailure

__all__ = ["Branch", "CompiledRule", "RulePart", "placed_rules", "restricts"]


RulePart = Literal["outside", "then", "else", "undecided"]
"""Which part of a rule a decision depends on: its scope alone, one branch, or both."""


class Branch:
    """A branch of a rule: prepared once, used for many requests."""

    def __init__(self, effect: RuleEffect) -> None:
        self.effect = effect
        self.undecided = effect.undecided
        self.bundle_id, self.rule_id = effect.bundle_id, effect.rule_id
        self.declared = effect.effect
        self.restricts = restricts(self.declared)
        self.rank = None if effect.approval_mode is None else APPROVAL_MODES.index(effect.approval_mode)
        self.gates = self.declared.gate_ids
        origin = f"rule:{effect.bundle_id}#{effect.rule_id}"
        self.bounds = tuple(
            DeclaredBound(placed, origin=origin, at=f"{effect.at}/{effect.branch}{placed.at}")
            for placed in placed_constraints(effect.effect.arg_constraints)
        )

    def restrictions(self, undecided: UndecidedKind) -> "Branch":
        """What is left of the branch while its rule is undecided: neither its allowance nor its denial."""
        effect = replace(self.declared, allow=UNSET, reason=None)
        return Branch(replace(self.effect, effect=effect, undecided=undecided))


class CompiledRule:
    """One rule: its scope apart from the intent, its condition, and the branch of either answer."""

    def __init__(self, bundle: PolicyBundle, rule: Rule, at: str, maxima: Mapping[str, ApprovalMode]) -> None:
        self.bundle_id = bundle.bundle_id
        self.rule_id = rule.rule_id
        self.at = at
        self.intents = _names(rule, "intent")
        self.scope = tuple(
            (key, frozenset(_names(rule, key) or ())) for key in sorted(rule.applies_to) if key != "intent"
        )
        self.outside = [
            self._idle("out_of_scope", f"applies to {key} {', '.join(sorted(allowed))} only")
            for key, allowed in self.scope
        ] + [
            self._idle("scope_unknown", f"applies by {key}, and {SCOPE_FACTS[key]} is missing") for key, _ in self.scope
        ]
        self.condition = CompiledCondition(rule.condition)
        self.then = Branch(self._effect(rule, "then", rule.then, maxima))
        self.otherwise = None
        if rule.otherwise is not None:
            self.otherwise = Branch(self._effect(rule, "else", rule.otherwise, maxima))
        self.branches = (self.then,) if self.otherwise is None else (self.then, self.otherwise)
        self.restricts = self.then.restricts or (self.otherwise is not None and self.otherwise.restricts)
        self.idle = self._idle("no_else", "its if is false, and it has no else")
        self._undecided: dict[UndecidedKind, Sequence[Branch]] = {}
        self.unknown = self._idle("unknown", "a fact that its if reads is missing")
        self.elsewhere = self._idle("out_of_scope", f"applies to the intent {', '.join(self.intents or ())} only")
        self._rule = rule
        self._parts: dict[RulePart, bytes] = {}

    def outside_index(self, facts: Facts) -> int | None:
        """The index in `outside` of the reason why the rule does not apply; None when it applies.

        The intent has matched already. Facts that are given are compared exactly. When all of those match and another
        is missing, it is unknown whether the rule applies.
        """
        unknown = None
        for n, (key, allowed) in enumerate(self.scope):
            value = facts.scope_value(key)
            if value is None:
                unknown = len(self.scope) + n if unknown is None else unknown
            elif value not in allowed:
                return n
        return unknown

    def allows(self, answer: bool | None) -> bool:  # noqa: FBT001  an answer
        """Whether the rule allows by this answer. None: the answer is unknown, and only both branches allow."""
        if answer is None:
            return _allows(self.then) and _allows(self.otherwise)
        return _allows(self.then if answer else self.otherwise)

    def part_digest(self, part: RulePart) -> bytes:
        """The digest of the part of the rule that a decision depends on. Nothing else moves its id."""
        digest = self._parts.get(part)
        if digest is None:
            digest = self._parts[part] = bytes.fromhex(Digest.of(canonical(self._part(part))).hex)
        return digest

    def _part(self, part: RulePart) -> Json:
        rule = self._rule
        used: list[object] = [part, self.bundle_id, rule.rule_id, rule.applies_to]
        if part != "outside":
            used.append(rule.condition)
        branches = {"then": (self.then,), "else": (self.otherwise,), "undecided": (self.then, self.otherwise)}
        for branch in branches.get(part, ()):
            if branch is not None:
                used += [branch.declared, branch.effect.approval_mode, rule.decision_binding, rule.rationale]
        return used  # type: ignore[return-value]

    def undecided_branches(self, kind: UndecidedKind) -> Sequence[Branch]:
        """The restrictions of both branches. Cached: most rules are decided by every request."""
        branches = self._undecided.get(kind)
        if branches is None:
            both = [branch.restrictions(kind) for branch in (self.then, self.otherwise) if branch is not None]
            branches = self._undecided[kind] = [branch for branch in both if branch.restricts]
        return branches

    def missing_facts(self, paths: Iterable[str], *, answer: bool | None, failed: bool = False) -> list[MissingFact]:
        """The missing facts that its condition read when it came to this answer; None: it has none.

        They deny where a branch that was not taken restricts. An allowance that not all branches give does not count.
        When the condition failed, that denies by itself.
        """
        branch, others = (self.then, [self.otherwise]) if answer else (self.otherwise, [self.then])
        if answer is None:
            others = [self.then, self.otherwise]
        denies = not failed and any(other is not None and other.restricts for other in others)
        allows = any(map(_allows, others)) if answer is None else _allows(branch)
        voids = not failed and allows and not all(map(_allows, others))
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

    def missing_scope_facts(self, facts: Facts) -> list[MissingFact]:
        """The missing facts that the rule applies by. They deny when one of its branches restricts."""
        return [
            MissingFact(
                path=SCOPE_FACTS[key],
                bundle_id=self.bundle_id,
                rule_id=self.rule_id,
                at=f"{self.at}/applies_to/{key}",
                denies=self.restricts,
                scope=True,
            )
            for key, _ in self.scope
            if facts.scope_value(key) is None
        ]

    def error(self, failure: ConditionFailure) -> RuleError:
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
            approval_mode=_cap_mode(effect.approval_mode, maxima.get(rule.decision_binding or "")),
            decision_binding=rule.decision_binding,
        )


def placed_rules(layer: PolicyLayer) -> Iterator[tuple[PolicyBundle, Rule, str]]:
    """Every rule with its bundle and its place, in order of evaluation.

    Bundles by descending priority, ties by id; rules in document order.
    """
    order = sorted(
        enumerate(layer.policy_bundles),
        key=lambda numbered: (-numbered[1].priority, numbered[1].bundle_id, numbered[0]),
    )
    for b, bundle in order:
        for r, rule in enumerate(bundle.policy_dsl.rules):
            yield bundle, rule, f"/policy_layer/policy_bundles/{b}/policy_dsl/rules/{r}"


def restricts(effect: Effect) -> bool:
    """Whether an effect restricts: it denies, or requires, prohibits or bounds something."""
    restrictions = (
        effect.requires,
        effect.prohibits,
        effect.requires_approval_gate,
        effect.approval_mode,
        effect.arg_constraints,
    )
    return effect.allow is False or any(restrictions)


def _allows(branch: Branch | None) -> bool:
    return branch is not None and branch.declared.allow is True


def _names(rule: Rule, key: str) -> tuple[str, ...] | None:
    """The values of a key of a rule's scope; None where it has no such key, and so applies to all."""
    names = rule.applies_to.get(key)
    return (names,) if isinstance(names, str) else names


def _cap_mode(mode: ApprovalMode | None, maximum: ApprovalMode | None) -> ApprovalMode | None:
    """The mode, capped at the declared maximum."""
    if mode is None or maximum is None:
        return mode
    return min(mode, maximum, key=APPROVAL_MODES.index)
