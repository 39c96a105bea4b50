"""Guardrails: refusals and escalations, judged before ordinary policy and never overridden by it."""

from collections.abc import Iterator, Sequence
from typing import cast

from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.pack_layers import Guardrail, Guardrails
from contextplane.policy.decision import GuardrailKind, GuardrailVerdict, TriggeredGuardrail, TriggerKind
from contextplane.policy.facts import Facts
from contextplane.policy.logic.condition import CompiledCondition, ConditionBatch, ConditionFailure

__all__ = ["GuardrailProgram", "placed_guardrails"]


class GuardrailProgram:
    """The guardrails of a pack with compiled conditions, none of which has a problem."""

    def __init__(self, guardrails: Guardrails) -> None:
        self._entries = tuple((kind, guardrail) for kind, _, guardrail in placed_guardrails(guardrails))
        # Not the messages: that of a triggered guardrail is part of the verdict, and the others are not used.
        self.digest = Digest.of(canonical([[kind, rail.id, rail.when] for kind, rail in self._entries])).hex
        self._conditional = [n for n, (_, guardrail) in enumerate(self._entries) if guardrail.when is not None]
        self._conditions = ConditionBatch([CompiledCondition(self._entries[n][1].when) for n in self._conditional])
        self._quiet = GuardrailVerdict(
            must_refuse=tuple(guardrail.id for kind, guardrail in self._entries if kind == "must_refuse"),
            must_escalate=tuple(guardrail.id for kind, guardrail in self._entries if kind == "must_escalate"),
        )

    def judge(self, facts: Facts) -> tuple[GuardrailVerdict, Sequence[Json]]:
        """The triggered guardrails, and the values that decided it.

        A guardrail is triggered when its `when` holds, when `request.context.signals` names it, or when
        `request.context.<label>` is given and not false. It is also triggered when its `when` cannot be evaluated, or
        does not hold, or has no answer, and missed a fact: no caller escapes it by leaving that out.
        """
        values: Sequence[Json] = ()
        answers: dict[int, bool | ConditionFailure] = {}
        missing: dict[int, tuple[str, ...]] = {}
        if self._conditional:
            judgement = self._conditions.judge(facts)
            values = judgement.values
            for place, (n, answer) in enumerate(zip(self._conditional, judgement.answers, strict=True)):
                answers[n] = judgement.failures.get(place, answer)
            if judgement.has_missing:
                by_place = self._conditions.missing_facts(range(len(self._conditional)), judgement, facts)
                missing = {self._conditional[place]: tuple(names) for place, names in by_place.items()}
        context = facts.context
        signals = cast("list[str]", context.get("signals") or [])
        triggered = []
        for n, (kind, guardrail) in enumerate(self._entries):
            failure, lacks = answers.get(n, False), missing.get(n, ())
            by = (
                *_ways(failure, lacks=bool(lacks)),
                *(("signal",) if guardrail.id in signals else ()),
                # A label that is given and not false triggers it: other values cannot be judged.
                *(("label",) if context.get(guardrail.id, False) is not False else ()),
            )
            if by:
                error = failure.why if isinstance(failure, ConditionFailure) and not failure.missing else None
                triggered.append(
                    TriggeredGuardrail(
                        id=guardrail.id, kind=kind, by=by, message=guardrail.message, error=error, missing=lacks
                    )
                )
        if not triggered:
            return self._quiet, values
        quiet = self._quiet
        verdict = GuardrailVerdict(
            must_refuse=quiet.must_refuse, must_escalate=quiet.must_escalate, triggered=tuple(triggered)
        )
        return verdict, values


def _ways(answer: bool | ConditionFailure, *, lacks: bool) -> tuple[TriggerKind, ...]:  # noqa: FBT001  an answer
    """How the result of its condition triggers a guardrail."""
    if answer is True:
        return ("when",)
    if isinstance(answer, ConditionFailure) and not answer.missing:
        return ("error",)
    return ("missing",) if lacks else ()


def placed_guardrails(guardrails: Guardrails) -> Iterator[tuple[GuardrailKind, str, Guardrail]]:
    """Every guardrail with its kind and its place; a label alone has no condition."""
    for kind, entries in _kinds(guardrails):
        for n, guardrail in enumerate(entries):
            entry = guardrail if isinstance(guardrail, Guardrail) else Guardrail(id=guardrail)
            yield kind, f"/policy_layer/guardrails/{kind}/{n}", entry


def _kinds(guardrails: Guardrails) -> Iterator[tuple[GuardrailKind, tuple[str | Guardrail, ...]]]:
    yield "must_refuse", guardrails.must_refuse
    yield "must_escalate", guardrails.must_escalate
