"""The laws about redaction, which belong to the security gate.

A redaction rule exists and can act in the pack; a mark in a schema names a rule that exists.
"""

from collections.abc import Iterator
from typing import Any

from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import Subject
from contextplane.model.pack_layers import JsonSchema
from contextplane.model.suggestion import did_you_mean
from contextplane.policy.logic.expression import variables
from contextplane.policy.redaction.rules import REDACTIONS, RULES, FieldNames
from contextplane.policy.redaction.schema_marks import KEYWORD, find_marks

__all__ = ["LAWS"]

_RULES_AT = "/policy_layer/guardrails/redaction_rules"
_CLASSIFIED = frozenset({"CONFIDENTIAL", "RESTRICTED"})
_WEAK = frozenset(rule.name for rule in RULES if rule.weak)


def redactions_are_known(subject: Subject) -> Iterator[Violation]:
    """Every redaction rule names something that the redactor finds: another name would protect nothing."""
    for n, name in enumerate(subject.pack.policy_layer.guardrails.redaction_rules):
        if name not in REDACTIONS:
            yield Violation(
                at=f"{_RULES_AT}/{n}",
                cause=f"no redactor finds {name!r}, so nothing would be taken out",
                cure=did_you_mean(name, REDACTIONS, "name one of those that there are"),
            )


def marks_are_known(subject: Subject) -> Iterator[Violation]:
    """Every `x-redact` in a schema is true, false or the name of a redaction rule."""
    for at, _, _, schema in subject.capability_schemas:
        for place, mark in find_marks(schema):
            if isinstance(mark, bool) or (isinstance(mark, str) and mark in REDACTIONS):
                continue
            yield Violation(
                at=at + place,
                cause=f"{KEYWORD} names no redaction rule: {str(mark)[:60]!a}",
                cure=did_you_mean(str(mark), REDACTIONS, "write true, or the name of a rule"),
            )


def redactions_can_act(subject: Subject) -> Iterator[Violation]:
    """A rule for data without a shape of its own has a field or a mark in the pack that it can act by."""
    rules = subject.pack.policy_layer.guardrails.redaction_rules
    weak = [(n, name) for n, name in enumerate(rules) if name in _WEAK]
    if not weak:
        return
    fields = FieldNames(_WEAK)
    schemas = [schema for *_, schema in subject.capability_schemas]
    acting = {
        fields.rule(name) for name in (*_fact_names(subject), *_property_names(schemas), *_argument_names(subject))
    }
    acting |= {mark for schema in schemas for _, mark in find_marks(schema) if isinstance(mark, str)}
    for n, name in weak:
        if name not in acting:
            yield Violation(
                at=f"{_RULES_AT}/{n}",
                cause=f"no schema and no condition of this pack names a field for {name}, which has no shape",
                cure=f"mark the properties that hold it with {KEYWORD}: {name}",
            )


def classified_data_is_redacted(subject: Subject) -> Iterator[Violation]:
    """A pack for confidential or restricted data says what is taken out before it leaves."""
    classification = subject.pack.pack_meta.data_classification
    if classification in _CLASSIFIED and not subject.pack.policy_layer.guardrails.redaction_rules:
        yield Violation(
            at=_RULES_AT,
            cause=f"the data is {classification}, and nothing is redacted from traces, exports and calls",
            cure="name what must be taken out in redaction_rules",
        )


def _property_names(schemas: list[JsonSchema]) -> Iterator[str]:
    """Yield the name of every property in some schemas."""
    todo: list[Any] = [*schemas]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            properties = part.get("properties")
            yield from properties if isinstance(properties, dict) else ()
            todo += part.values()
        elif isinstance(part, list):
            todo += part


def _argument_names(subject: Subject) -> Iterator[str]:
    """Yield the name of every argument of the capabilities that list theirs."""
    for placed in subject.capability_specs:
        yield from placed.spec.arguments or ()


def _fact_names(subject: Subject) -> Iterator[str]:
    """Yield the last name of every fact that a rule or a guardrail reads."""
    guardrails = subject.pack.policy_layer.guardrails
    entries = (*guardrails.must_refuse, *guardrails.must_escalate)
    for condition in (
        *(placed.rule.condition for placed in subject.rules),
        *(guardrail.when for guardrail in entries if not isinstance(guardrail, str)),
    ):
        yield from (path.rpartition(".")[2] for path in variables(condition))


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="security", code="redaction_unknown", check=redactions_are_known),
    Law(gate="security", code="redact_mark_unknown", check=marks_are_known, about="capability_specs"),
    Law(gate="security", code="redaction_idle", check=redactions_can_act, severity="warning"),
    Law(gate="security", code="classified_unredacted", check=classified_data_is_redacted, severity="warning"),
)
