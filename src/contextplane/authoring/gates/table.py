"""The gates in their order, and what a document is judged by them to be."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, get_args

from msgspec.structs import replace

from contextplane.authoring.environment import Surroundings
from contextplane.authoring.finding import Finding, Gate, Law, without_secrets
from contextplane.authoring.gates import (
    evaluation,
    integrity,
    misplaced_content,
    policy,
    policy_wording,
    risk,
    schema,
    security,
    tenancy,
)
from contextplane.authoring.subject import Subject
from contextplane.authoring.texts import Identify
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = ["EVERY_LAW", "GATES", "LAWS", "Report", "in_order", "judged"]

GATES: tuple[Gate, ...] = get_args(Gate)
"""The order of the contract."""

LAWS: tuple[Law[Subject], ...] = tuple(
    chain.from_iterable(
        gate.LAWS
        for gate in (integrity, policy, policy_wording, misplaced_content, risk, tenancy, evaluation, security)
    )
)
"""Every law that looks at a pack whose form is right."""

_CHECKS = tuple((law, law.check) for law in LAWS)

_OF_SECRETS = frozenset({"secret_present", "random_text_present"})
EVERY_LAW: tuple[Law[Any], ...] = (*schema.LAWS, *LAWS)


class Report(Value, frozen=True):
    """All findings, by gate, then by place. `not_run`: gates that could not look, because the form is wrong."""

    findings: tuple[Finding, ...]
    not_run: tuple[Gate, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing stops publication."""
        return not self.not_run and all(finding.severity != "error" for finding in self.findings)


def judged(value: Json, surroundings: Surroundings | None = None, *, identify: Identify | None = None) -> Report:
    """Run every gate over a document. The same document always gets the same report."""
    pack = schema.typed_or_problems(value, ContextPack)
    if not isinstance(pack, ContextPack):
        return Report(findings=in_order(pack), not_run=GATES[1:])
    subject = Subject(pack, value, surroundings, identify=identify)
    return Report(findings=in_order([law.finding(violation) for law, check in _CHECKS for violation in check(subject)]))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By gate, then by place. Where a secret was found, or nobody could look for one, no finding repeats it."""
    found = sorted(findings, key=lambda finding: (GATES.index(finding.gate), finding.at, finding.code, finding.cause))
    if any(finding.gate == "schema" or finding.code in _OF_SECRETS for finding in found):
        found = [
            replace(finding, cause=without_secrets(finding.cause), cure=without_secrets(finding.cure))
            for finding in found
        ]
    return tuple(found)
