"""The gates in their order, and what a document is judged by them to be."""

from itertools import chain
from typing import Any, get_args

from contextplane.authoring.finding import Finding, Gate, Law
from contextplane.authoring.gates import (
    belonging,
    compatibility,
    evaluation,
    integrity,
    policy,
    replay,
    risk,
    schema,
    security,
    tenancy,
)
from contextplane.authoring.subject import Subject
from contextplane.authoring.surroundings import Surroundings
from contextplane.authoring.texts import Identify
from contextplane.model.canonical import Json
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.value import Value

__all__ = ["EVERY_LAW", "GATES", "LAWS", "Report", "judged"]

GATES: tuple[Gate, ...] = get_args(Gate)
"""The order of the contract."""

LAWS: tuple[Law[Subject], ...] = tuple(
    chain.from_iterable(
        gate.LAWS for gate in (integrity, compatibility, policy, belonging, risk, tenancy, replay, evaluation, security)
    )
)
"""Every law that looks at a pack whose form is right."""


EVERY_LAW: tuple[Law[Any], ...] = (*schema.LAWS, *LAWS)


class Report(Value, frozen=True):
    """All findings, by gate, then by place. `not_run`: gates that could not look, because the form is wrong."""

    findings: tuple[Finding, ...]
    not_run: tuple[Gate, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing stops publication."""
        return not self.not_run and all(one.severity != "error" for one in self.findings)


def judged(value: Json, surroundings: Surroundings | None = None, *, identify: Identify | None = None) -> Report:
    """Run every gate over a document. The same document always gets the same report."""
    pack = schema.typed_or_problems(value, ContextPack)
    if not isinstance(pack, ContextPack):
        return Report(findings=_sorted(list(pack)), not_run=GATES[1:])
    subject = Subject(pack, value, surroundings, identify=identify)
    return Report(findings=_sorted([law.finding(one) for law in LAWS for one in law.check(subject)]))


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda one: (GATES.index(one.gate), one.at, one.code, one.cause)))
