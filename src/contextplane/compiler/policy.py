"""Stage `policy`: what guardrails and rules decide of this request."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from contextplane.compiler.draft import Draft, Inputs, PolicyPart
from contextplane.compiler.prompt import instruction_block
from contextplane.compiler.quoting import quoted
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import Omission, PolicyManifestEntry, PolicyVerdict
from contextplane.model.context_pack import Effect
from contextplane.policy.decision import PolicyDecision, RuleEffect, RuleError, RuleIdle
from contextplane.policy.facts import Facts

__all__ = ["policy"]

_SHOWN = 120
_OF_ONE_RUN = ("run_id", "claim_hash")
"""Of an identity claim. They were taken away; as facts they are missing, and not empty texts."""


def policy(draft: Draft) -> Draft:
    """Every rule of the pack is in the manifest, or omitted with its reason."""
    inputs = draft.inputs
    try:
        facts = _facts(inputs)
    except ContextPlaneError as error:
        raise error.under("facts#") from None
    decision = inputs.view.policy.decide(facts)
    classification = inputs.view.pack.pack_meta.data_classification
    part = PolicyPart(
        verdict=_verdict(decision),
        manifest=tuple(
            PolicyManifestEntry(bundle_id=bundle.bundle_id, rule_ids=bundle.rule_ids) for bundle in decision.bundles
        ),
        blocks=tuple(
            instruction_block(
                f"pol_{n}",
                "policy",
                _told(inputs, effect),
                inputs.tokens,
                classification=classification,
                refs=(f"policy:{effect.bundle_id}#{effect.rule_id}",),
            )
            for n, effect in enumerate(decision.effects)
        ),
        omitted=tuple(_omitted(decision)),
        notes=(*_notes(decision, facts),),
    )
    return replace(draft, facts=facts, decision=decision, policy=part)


def _facts(inputs: Inputs) -> Facts:
    """The seven facts. No id that only connects records is among them."""
    run, asked = inputs.run_context, inputs.request.input
    user: dict[str, Any] = msgspec.to_builtins(run.user)
    user.pop("further", None)
    agent: dict[str, Any] = msgspec.to_builtins(run.agent)
    for name in _OF_ONE_RUN:
        agent.get("identity_claim", {}).pop(name, None)
    return Facts.of(
        request=msgspec.to_builtins(asked),
        user={**run.user.further, **user},
        agent=agent,
        tenant_id=run.tenant_id,
        intent=asked.intent,
        safety_mode=run.safety_mode,
        run={"budget": msgspec.to_builtins(run.run_budget), "metadata": run.metadata},
    )


def _verdict(decision: PolicyDecision) -> PolicyVerdict:
    return PolicyVerdict(
        allowed=decision.allowed,
        policy_decision_id=decision.policy_decision_id,
        reason=decision.reason or None,
        effective_approval_mode=decision.effective_approval_mode,
        requires_approval_gates=decision.requires_approval_gates,
        requires=decision.requires,
        prohibits=decision.prohibits,
        matched_rule_ids=decision.matched_rule_ids,
        denials=tuple(
            denial.reason if denial.by in denial.reason else f"{denial.by}: {denial.reason}"
            for denial in decision.denials
        ),
        missing_facts=tuple(dict.fromkeys(_missing(decision))),
        refused=decision.guardrails.refusals,
        escalated=decision.guardrails.escalations,
    )


def _missing(decision: PolicyDecision) -> Iterator[str]:
    """Of guardrails first: they are judged first."""
    for guardrail in decision.guardrails.triggered:
        yield from guardrail.missing
    yield from (fact.path for fact in decision.missing_facts)


def _omitted(decision: PolicyDecision) -> Iterator[Omission]:
    rules: tuple[RuleIdle | RuleError, ...] = (*decision.idle, *decision.errors)
    for rule in rules:
        yield Omission(
            kind="rule",
            id=f"{rule.bundle_id}#{rule.rule_id}",
            stage="policy",
            reason=rule.kind,
            detail=rule.why or None,
            at=f"pack#{rule.at}",
        )


def _notes(decision: PolicyDecision, facts: Facts) -> Iterator[str]:
    """What was missed, and signals that no guardrail answers to: a label that is misspelt must not go unnoticed."""
    for guardrail in decision.guardrails.triggered:
        for path in guardrail.missing:
            yield f"{guardrail.kind} {guardrail.id} read {path}, which is missing"
    for fact in decision.missing_facts:
        yield f"{fact.bundle_id}#{fact.rule_id} {'applies by' if fact.scope else 'read'} {fact.path}, which is missing"
    signals = cast("list[str]", facts.context.get("signals") or [])
    labels = {*decision.guardrails.must_refuse, *decision.guardrails.must_escalate} if signals else set()
    for name in dict.fromkeys(signals):
        if name not in labels:
            yield f"the signal {quoted(name[:_SHOWN])} names no guardrail"


def _told(inputs: Inputs, taken: RuleEffect) -> str:
    """A rule that took effect, in one line: the model is told what was decided, and does not decide it."""
    rationale = inputs.view.rationale(taken.bundle_id, taken.rule_id)
    parts = [_consequence(taken.effect)]
    if rationale:
        parts.append(f"because {quoted(rationale)}")
    if taken.effect.reason:
        parts.append(f"tell the user {quoted(taken.effect.reason)}")
    if taken.effect.requires:
        parts.append(f"needs evidence {', '.join(taken.effect.requires)}")
    if taken.effect.prohibits:
        parts.append(f"never use {', '.join(taken.effect.prohibits)}")
    if taken.approval_mode:
        parts.append(f"approval mode {taken.approval_mode}")
    if taken.effect.requires_approval_gate:
        parts.append(f"wait for {taken.effect.requires_approval_gate}")
    return f"{taken.rule_id}: {'; '.join(parts)}"


def _consequence(effect: Effect) -> str:
    if effect.allow is False:
        return "denied"
    return "allowed" if effect.allow is True else "applies"
