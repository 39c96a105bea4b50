"""Refresh triggers: what must run again when something changes that packs depend on, and which packs those are.

Both are tables. An action that nothing here can run yet is never taken for done: the refresh stays open, and says so.
"""

from collections.abc import Callable
from typing import ClassVar

from contextplane.authoring.finding import Finding
from contextplane.authoring.gates.table import Report
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import DecisionCatalog
from contextplane.model.context_pack import ContextPack
from contextplane.model.value import Value
from contextplane.registry.events import Trigger
from contextplane.registry.reports import Golden

__all__ = ["ACTIONS", "EVERY", "REQUIRED", "Action", "Ran", "RefreshNotFound", "action_named", "depends", "ran"]

EVERY = "*"
"""The dependency of which every pack has one: the model behind all runs, for example."""


class RefreshNotFound(ContextPlaneError):
    """No refresh of this version is open."""

    code: ClassVar[str] = "refresh_not_found"
    family: ClassVar[Family] = "not_found"


class Action(Value, frozen=True):
    """Something that must run: these `laws`, all of a `gate`, or `golden` cases. `absent`: why it cannot run yet."""

    laws: tuple[str, ...] = ()
    gate: str = ""
    golden: bool = False
    absent: str = ""


_NO_ONTOLOGY = "ontologies are not kept here yet"
_NO_EVALUATION = "scores need the evaluation of runs, which is not there yet"
_NO_MEMORY = "recall and write-back need the memory of runs, which is not there yet"

REQUIRED: dict[Trigger, tuple[str, ...]] = {
    "POLICY_BUNDLE_UPDATED": ("policy_lint", "golden_replay", "approval_gate_checks"),
    "ONTOLOGY_UPDATED": ("entity_types", "relationships", "ceid_namespaces", "evidence_mappings"),
    "ADAPTER_SCHEMA_UPDATED": ("tool_schema_validation", "arg_constraint_tests"),
    "DECISION_CATALOG_UPDATED": ("bindings", "outcomes", "required_evidence"),
    "MEMORY_POLICY_UPDATED": ("recall_and_write_back", "consent_checks"),
    "EVALUATOR_UPDATED": ("golden_replay", "score_deltas"),
    "MODEL_CONFIG_UPDATED": ("representative_replay",),
}
"""What each trigger asks for."""

ACTIONS: dict[str, Action] = {
    "policy_lint": Action(gate="policy"),
    "golden_replay": Action(golden=True),
    "approval_gate_checks": Action(
        laws=("rule_gate_unknown", "permission_gate_unknown", "gate_unsatisfiable", "destructive_without_gate")
    ),
    "entity_types": Action(absent=_NO_ONTOLOGY),
    "relationships": Action(absent=_NO_ONTOLOGY),
    "ceid_namespaces": Action(laws=("entity_without_namespace",)),
    "evidence_mappings": Action(laws=("required_evidence_unobtainable", "rule_requirement_unobtainable")),
    "tool_schema_validation": Action(
        laws=(
            "permission_adapter_unknown",
            "permission_capability_unknown",
            "capability_spec_unknown",
            "tool_schema_invalid",
        )
    ),
    "arg_constraint_tests": Action(
        laws=("argument_bounds_wrong", "task_argument_forbidden", "write_without_idempotency")
    ),
    "bindings": Action(laws=("decision_binding_unknown", "intent_without_decision", "task_template_unresolved")),
    "outcomes": Action(laws=("id_repeated", "decision_below_tool", "rule_above_decision")),
    "required_evidence": Action(laws=("required_evidence_unobtainable", "rule_requirement_unobtainable")),
    "recall_and_write_back": Action(absent=_NO_MEMORY),
    "consent_checks": Action(laws=("pii_write_back",)),
    "score_deltas": Action(absent=_NO_EVALUATION),
    "representative_replay": Action(golden=True),
}
"""What each action is here."""

_UNKNOWN = Action(absent="this runtime does not know it")


def action_named(name: str) -> Action:
    """What an action is; one that somebody asked for and nobody here knows is never taken for done."""
    return ACTIONS.get(name, _UNKNOWN)


class Ran(Value, frozen=True):
    """What came of an action: it passes when its laws found nothing, and nothing that cannot be told either."""

    passed: bool
    words: str
    findings: tuple[Finding, ...]


def ran(action: str, report: Report, golden: Golden | None = None) -> Ran | None:
    """What an action says of a document, by its gates and its golden cases; None when it could not run."""
    known = action_named(action)
    if known.golden:
        return _of_cases(golden)
    if known.absent:
        return None
    if report.not_run:
        return Ran(passed=False, words="the form is wrong", findings=report.findings)
    findings = tuple(finding for finding in report.findings if finding.code in known.laws or finding.gate == known.gate)
    bad = [finding for finding in findings if finding.severity != "warning"]
    words = f"{bad[0].cause} ({bad[0].code})" if bad else "nothing found"
    return Ran(passed=not bad, words=words, findings=findings)


def _of_cases(golden: Golden | None) -> Ran | None:
    if golden is None or golden.outcome == "not_run":
        return None
    return Ran(passed=golden.outcome == "passed", words=golden.words, findings=())


def depends(trigger: Trigger, pack: ContextPack, dependency: str, catalog: DecisionCatalog | None = None) -> bool:
    """Whether a pack depends on what changed. `catalog`: the one that did, for DECISION_CATALOG_UPDATED."""
    if dependency == EVERY:
        return True
    if trigger == "DECISION_CATALOG_UPDATED":
        return catalog is not None and _shares_decisions(pack, catalog)
    return dependency in _NAMES[trigger](pack)


def _shares_decisions(pack: ContextPack, catalog: DecisionCatalog) -> bool:
    mine = {decision_spec.decision_key for decision_spec in pack.decision_layer.decision_specs}
    bound = {
        rule.decision_binding
        for policy_bundle in pack.policy_layer.policy_bundles
        for rule in policy_bundle.policy_dsl.rules
    }
    return any(decision_spec.decision_key in mine | bound for decision_spec in catalog.decision_specs)


def _ontologies(pack: ContextPack) -> set[str]:
    ontology = pack.intelligence_refs.ontology
    return {ontology.namespace, f"{ontology.namespace}@{ontology.version}"}


_NAMES: dict[Trigger, Callable[[ContextPack], set[str]]] = {
    "POLICY_BUNDLE_UPDATED": lambda pack: {
        policy_bundle.bundle_id for policy_bundle in pack.policy_layer.policy_bundles
    },
    "ONTOLOGY_UPDATED": _ontologies,
    "ADAPTER_SCHEMA_UPDATED": lambda pack: {adapter.adapter_id for adapter in pack.tooling_layer.adapter_registry},
    "MEMORY_POLICY_UPDATED": lambda pack: {pack.pack_meta.tenant.tenant_id},
    "EVALUATOR_UPDATED": lambda pack: {release_gate.metric for release_gate in pack.evaluation_layer.release_gates},
    "MODEL_CONFIG_UPDATED": lambda pack: {pack.pack_meta.tenant.tenant_id},
}
"""By which names a pack depends on what changed; memory policies and models belong to a tenant."""
