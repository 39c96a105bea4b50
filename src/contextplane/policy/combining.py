"""From what became of every rule to one verdict: a denial outweighs everything, restrictions add up."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from contextplane.model.canonical import Json, canonical
from contextplane.model.context_pack.terms import APPROVAL_MODES, ApprovalMode
from contextplane.model.ids import Digest
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
from contextplane.policy.rules import Branch, CompiledRule

__all__ = ["FAILED", "FALSE", "OUTSIDE", "TRUE", "Basis", "Outcome", "Taken", "combine", "take"]

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
        allowing={one.effect.at: one.rule_id for one in branches if one.says.allow is True},
        allowed_by=", ".join([one.rule_id for one in branches if one.says.allow is True]),
        applied=bool(states) and min(states) < OUTSIDE,
    )


def _once(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All of them, each where it stands first."""
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _denied_by(one: RuleEffect) -> Denial:
    return Denial(kind="rule", by=one.rule_id, reason=one.effect.reason or f"{one.rule_id} denies it")


def combine(outcome: Outcome, guarded: GuardrailVerdict, *, intent: str, basis: Basis) -> PolicyDecision:
    """Put one verdict together, and name it by what it follows from."""
    taken = outcome.taken
    allowed_by = _allowed_by(outcome)
    denials = tuple(_denials(outcome, guarded, allowed_by, intent))
    return PolicyDecision(
        policy_decision_id=_named(outcome, guarded, basis),
        intent=intent,
        allowed=not denials,
        reason="; ".join([one.reason for one in denials]) if denials else f"allowed by {allowed_by}",
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
    void = {one.at.removesuffix("/if") for one in outcome.missing if one.voids}
    if not void:
        return outcome.taken.allowed_by
    return ", ".join(rule_id for at, rule_id in outcome.taken.allowing.items() if at not in void)


def _denials(outcome: Outcome, guarded: GuardrailVerdict, allowed_by: str, intent: str) -> Iterator[Denial]:
    """Everything that denies, the weightiest first: guardrails, then rules, then what could not be decided."""
    for one in guarded.triggered:
        yield Denial(kind=_SPEAKS[one.kind], by=one.id, reason=_said(one))
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


def _said(one: TriggeredGuardrail) -> str:
    said = one.message or f"{one.kind}: {one.id}"
    return f"{said} ({', '.join(one.missing)} is missing)" if "missing" in one.by else said


def _named(outcome: Outcome, guarded: GuardrailVerdict, basis: Basis) -> str:
    """An id that the same rules, facts read and verdict always get, and others do not. No clock, no id of a run."""
    failed = [[one.at, one.kind] for one in outcome.errors]
    lacking = [[one.at, one.path] for one in outcome.missing]
    spoken = [[one.kind, one.id, *one.by, *one.missing] for one in guarded.triggered]
    content = canonical([basis.digest, basis.states.hex(), basis.values, failed, lacking, spoken])
    return f"pol_{Digest.of(content).hex[:_ID_DIGITS]}"
