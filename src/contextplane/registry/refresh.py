"""Refresh triggers: the actions to run when a dependency changes, and the packs that depend on it.

Both are tables. An action that cannot run yet never counts as done: the refresh stays open, and says so.
"""

from collections.abc import Callable
from typing import ClassVar

from contextplane.authoring.gates.table import Report
from contextplane.authoring.law import Finding
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import DecisionCatalog
from contextplane.model.context_pack import ContextPack
from contextplane.model.keys import OWNER
from contextplane.model.value import Value
from contextplane.registry.authority import PUBLISHER
from contextplane.registry.events import Trigger
from contextplane.registry.reader import RegistryReader
from contextplane.registry.reports import GoldenResult
from contextplane.registry.streams import versions_of
from contextplane.registry.version_state import Refresh, VersionState

__all__ = [
    "ACTIONS",
    "EVERY",
    "REQUIRED_ACTIONS",
    "ActionOutcome",
    "ActionResult",
    "RefreshAction",
    "RefreshNotFound",
    "action_by_name",
    "action_outcome",
    "action_result",
    "depends_on",
    "may_refresh",
    "run_action",
    "versions_in_use",
]

EVERY = "*"
"""A dependency of every pack, for example the model behind all runs."""


class RefreshNotFound(ContextPlaneError):
    """No refresh of this version is open."""

    code: ClassVar[str] = "refresh_not_found"
    family: ClassVar[Family] = "not_found"


class RefreshAction(Value, frozen=True):
    """An action: check these `laws`, all of a `gate`, or `golden` cases. `absent`: why it cannot run."""

    laws: tuple[str, ...] = ()
    gate: str = ""
    golden: bool = False
    absent: str = ""


_NO_ONTOLOGY = "ontologies are not kept here yet"
_NO_EVALUATION = "scores need the evaluation of runs, which is not there yet"
_NO_MEMORY = "recall and write-back need the memory of runs, which is not there yet"

REQUIRED_ACTIONS: dict[Trigger, tuple[str, ...]] = {
    "POLICY_BUNDLE_UPDATED": ("policy_lint", "golden_replay", "approval_gate_checks"),
    "ONTOLOGY_UPDATED": ("entity_types", "relationships", "ceid_namespaces", "evidence_mappings"),
    "ADAPTER_SCHEMA_UPDATED": ("tool_schema_validation", "arg_constraint_tests"),
    "DECISION_CATALOG_UPDATED": ("bindings", "outcomes", "required_evidence"),
    "MEMORY_POLICY_UPDATED": ("recall_and_write_back", "consent_checks"),
    "EVALUATOR_UPDATED": ("golden_replay", "score_deltas"),
    "MODEL_CONFIG_UPDATED": ("representative_replay",),
}
"""The actions that each trigger requires."""

ACTIONS: dict[str, RefreshAction] = {
    "policy_lint": RefreshAction(gate="policy"),
    "golden_replay": RefreshAction(golden=True),
    "approval_gate_checks": RefreshAction(
        laws=("rule_gate_unknown", "permission_gate_unknown", "gate_unsatisfiable", "destructive_without_gate")
    ),
    "entity_types": RefreshAction(absent=_NO_ONTOLOGY),
    "relationships": RefreshAction(absent=_NO_ONTOLOGY),
    "ceid_namespaces": RefreshAction(laws=("entity_without_namespace",)),
    "evidence_mappings": RefreshAction(laws=("required_evidence_unobtainable", "rule_requirement_unobtainable")),
    "tool_schema_validation": RefreshAction(
        laws=(
            "permission_adapter_unknown",
            "permission_capability_unknown",
            "capability_spec_unknown",
            "tool_schema_invalid",
        )
    ),
    "arg_constraint_tests": RefreshAction(
        laws=("argument_bounds_wrong", "task_argument_forbidden", "write_without_idempotency")
    ),
    "bindings": RefreshAction(laws=("decision_binding_unknown", "intent_without_decision", "task_template_unresolved")),
    "outcomes": RefreshAction(laws=("id_repeated", "decision_below_tool", "rule_above_decision")),
    "required_evidence": RefreshAction(laws=("required_evidence_unobtainable", "rule_requirement_unobtainable")),
    "recall_and_write_back": RefreshAction(absent=_NO_MEMORY),
    "consent_checks": RefreshAction(laws=("pii_write_back",)),
    "score_deltas": RefreshAction(absent=_NO_EVALUATION),
    "representative_replay": RefreshAction(golden=True),
}
"""The definition of each action."""

_UNKNOWN = RefreshAction(absent="this runtime does not know it")


def action_by_name(name: str) -> RefreshAction:
    """The definition of an action; an unknown one cannot run, so it never counts as done."""
    return ACTIONS.get(name, _UNKNOWN)


