"""Stage `policy`: evaluates guardrails and rules for the request."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from contextplane.compiler.draft import Draft, Inputs, PolicyPart
from contextplane.compiler.prompt import instruction_block
from contextplane.compiler.quotation import inline, quote
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import (
    ActiveGuardrail,
    ContextBlock,
    Omission,
    PolicyManifestEntry,
    PolicyVerdict,
)
from contextplane.model.json.canonical import Json
from contextplane.model.pack_layers import Effect
from contextplane.policy.clock import clock_facts
from contextplane.policy.decision import PolicyDecision, RuleEffect, RuleError, RuleIdle, TriggeredGuardrail
from contextplane.policy.facts import Facts

__all__ = ["evaluate_policy"]

_SIGNAL_LENGTH = 120
_CLAIM_IDS = ("run_id", "claim_hash")
"""Fields of an identity claim that were stripped. As facts they are missing, not empty texts."""


def evaluate_policy(draft: Draft) -> Draft:
    """Evaluate the policy. Every rule of the pack is in the manifest, or omitted with its reason."""
    inputs = draft.inputs
    try:
        facts = _facts(inputs)
    except ContextPlaneError as error:
        raise error.under("facts#") from None
    view = inputs.view
    decision = view.policy.decide(facts)
    described = view.memoize_by(
        # The same objects for all requests in which the same rules take effect.
        (decision.bundles, decision.effects, decision.idle),
        ("rules", inputs.tokens, decision.missing_facts),
        lambda: _describe_rules(inputs, decision),
    )
    part = PolicyPart(
        verdict=_verdict(decision),
        manifest=described.manifest,
        blocks=described.blocks,
        omitted=(*described.omitted, *map(_omission, decision.errors)) if decision.errors else described.omitted,
        notes=(*_notes(decision, facts, draft.shown),),
    )
    return replace(draft, facts=facts, decision=decision, policy=part)


class _RuleDescriptions(NamedTuple):
    """What a compile says of the rules that is the same for all values of the facts."""

    manifest: tuple[PolicyManifestEntry, ...]
    blocks: tuple[ContextBlock, ...]
    omitted: tuple[Omission, ...]


def _describe_rules(inputs: Inputs, decision: PolicyDecision) -> _RuleDescriptions:
    return _RuleDescriptions(
        manifest=tuple(
            PolicyManifestEntry(bundle_id=bundle.bundle_id, rule_ids=bundle.rule_ids, undecided=bundle.undecided)
            for bundle in decision.bundles
        ),
        blocks=tuple(
            instruction_block(
                f"pol_{n}",
                "policy",
                _describe_effect(inputs, effect, decision),
                inputs.tokens,
                classification=inputs.view.pack.pack_meta.data_classification,
                refs=(f"policy:{effect.bundle_id}#{effect.rule_id}",),
            )
            for n, effect in enumerate(decision.effects)
        ),
        omitted=tuple(map(_omission, decision.idle)),
    )


def _facts(inputs: Inputs) -> Facts:
    """The seven facts that rules read. No correlation id is among them."""
    run, request_input = inputs.run_context, inputs.request.input
    user: dict[str, Any] = msgspec.to_builtins(run.user)
    user.pop("further", None)
    agent: dict[str, Any] = msgspec.to_builtins(run.agent)
    for name in _CLAIM_IDS:
        agent.get("identity_claim", {}).pop(name, None)
    return Facts.of(
        request=msgspec.to_builtins(request_input),
        user={**run.user.further, **user},
        agent=agent,
        tenant_id=run.tenant_id,
        intent=request_input.intent,
        safety_mode=run.safety_mode,
        run={"budget": msgspec.to_builtins(run.run_budget), "metadata": run.metadata, **_clock(inputs)},
        # Only metadata stand deeper among the facts than in the input, which was checked.
        checked=not run.metadata,
    )


def _clock(inputs: Inputs) -> dict[str, Json]:
    """The clock facts. Without a moment they are missing."""
    if inputs.as_of is None or not inputs.view.may_read_run:
        return {}
    return clock_facts(inputs.as_of, inputs.view.pack.pack_meta.environment_defaults.timezone)


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
        missing_facts=tuple(dict.fromkeys(_missing_paths(decision))),
        refused=decision.guardrails.refusals,
        escalated=decision.guardrails.escalations,
        guardrails=tuple(map(_active_guardrail, decision.guardrails.triggered)),
    )


def _active_guardrail(guardrail: TriggeredGuardrail) -> ActiveGuardrail:
    return ActiveGuardrail(
        id=guardrail.id,
        kind=guardrail.kind,
        by=guardrail.by,
        message=guardrail.message,
        missing=guardrail.missing,
        error=guardrail.error,
    )


def _missing_paths(decision: PolicyDecision) -> Iterator[str]:
    """Yield the paths of missing facts. Guardrails come first, because they are evaluated first."""
    for guardrail in decision.guardrails.triggered:
        yield from guardrail.missing
    yield from (fact.path for fact in decision.missing_facts)


def _omission(rule: RuleIdle | RuleError) -> Omission:
    return Omission(
        kind="rule",
        id=f"{rule.bundle_id}#{rule.rule_id}",
        stage="policy",
        reason=rule.kind,
        detail=rule.why or None,
        at=f"pack#{rule.at}",
    )


def _notes(decision: PolicyDecision, facts: Facts, shown: Inputs) -> Iterator[str]:
    """Yield notes on missing facts, and on signals that match no guardrail: a label may be misspelt."""
    for guardrail in decision.guardrails.triggered:
        for path in guardrail.missing:
            yield f"{guardrail.kind} {guardrail.id} read {path}, which is missing"
    for fact in decision.missing_facts:
        yield f"{fact.bundle_id}#{fact.rule_id} {'applies by' if fact.scope else 'read'} {fact.path}, which is missing"
    signals = cast("list[str]", facts.context.get("signals") or [])
    labels = {*decision.guardrails.must_refuse, *decision.guardrails.must_escalate} if signals else set()
    shown_signals = shown.request.input.context.get("signals") or []
    for name, shown_name in dict(zip(signals, shown_signals, strict=True)).items():
        if name not in labels:
            yield f"the signal {quote(shown_name[:_SIGNAL_LENGTH])} names no guardrail"


def _describe_effect(inputs: Inputs, applied: RuleEffect, decision: PolicyDecision) -> str:
    """Describe a rule that took effect in one line. The model reads the decision, and does not make it.

    What it requires and which calls wait stands in the developer text. What it prohibits is not named: a model does not
    see a tool that it may not call.
    """
    rationale = inputs.view.rationales[applied.bundle_id, applied.rule_id]
    parts = [_consequence(applied.effect) if applied.undecided is None else _doubt(applied, decision)]
    if rationale:
        parts.append(inline(rationale))
    if applied.effect.reason:
        parts.append(f"tell the user: {inline(applied.effect.reason)}")
    return f"{applied.rule_id}: {'; '.join(parts)}"


def _doubt(applied: RuleEffect, decision: PolicyDecision) -> str:
    """Describe why a rule is undecided. Neither of its branches was chosen."""
    paths = [
        quote(fact.path)
        for fact in decision.missing_facts
        if (fact.bundle_id, fact.rule_id) == (applied.bundle_id, applied.rule_id)
    ]
    cause = "it cannot be evaluated" if applied.undecided == "error" else f"{', '.join(paths)} is missing"
    return f"undecided, because {cause}, so the restrictions of both of its branches hold"


def _consequence(effect: Effect) -> str:
    if effect.allow is False:
        return "denied"
    return "allowed" if effect.allow is True else "applies"
