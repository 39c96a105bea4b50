"""The gates for every kind of artifact: a pack, an overlay, a decision catalog. One report, of one form."""

from typing import Any, assert_never

from contextplane.authoring.diff.change import Change
from contextplane.authoring.diff.walk import compared
from contextplane.authoring.environment import Surroundings
from contextplane.authoring.finding import Finding, Law
from contextplane.authoring.gates import catalog, schema
from contextplane.authoring.gates.table import EVERY_LAW, GATES, Report, in_order, judged
from contextplane.authoring.overlay import laws
from contextplane.authoring.overlay.apply import OverlayMisplaced
from contextplane.authoring.overlay.laws import OverlaySubject
from contextplane.authoring.subject import CatalogSubject
from contextplane.authoring.texts import Identify
from contextplane.model.artifact import ArtifactKind, DecisionCatalog, Overlay
from contextplane.model.json.canonical import Json

__all__ = ["LAWS_OF", "changes_between", "judge"]

LAWS_OF: dict[ArtifactKind, tuple[Law[Any], ...]] = {
    "context_pack": EVERY_LAW,
    "overlay": (*schema.LAWS, *laws.LAWS),
    "decision_catalog": (*schema.LAWS, *catalog.LAWS),
}
"""Every law of every kind. What several kinds are held to is one law, with one code."""


def judge(
    kind: ArtifactKind,
    value: Json,
    surroundings: Surroundings | None = None,
    *,
    base: Json = None,
    identify: Identify | None = None,
) -> Report:
    """Run every gate of its kind over a document. `base`: the pack that an overlay is for, which it is applied to."""
    match kind:
        case "context_pack":
            return judged(value, surroundings, identify=identify)
        case "overlay":
            return _overlay(value, surroundings, base, identify)
        case "decision_catalog":
            return _catalog(value, surroundings, identify)
        case _:
            assert_never(kind)


def _catalog(value: Json, surroundings: Surroundings | None, identify: Identify | None) -> Report:
    typed = schema.typed_or_problems(value, DecisionCatalog)
    if not isinstance(typed, DecisionCatalog):
        return Report(findings=in_order(typed), not_run=GATES[1:])
    subject = CatalogSubject(typed, value, surroundings, identify=identify)
    return Report(findings=in_order(finding for law in catalog.LAWS for finding in law.findings(subject)))


def _overlay(value: Json, surroundings: Surroundings | None, base: Json, identify: Identify | None) -> Report:
    typed = schema.typed_or_problems(value, Overlay)
    if not isinstance(typed, Overlay):
        return Report(findings=in_order(typed), not_run=GATES[1:])
    subject = OverlaySubject(typed, value, base, identify=identify)
    findings = [finding for law in laws.LAWS for finding in law.findings(subject)]
    return Report(findings=in_order([*findings, *_brought_about(subject, surroundings)]))


def _brought_about(subject: OverlaySubject, surroundings: Surroundings | None) -> tuple[Finding, ...]:
    """What the gates find in the pack with the overlay, and not in the pack alone: an overlay may not break a pack."""
    view, base = subject.view, subject.base
    if base is None or view is None or isinstance(view, OverlayMisplaced):
        return ()
    before = judged(base, surroundings, identify=subject.identify).findings
    after = judged(view, surroundings, identify=subject.identify).findings
    known = {(finding.code, finding.cause) for finding in before}
    return tuple(finding for finding in after if (finding.code, finding.cause) not in known)


def changes_between(kind: ArtifactKind, old: Json, new: Json) -> tuple[Change, ...]:
    """Every difference between two versions of one artifact, each with what it does: what a new number is judged by.

    A catalog is compared as the layers of a pack that it adds to. Of an overlay nothing is known without its pack:
    every difference may loosen what the older one tightened.
    """
    if kind == "decision_catalog":
        return compared(_as_layers(old), _as_layers(new))
    return compared(old, new)


def _as_layers(value: Json) -> Json:
    """A catalog in the shape of a pack, so that the one table says what a difference does."""
    given = value if isinstance(value, dict) else {}
    return {
        "contract_meta": {"contract_name": given.get("catalog_id"), "issuer": given.get("issuer")},
        "pack_meta": {"pack_version": given.get("catalog_version"), "tenant": given.get("tenant")},
        "decision_layer": {"decision_specs": given.get("decision_specs", [])},
        "task_layer": {"task_templates": given.get("task_templates", [])},
        "intents": given.get("intents", []),
    }
