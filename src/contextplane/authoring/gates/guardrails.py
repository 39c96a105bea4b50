"""Guardrails: what they name says one thing, and something knows how to do it."""

from collections.abc import Iterator

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.nearest import nearest
from contextplane.authoring.subject import Subject
from contextplane.policy.redactions import REDACTIONS

__all__ = ["LAWS"]

_AT = "/policy_layer/guardrails"
_CLASSIFIED = frozenset({"CONFIDENTIAL", "RESTRICTED"})


def guardrails_say_one_thing(subject: Subject) -> Iterator[Broken]:
    """No guardrail is to be refused and escalated both: a run can end in one of the two."""
    guardrails = subject.pack.policy_layer.guardrails
    refused = {one if isinstance(one, str) else one.id for one in guardrails.must_refuse}
    for n, one in enumerate(guardrails.must_escalate):
        name = one if isinstance(one, str) else one.id
        if name in refused:
            yield Broken(
                at=f"{_AT}/must_escalate/{n}",
                cause=f"{name} is in must_refuse as well, so nobody would ever be asked",
                cure="keep it in one of the two",
            )


def redactions_are_known(subject: Subject) -> Iterator[Broken]:
    """Every redaction rule names something that the redactor finds: another name would protect nothing."""
    for n, name in enumerate(subject.pack.policy_layer.guardrails.redaction_rules):
        if name not in REDACTIONS:
            yield Broken(
                at=f"{_AT}/redaction_rules/{n}",
                cause=f"no redactor finds {name!r}, so nothing would be taken out",
                cure=nearest(name, REDACTIONS, "name one of those that there are"),
            )


def classified_data_is_redacted(subject: Subject) -> Iterator[Broken]:
    """A pack for confidential or restricted data says what is taken out before it leaves."""
    classification = subject.pack.pack_meta.data_classification
    if classification in _CLASSIFIED and not subject.pack.policy_layer.guardrails.redaction_rules:
        yield Broken(
            at=f"{_AT}/redaction_rules",
            cause=f"the data is {classification}, and nothing is redacted from traces, exports and calls",
            cure="name what must be taken out in redaction_rules",
        )


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="policy", code="guardrail_ambiguous", check=guardrails_say_one_thing),
    Law(gate="security", code="redaction_unknown", check=redactions_are_known),
    Law(gate="security", code="classified_unredacted", check=classified_data_is_redacted, severity="warning"),
)
