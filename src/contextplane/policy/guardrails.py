"""Guardrails: refusals and escalations, judged before ordinary policy and never overridden by it."""

from collections.abc import Iterator, Sequence
from typing import cast

from contextplane.model.context_pack import Guardrail, Guardrails
from contextplane.model.json.canonical import Json
from contextplane.policy.decision import GuardrailKind, GuardrailVerdict, TriggeredGuardrail, TriggerKind
from contextplane.policy.facts import Facts
from contextplane.policy.logic.condition import Condition, Conditions, Failure

__all__ = ["GuardrailProgram", "placed_guardrails"]


class GuardrailProgram:
    """The guardrails of a pack with their conditions compiled. None of these has a problem."""

    def __init__(self, guardrails: Guardrails) -> None:
        self._entries = tuple((kind, guardrail) for kind, _, guardrail in placed_guardrails(guardrails))
        self._conditional = [n for n, (_, guardrail) in enumerate(self._entries) if guardrail.when is not None]
        self._conditions = Conditions([Condition(self._entries[n][1].when) for n in self._conditional])
        self._quiet = GuardrailVerdict(
            must_refuse=tuple(guardrail.id for kind, guardrail in self._entries if kind == "must_refuse"),
            must_escalate=tuple(guardrail.id for kind, guardrail in self._entries if kind == "must_escalate"),
        )

    def judge(self, facts: Facts) -> tuple[GuardrailVerdict, Sequence[Json]]:
        """Which of them speak; and the values that this was decided by.

        A guardrail is triggered when its `when` holds, when `request.context.signals` names it, or when
        `request.context.<label>` is given and not false. One whose `when` cannot be judged is triggered as well, and so
        is one that does not hold and missed a fact: nobody escapes it by leaving that out.
        """
        values: Sequence[Json] = ()
        answers: dict[int, bool | Failure] = {}
        missing: dict[int, tuple[str, ...]] = {}
        if self._conditional:
            judged = self._conditions.judge(facts)
            values = judged.values
            for place, (n, answer) in enumerate(zip(self._conditional, judged.answers, strict=True)):
                answers[n] = judged.failures.get(place, answer)
            if judged.lacks:
                missed = self._conditions.missed(range(len(self._conditional)), judged, facts)
                missing = {self._conditional[place]: tuple(names) for place, names in missed.items()}
        context = facts.context
        signals = cast("list[str]", context.get("signals") or [])
        triggered = []
        for n, (kind, guardrail) in enumerate(self._entries):
            failure, lacks = answers.get(n, False), missing.get(n, ())
            by = (
                *_ways(failure, lacks=bool(lacks)),
                *(("signal",) if guardrail.id in signals else ()),
                # What is given and is no plain no cannot be judged.
                *(("label",) if context.get(guardrail.id, False) is not False else ()),
            )
            if by:
                error = failure.why if isinstance(failure, Failure) else None
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


def _ways(answer: bool | Failure, *, lacks: bool) -> tuple[TriggerKind, ...]:  # noqa: FBT001  an answer
    """In which way its condition triggers it."""
    if answer is True:
        return ("when",)
    if answer is not False:
        return ("error",)
    return ("missing",) if lacks else ()


def placed_guardrails(guardrails: Guardrails) -> Iterator[tuple[GuardrailKind, str, Guardrail]]:
    """Every guardrail with its kind and its place; a label alone is one without a condition."""
    for kind, entries in _kinds(guardrails):
        for n, guardrail in enumerate(entries):
            entry = guardrail if isinstance(guardrail, Guardrail) else Guardrail(id=guardrail)
            yield kind, f"/policy_layer/guardrails/{kind}/{n}", entry


def _kinds(guardrails: Guardrails) -> Iterator[tuple[GuardrailKind, tuple[str | Guardrail, ...]]]:
    yield "must_refuse", guardrails.must_refuse
    yield "must_escalate", guardrails.must_escalate
