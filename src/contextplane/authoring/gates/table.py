"""The gates in their order, and the report of a pack that they judge."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, get_args

from msgspec.structs import replace

from contextplane.authoring.gates import (
    allowance,
    arguments,
    evaluation,
    facts,
    guardrails_and_tone,
    integrity,
    intents,
    misplaced_content,
    policy,
    redaction,
    risk,
    schema,
    security,
    tenancy,
)
from contextplane.authoring.law import Finding, Gate, Law, Violation, redact_secrets
from contextplane.authoring.subject import Subject
from contextplane.authoring.texts import Identify
from contextplane.model.artifact import EnvironmentDescription
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = ["EVERY_LAW", "GATES", "LAWS", "Report", "judge_pack", "sort_findings"]

Check = Callable[[Subject], Iterable[Violation]]

GATES: tuple[Gate, ...] = get_args(Gate)
"""The gates in the order of the contract."""

LAWS: tuple[Law[Subject], ...] = tuple(
    chain.from_iterable(
        gate.LAWS
        for gate in (
            integrity,
            intents,
            policy,
            allowance,
            facts,
            guardrails_and_tone,
            redaction,
            misplaced_content,
            risk,
            arguments,
            tenancy,
            evaluation,
            security,
        )
    )
)
"""Every law about a pack of valid form."""

_CHECKS_BY_PART: tuple[tuple[str, tuple[tuple[Law[Subject], Check], ...]], ...] = tuple(
    (part, tuple((law, law.check) for law in LAWS if law.about == part))
    for part in dict.fromkeys(law.about for law in LAWS)
)
"""The laws and their checks, by the part of a pack that they are about; most are about no single part."""

_MAY_REPEAT_SECRETS = frozenset({"secret_present", "random_text_present", *(law.code for law in schema.LAWS)})
EVERY_LAW: tuple[Law[Any], ...] = (*schema.LAWS, *LAWS)


class Report(Value, frozen=True):
    """All findings, by gate, then by place. `not_run`: the gates that need a pack of valid form.

    `absent_parts`: the optional parts that the pack leaves out. Laws about them were skipped.
    """

    findings: tuple[Finding, ...]
    not_run: tuple[Gate, ...] = ()
    absent_parts: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no finding stops publication."""
        return not self.not_run and all(finding.severity != "error" for finding in self.findings)


def judge_pack(
    value: Json, environment: EnvironmentDescription | None = None, *, identify: Identify | None = None
) -> Report:
    """Run every gate over a context pack. The same document always gets the same report."""
    pack = schema.typed_or_problems(value, ContextPack)
    if not isinstance(pack, ContextPack):
        return Report(findings=sort_findings(pack), not_run=GATES[1:])
    subject = Subject(pack, value, environment, identify=identify)
    findings = [
        law.finding(violation)
        for part, checks in _CHECKS_BY_PART
        if not part or getattr(subject, part)
        for law, check in checks
        for violation in check(subject)
    ]
    return Report(findings=sort_findings(findings), absent_parts=pack.absent_parts)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by gate, then by place, and redact secrets where there may be any."""
    ordered = sorted(findings, key=lambda finding: (GATES.index(finding.gate), finding.at, finding.code, finding.cause))
    # A document of the wrong form was not searched for secrets.
    if not _MAY_REPEAT_SECRETS.isdisjoint([finding.code for finding in ordered]):
        ordered = [
            replace(finding, cause=redact_secrets(finding.cause), cure=redact_secrets(finding.cure))
            for finding in ordered
        ]
    return tuple(ordered)
