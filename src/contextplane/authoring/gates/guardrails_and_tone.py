"""The laws about guardrails and tone, which belong to the policy gate.

A guardrail is refused or escalated, not both. The tone of the final text overrides no policy, does not hide the state
of a run, and names nothing internal.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack import Audience, ToneAndComms

__all__ = ["LAWS"]

_GUARDRAILS_AT = "/policy_layer/guardrails"


def guardrails_say_one_thing(subject: Subject) -> Iterator[Violation]:
    """No guardrail is to be refused and escalated both: a run can end in one of the two."""
    guardrails = subject.pack.policy_layer.guardrails
    refused = {guardrail if isinstance(guardrail, str) else guardrail.id for guardrail in guardrails.must_refuse}
    for n, guardrail in enumerate(guardrails.must_escalate):
        name = guardrail if isinstance(guardrail, str) else guardrail.id
        if name in refused:
            yield Violation(
                at=f"{_GUARDRAILS_AT}/must_escalate/{n}",
                cause=f"{name} is in must_refuse as well, so the gate is never reached",
                cure="keep it in one of the two",
            )


def guardrails_have_a_condition(subject: Subject) -> Iterator[Violation]:
    """Every guardrail says when it is triggered: a label alone waits for a caller's signal."""
    guardrails = subject.pack.policy_layer.guardrails
    for kind, entries in (("must_refuse", guardrails.must_refuse), ("must_escalate", guardrails.must_escalate)):
        for n, guardrail in enumerate(entries):
            if isinstance(guardrail, str) or guardrail.when is None:
                name = guardrail if isinstance(guardrail, str) else guardrail.id
                yield Violation(
                    at=f"{_GUARDRAILS_AT}/{kind}/{n}",
                    cause=f"{name} of {kind} has no when: only a caller's signal triggers it",
                    cure=f"write {{id: {name}, when: ...}} with the facts that trigger it",
                )


_GUARDRAIL_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="policy", code="guardrail_ambiguous", check=guardrails_say_one_thing),
    Law(gate="policy", code="guardrail_by_signal_only", check=guardrails_have_a_condition, severity="warning"),
)


# --- tone ---

_TONE_AT = "/tone_and_comms"
# Not compiled here: few packs hold a word that a match needs.
_OVERRIDES = (
    r"\b(?:ignore|override|bypass|circumvent|skip|disregard|regardless of)\s+(?:\w+\s+){0,2}"
    r"(?:polic(?:y|ies)|approvals?|gates?|guardrails?)\b"
)
_PASSING_OVER = ("ignore", "override", "bypass", "circumvent", "skip", "disregard", "regardless")
_STATE = r"\b(?:uncertain|unsure|pending|open approval|approval status|missing evidence|not yet approved|waiting)"
_STATES = ("uncertain", "unsure", "pending", "open approval", "approval s", "missing ev", "yet approved", "waiting")
_HIDES = rf"\b(?:hide|conceal|never (?:mention|say|admit)|do(?:n't| not) (?:mention|say|admit)).{{0,60}}{_STATE}"
_KEEPING_SILENT = ("hide", "conceal", "never ", "n't ", " not ")
_TELLS = rf"\b(?:mention|say|admit|explain|tell|disclose|reveal|show).{{0,60}}{_STATE}"


def tone_is_below_policy(subject: Subject) -> Iterator[Violation]:
    """No communication rule says to pass over policy, approvals or guardrails."""
    for at in _matching_places(_OVERRIDES, _PASSING_OVER, subject, "do"):
        cause = "this tells a run to ignore the policy"
        yield Violation(at=at, cause=cause, cure="change the policy, or describe how to phrase its verdict")


def tone_shows_where_a_run_stands(subject: Subject) -> Iterator[Violation]:
    """No communication rule hides that something is uncertain, or that an approval is open."""
    for at in (
        *_matching_places(_HIDES, _KEEPING_SILENT, subject, "do"),
        *_matching_places(_TELLS, _STATES, subject, "dont"),
    ):
        cause = "this hides how sure a decision is, or that it is still open"
        yield Violation(at=at, cause=cause, cure="let the answer say which approval or which evidence is missing")


def _matching_places(pattern: str, needs: tuple[str, ...], subject: Subject, field: str) -> Sequence[str]:
    """Return the places of the texts in one field that match a pattern. Each match holds one of `needs`."""
    if not any(map(subject.compute_once(_tone_prose)[field].__contains__, needs)):
        return ()
    texts = _tone_texts(subject.pack.tone_and_comms, field)
    return [at for at, text in texts if re.search(pattern, text, re.IGNORECASE)]


def _tone_prose(subject: Subject) -> Mapping[str, str]:
    """Map each field of the tone to its texts for all audiences, in small letters."""
    tone = subject.pack.tone_and_comms
    parts = [part for part in (tone, tone.customer_facing, tone.operator_facing) if part is not None]
    return {
        "do": "\n".join([text for part in parts for text in part.do]).lower(),
        "dont": "\n".join([text for part in parts for text in part.dont]).lower(),
    }


def customers_are_told_nothing_internal(subject: Subject) -> Iterator[Violation]:
    """What customers are told names no rule, no bundle and no gate of the pack."""
    tone = subject.pack.tone_and_comms
    if tone.customer_facing is None:
        return
    texts = list(_tone_texts(tone, "do", all_audiences=False))
    internal = {
        *subject.gates,
        *(rule.rule.rule_id for rule in subject.rules),
        *(rule.bundle.bundle_id for rule in subject.rules),
    }
    for at, text in texts:
        for name in sorted(internal.intersection(re.findall(r"[A-Za-z0-9_.:-]+", text))):
            cause = f"customers would read about {name}, which is internal"
            yield Violation(at=at, cause=cause, cure="use their words, or move it to operator_facing")


def _tone_texts(tone: ToneAndComms, field: str, *, all_audiences: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the texts in one field after their places: for all audiences, or for customers only."""
    parts: Sequence[tuple[str, ToneAndComms | Audience | None]] = (
        (_TONE_AT, tone if all_audiences else None),
        (f"{_TONE_AT}/customer_facing", tone.customer_facing),
        (f"{_TONE_AT}/operator_facing", tone.operator_facing if all_audiences else None),
    )
    for at, part in parts:
        texts: tuple[str, ...] = getattr(part, field) if part is not None else ()
        yield from ((f"{at}/{field}/{n}", text) for n, text in enumerate(texts))


_TONE_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="policy", code="tone_above_policy", check=tone_is_below_policy, severity="warning"),
    Law(gate="policy", code="tone_hides_state", check=tone_shows_where_a_run_stands, severity="warning"),
    Law(gate="policy", code="tone_tells_internals", check=customers_are_told_nothing_internal, severity="warning"),
)

LAWS: tuple[Law[Subject], ...] = (*_GUARDRAIL_LAWS, *_TONE_LAWS)