class ActionResult(Value, frozen=True):
    """The result of an action. It passes if its laws found nothing, undecided findings included."""

    passed: bool
    words: str
    findings: tuple[Finding, ...]


class ActionOutcome(Value, frozen=True):
    """The outcome of one action of a refresh. `passed`: None if the action cannot run yet."""

    refresh: int
    trigger: str
    action: str
    passed: bool | None
    words: str


def action_result(action: str, report: Report, golden: GoldenResult | None = None) -> ActionResult | None:
    """The result of an action, from a gate report and golden cases; None if it cannot run."""
    definition = action_by_name(action)
    if definition.golden:
        return _golden_result(golden)
    if definition.absent:
        return None
    if report.not_run:
        return ActionResult(passed=False, words="the schema is violated", findings=report.findings)
    findings = tuple(
        finding for finding in report.findings if finding.code in definition.laws or finding.gate == definition.gate
    )
    problems = [finding for finding in findings if finding.severity != "warning"]
    words = f"{problems[0].cause} ({problems[0].code})" if problems else "nothing found"
    return ActionResult(passed=not problems, words=words, findings=findings)


def _golden_result(golden: GoldenResult | None) -> ActionResult | None:
    if golden is None or golden.outcome == "not_run":
        return None
    return ActionResult(passed=golden.outcome == "passed", words=golden.words, findings=())


def run_action(action: str, report: Report | ContextPlaneError, golden: GoldenResult | None) -> ActionResult | None:
    """The result of an action; an error instead of a report is a failure. None if the action cannot run."""
    if not isinstance(report, ContextPlaneError):
        return action_result(action, report, golden)
    if action_by_name(action).absent:
        return None
    return ActionResult(passed=False, words=f"{report.code}: {report.message}", findings=())


def action_outcome(
    refresh: Refresh, action: str, result: ActionResult | None, golden: GoldenResult | None
) -> ActionOutcome:
    """The outcome of an action for people: its result, or why it cannot run."""
    reason = action_by_name(action).absent or (golden.words if golden is not None else "")
    return ActionOutcome(
        refresh=refresh.opened,
        trigger=refresh.trigger,
        action=action,
        passed=None if result is None else result.passed,
        words=reason if result is None else result.words,
    )


def versions_in_use(reader: RegistryReader) -> list[VersionState]:
    """The versions that may take new traffic."""
    return [version for ref in versions_of(reader) if (version := reader.version(ref)).serves("new_traffic")]


def may_refresh(reader: RegistryReader, key_id: str, version: VersionState) -> bool:
    """Whether a key may open a refresh of a version: it is a publisher or owner of its issuer."""
    keys = reader.keyrings.now.issuer(version.publication.issuer)
    key = keys.key(key_id) if keys is not None else None
    return key is not None and bool({PUBLISHER, OWNER} & {*key.roles})


def depends_on(trigger: Trigger, pack: ContextPack, dependency: str, catalog: DecisionCatalog | None = None) -> bool:
    """Whether a pack depends on what changed. `catalog`: the changed one, for DECISION_CATALOG_UPDATED."""
    if dependency == EVERY:
        return True
    if trigger == "DECISION_CATALOG_UPDATED":
        return catalog is not None and _shares_decisions(pack, catalog)
    return dependency in _NAMES[trigger](pack)


def _shares_decisions(pack: ContextPack, catalog: DecisionCatalog) -> bool:
    own = {decision_spec.decision_key for decision_spec in pack.decision_layer.decision_specs}
    bound = {
        rule.decision_binding
        for policy_bundle in pack.policy_layer.policy_bundles
        for rule in policy_bundle.policy_dsl.rules
    }
    return any(decision_spec.decision_key in own | bound for decision_spec in catalog.decision_specs)


def _ontologies(pack: ContextPack) -> set[str]:
    name = pack.intelligence_refs.pinned_ontology
    return set() if name is None else {name.partition("@")[0], name}


_NAMES: dict[Trigger, Callable[[ContextPack], set[str]]] = {
    "POLICY_BUNDLE_UPDATED": lambda pack: {
        policy_bundle.bundle_id for policy_bundle in pack.policy_layer.policy_bundles
    },
    "ONTOLOGY_UPDATED": _ontologies,
    "ADAPTER_SCHEMA_UPDATED": lambda pack: {adapter.adapter_id for adapter in pack.tooling_layer.adapter_registry},
    "MEMORY_POLICY_UPDATED": lambda pack: {pack.pack_meta.tenant.tenant_id} if pack.memory_layer else set(),
    "EVALUATOR_UPDATED": lambda pack: {release_gate.metric for release_gate in pack.evaluation_layer.release_gates},
    "MODEL_CONFIG_UPDATED": lambda pack: {pack.pack_meta.tenant.tenant_id},
}
"""The names of what a pack depends on, by trigger; memory policies and models belong to a tenant."""
