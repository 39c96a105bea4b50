"""The gates for every kind of artifact, pack, overlay and decision catalog, with one form of report.

The laws of a pack are those of the gates, the laws of an overlay are in `overlay.laws`. A decision catalog is held to
what the gates ask of decisions and task templates anywhere, and to two laws about its intents, which are here.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, assert_never

from contextplane.authoring.diff.tree import Change
from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates import facts, integrity, misplaced_content, policy, risk, schema, security, tenancy
from contextplane.authoring.gates.table import EVERY_LAW, GATES, Report, judge_pack, sort_findings
from contextplane.authoring.law import Finding, Law, Violation
from contextplane.authoring.overlay import laws
from contextplane.authoring.overlay.laws import OverlaySubject
from contextplane.authoring.overlay.resolved_view import OverlayMisplaced
from contextplane.authoring.subject import CatalogSubject
from contextplane.authoring.texts import Identify
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import ArtifactKind, DecisionCatalog, EnvironmentDescription, Overlay
from contextplane.model.json.canonical import Json
from contextplane.model.suggestion import did_you_mean

__all__ = ["LAWS_OF", "LawUnknown", "changes_between", "find_law", "judge"]


class LawUnknown(ContextPlaneError):
    """A name that neither a gate, nor a law, nor an error has."""

    code: ClassVar[str] = "law_unknown"
    family: ClassVar[Family] = "not_found"


def templates_serve_an_intent_of_the_catalog(subject: CatalogSubject) -> Iterator[Violation]:
    """Every task template is for an intent of the catalog."""
    for at, template in subject.templates:
        if template.intent not in subject.intents:
            yield integrity.undeclared_name(f"{at}/intent", "the intent", template.intent, subject.intents)


def eligible_templates_are_its_own(subject: CatalogSubject) -> Iterator[Violation]:
    """Every task template that an intent lists is one of the catalog, and is for that intent."""
    intents = {template.template_id: template.intent for _, template in subject.templates}
    for at, intent in subject.intents.values():
        for n, name in enumerate(intent.eligible_task_templates):
            place = f"{at}/eligible_task_templates/{n}"
            if name not in intents:
                yield integrity.undeclared_name(place, "the task template", name, intents)
            elif intents[name] != intent.intent_id:
                cause = f"{name} is a plan for {intents[name]}, not for {intent.intent_id}"
                yield Violation(at=place, cause=cause, cure="list it there, or write one for this intent")


_CATALOG_LAWS: tuple[Law[CatalogSubject], ...] = (
    *integrity.DECISION_LAWS,
    Law(gate="integrity", code="template_intent_unknown", check=templates_serve_an_intent_of_the_catalog),
    Law(gate="integrity", code="eligible_template_unknown", check=eligible_templates_are_its_own),
    *risk.DECISION_LAWS,
    *policy.DECISION_LAWS,
    *facts.DECISION_LAWS,
    *tenancy.DECISION_LAWS,
    *security.TEXT_LAWS,
    *misplaced_content.TEXT_LAWS,
)

LAWS_OF: dict[ArtifactKind, tuple[Law[Any], ...]] = {
    "context_pack": EVERY_LAW,
    "overlay": (*schema.LAWS, *laws.LAWS),
    "decision_catalog": (*schema.LAWS, *_CATALOG_LAWS),
}
"""Every law of every kind. A law that several kinds are held to is one law, with one code."""


def find_law(code: str) -> Law[Any]:
    """Return the law that a finding of this code breaks."""
    by_code = {law.code: law for of_kind in LAWS_OF.values() for law in of_kind}
    if code not in by_code:
        raise LawUnknown(
            f"no law has the code {code[:60]!r}", hint=did_you_mean(code, by_code, "see the codes that lint prints")
        )
    return by_code[code]


def judge(
    kind: ArtifactKind,
    value: Json,
    environment: EnvironmentDescription | None = None,
    *,
    base: Json = None,
    identify: Identify | None = None,
) -> Report:
    """Run every gate over a document of this kind. `base`: the pack that an overlay is applied to."""
    match kind:
        case "context_pack":
            return judge_pack(value, environment, identify=identify)
        case "overlay":
            return _judge_overlay(value, environment, base, identify)
        case "decision_catalog":
            return _judge_catalog(value, environment, identify)
        case _:
            assert_never(kind)


def _judge_catalog(value: Json, environment: EnvironmentDescription | None, identify: Identify | None) -> Report:
    typed = schema.typed_or_problems(value, DecisionCatalog)
    if not isinstance(typed, DecisionCatalog):
        return Report(findings=sort_findings(typed), not_run=GATES[1:])
    subject = CatalogSubject(typed, value, environment, identify=identify)
    return Report(findings=sort_findings(finding for law in _CATALOG_LAWS for finding in law.findings(subject)))


def _judge_overlay(
    value: Json, environment: EnvironmentDescription | None, base: Json, identify: Identify | None
) -> Report:
    typed = schema.typed_or_problems(value, Overlay)
    if not isinstance(typed, Overlay):
        return Report(findings=sort_findings(typed), not_run=GATES[1:])
    subject = OverlaySubject(typed, value, base, identify=identify)
    findings = [finding for law in laws.LAWS for finding in law.findings(subject)]
    return Report(findings=sort_findings([*findings, *_findings_caused(subject, environment)]))


def _findings_caused(subject: OverlaySubject, environment: EnvironmentDescription | None) -> tuple[Finding, ...]:
    """Return the findings in the pack with the overlay that are not in the pack alone."""
    view, base = subject.view, subject.base
    if base is None or view is None or isinstance(view, OverlayMisplaced):
        return ()
    before = judge_pack(base, environment, identify=subject.identify).findings
    after = judge_pack(view, environment, identify=subject.identify).findings
    known = {(finding.code, finding.cause) for finding in before}
    return tuple(finding for finding in after if (finding.code, finding.cause) not in known)


def changes_between(kind: ArtifactKind, old: Json, new: Json) -> tuple[Change, ...]:
    """Return every change between two versions of an artifact. They decide its version class.

    A catalog is compared as the layers of a pack that it adds to. The effect of an overlay is unknown without its pack:
    every change may loosen what the older version tightened.
    """
    if kind == "decision_catalog":
        return compare_packs(_as_layers(old), _as_layers(new))
    return compare_packs(old, new)


def _as_layers(value: Json) -> Json:
    """Bring a catalog into the shape of a pack, so that one table has the effects of all changes."""
    catalog = value if isinstance(value, dict) else {}
    return {
        "contract_meta": {"contract_name": catalog.get("catalog_id"), "issuer": catalog.get("issuer")},
        "pack_meta": {"pack_version": catalog.get("catalog_version"), "tenant": catalog.get("tenant")},
        "decision_layer": {"decision_specs": catalog.get("decision_specs", [])},
        "task_layer": {"task_templates": catalog.get("task_templates", [])},
        "intents": catalog.get("intents", []),
    }
