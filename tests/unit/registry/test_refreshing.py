"""When something changes that packs depend on, they are named, what must run is said, and nothing is waved through."""

import json
from collections.abc import Sequence

import pytest

from contextplane.app.registry.refresh import open_refresh, run_refresh, versions_with_open_refresh
from contextplane.app.registry.release import retire
from contextplane.authoring.artifacts import LAWS_OF
from contextplane.authoring.gates.table import Report
from contextplane.authoring.law import Finding, Severity
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json
from contextplane.registry.artifacts import Candidate
from contextplane.registry.events import GoldenOutcome, RefreshReported, RefreshRequired, Trigger
from contextplane.registry.refresh import ACTIONS, REQUIRED_ACTIONS, action_result
from contextplane.registry.reports import GoldenResult
from contextplane.registry.streams import version_stream
from contextplane.registry.writer import PlannedChange
from contextplane.testing.proofs import proves
from tests.unit.authoring.packs import ENVIRONMENT
from tests.unit.registry.desk import CATALOG, ISSUER, NARROWER, PACK, Office, code, version
from tests.unit.trust.world import key_of

GATES = {law.gate for law in LAWS_OF["context_pack"]}
LAWS = {law.code for law in LAWS_OF["context_pack"]}
REF = PackRef.parse(PACK)
EXAMPLE_SPEC = version("1.0.0")["decision_layer"]["decision_specs"][0]


TRIGGERS = [
    ("POLICY_BUNDLE_UPDATED", "POLICY_RETURNS_V4", ["policy_lint", "golden_replay", "approval_gate_checks"]),
    ("ONTOLOGY_UPDATED", "ont.support", ["entity_types", "relationships", "ceid_namespaces", "evidence_mappings"]),
    ("ADAPTER_SCHEMA_UPDATED", "adp_orders", ["tool_schema_validation", "arg_constraint_tests"]),
    ("DECISION_CATALOG_UPDATED", "*", ["bindings", "outcomes", "required_evidence"]),
    ("MEMORY_POLICY_UPDATED", ISSUER, ["recall_and_write_back", "consent_checks"]),
    ("EVALUATOR_UPDATED", "safety", ["golden_replay", "score_deltas"]),
    ("MODEL_CONFIG_UPDATED", "*", ["representative_replay"]),
]


@proves("context-pack:refresh:policy-bundle-updated", case="POLICY_BUNDLE_UPDATED")
@proves("context-pack:refresh:ontology-updated", case="ONTOLOGY_UPDATED")
@proves("context-pack:refresh:adapter-schema-updated", case="ADAPTER_SCHEMA_UPDATED")
@proves("context-pack:refresh:decision-catalog-updated", case="DECISION_CATALOG_UPDATED")
@proves("context-pack:refresh:memory-policy-updated", case="MEMORY_POLICY_UPDATED")
@proves("context-pack:refresh:evaluator-updated", case="EVALUATOR_UPDATED")
@proves("context-pack:refresh:model-config-updated", case="MODEL_CONFIG_UPDATED")
@pytest.mark.parametrize(("trigger", "dependency", "actions"), TRIGGERS, ids=[trigger for trigger, _, _ in TRIGGERS])
def test_a_trigger_opens_the_actions_of_the_contract_for_the_packs_concerned(
    here: Office, trigger: Trigger, dependency: str, actions: list[str]
) -> None:
    here.release()
    if trigger != "DECISION_CATALOG_UPDATED":
        assert open_refresh(here.desk, trigger, "something else", here.by("pub")).opened == ()
    opened = open_refresh(here.desk, trigger, dependency, here.by("pub"))
    assert opened.opened == (REF,)
    (state,) = versions_with_open_refresh(here.desk)
    assert [(open_refresh.trigger, list(open_refresh.outstanding)) for open_refresh in state.open_refreshes] == [
        (trigger, actions)
    ]
    again = open_refresh(here.desk, trigger, dependency, here.by("pub"))
    assert (again.opened, again.before) == ((), (REF,))


@proves("context-pack:refresh:dependency-change-marks-version")
def test_every_version_in_use_that_depends_on_it_is_marked_and_no_other(here: Office) -> None:
    here.release()
    second = here.release(version("1.1.0", NARROWER))
    third = here.release(version("1.2.0", NARROWER))
    retire(here.desk, second, "deprecated", here.by("pub"))
    opened = open_refresh(here.desk, "ADAPTER_SCHEMA_UPDATED", "adp_orders", here.by("pub"))
    assert opened.opened == (REF, third)


def test_what_is_not_this_keys_to_say_is_named_and_left(here: Office) -> None:
    here.release()
    here.trust("gpub", "publisher", issuer="globex")
    opened = open_refresh(here.desk, "MODEL_CONFIG_UPDATED", "*", here.by("gpub"))
    assert (opened.opened, opened.left) == ((), (REF,))


def test_a_refresh_closes_when_every_action_ran_and_passed_and_its_reports_are_stored(here: Office) -> None:
    here.release()
    open_refresh(here.desk, "ADAPTER_SCHEMA_UPDATED", "adp_orders", here.by("pub"))
    assert code(lambda: here.pin("prod", REF)) == "refresh_open"
    outcomes = run_refresh(here.desk, REF, here.by("pub"))
    assert [(outcome.action, outcome.passed) for outcome in outcomes] == [
        ("tool_schema_validation", True),
        ("arg_constraint_tests", True),
    ]
    assert versions_with_open_refresh(here.desk) == ()
    here.pin("prod", REF)
    with here.desk.read() as reader:
        changes = [event.change for event in reader.history(version_stream(REF))]
    reports = [change.report for change in changes if isinstance(change, RefreshReported)]
    documents = [json.loads(here.desk.platform.objects.get(Digest.parse(report))) for report in reports]
    assert [(document["action"], document["passed"], document["ref"]) for document in documents] == [
        ("tool_schema_validation", True, PACK),
        ("arg_constraint_tests", True, PACK),
    ]
    assert code(lambda: run_refresh(here.desk, REF, here.by("pub"))) == "refresh_not_found"


@pytest.mark.parametrize(
    ("trigger", "dependency", "done", "waits"),
    [
        ("POLICY_BUNDLE_UPDATED", "POLICY_RETURNS_V4", {"policy_lint", "approval_gate_checks"}, {"golden_replay"}),
        ("EVALUATOR_UPDATED", "policy", set(), {"golden_replay", "score_deltas"}),
        ("MODEL_CONFIG_UPDATED", "*", set(), {"representative_replay"}),
        ("MEMORY_POLICY_UPDATED", "*", {"consent_checks"}, {"recall_and_write_back"}),
        (
            "ONTOLOGY_UPDATED",
            "ont.support",
            {"ceid_namespaces", "evidence_mappings"},
            {"entity_types", "relationships"},
        ),
    ],
)
def test_what_cannot_run_yet_keeps_a_refresh_open_and_says_why(
    here: Office, trigger: Trigger, dependency: str, done: set[str], waits: set[str]
) -> None:
    here.release()
    open_refresh(here.desk, trigger, dependency, here.by("pub"))
    outcomes = run_refresh(here.desk, REF, here.by("pub"), ENVIRONMENT)
    assert {outcome.action for outcome in outcomes if outcome.passed} == done
    assert {outcome.action for outcome in outcomes if outcome.passed is None} == waits
    assert all(outcome.words for outcome in outcomes if outcome.passed is None)
    (state,) = versions_with_open_refresh(here.desk)
    assert set(state.open_refreshes[0].outstanding) == waits
    assert code(lambda: here.pin("prod", REF)) == "refresh_open"


class Cases:
    """Golden cases that end in some way."""

    def __init__(self, outcome: GoldenOutcome) -> None:
        self.outcome = outcome

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> GoldenResult:
        return GoldenResult(
            outcome=self.outcome, words=f"{ref}: {len(str(value)) + len(catalogs)}", cases=("refund_3001",)
        )


def test_golden_cases_close_a_refresh_when_they_pass_and_not_before(here: Office) -> None:
    here.release()
    open_refresh(here.desk, "MODEL_CONFIG_UPDATED", "*", here.by("pub"))
    for outcome, expected in (("not_run", None), ("failed", False), ("passed", True)):
        here.desk.golden = Cases(outcome)  # type: ignore[arg-type]
        (result,) = run_refresh(here.desk, REF, here.by("pub"))
        assert (result.action, result.passed) == ("representative_replay", expected)
        assert (versions_with_open_refresh(here.desk) == ()) is (expected is True)


def test_a_changed_catalog_is_checked_together_with_the_pack(here: Office) -> None:
    here.release()
    spec = {**EXAMPLE_SPEC, "allowed_outcomes": ["approved", "denied"]}
    catalog = {**CATALOG, "decision_specs": [*CATALOG["decision_specs"], spec]}
    ref = here.release(catalog)
    opened = open_refresh(here.desk, "DECISION_CATALOG_UPDATED", str(ref), here.by("pub"))
    assert opened.opened == (REF,)
    outcomes = run_refresh(here.desk, REF, here.by("pub"))
    assert {outcome.passed for outcome in outcomes} == {False}
    assert all(outcome.words.startswith("merge_conflict") for outcome in outcomes)
    (state,) = versions_with_open_refresh(here.desk)
    assert state.open_refreshes[0].outstanding == REQUIRED_ACTIONS["DECISION_CATALOG_UPDATED"]


def test_a_catalog_that_changed_is_named_by_its_version(here: Office) -> None:
    here.release()
    by = here.by("pub")
    assert code(lambda: open_refresh(here.desk, "DECISION_CATALOG_UPDATED", "catalog", by)) == "pack_ref_unpinned"
    assert code(lambda: open_refresh(here.desk, "DECISION_CATALOG_UPDATED", "c@1.0.0", by)) == "version_not_found"
    assert code(lambda: open_refresh(here.desk, "DECISION_CATALOG_UPDATED", PACK, by)) == "refresh_not_found"


def test_only_a_publisher_of_the_issuer_reports_on_a_refresh(here: Office) -> None:
    here.release()
    open_refresh(here.desk, "ADAPTER_SCHEMA_UPDATED", "adp_orders", here.by("pub"))
    assert code(lambda: run_refresh(here.desk, REF, here.by("ops"))) == "registry_role_missing"


@pytest.mark.parametrize(("severity", "passed"), [("error", False), ("unknown", False), ("warning", True)])
def test_what_cannot_be_told_is_no_pass(severity: Severity, passed: bool) -> None:  # noqa: FBT001
    finding = Finding(gate="policy", code="fact_unknown", severity=severity, at="/x", cause="so", cure="mend it")
    result = action_result("policy_lint", Report(findings=(finding,)))
    assert result is not None
    assert (result.passed, result.findings) == (passed, (finding,))
    other = action_result("consent_checks", Report(findings=(finding,)))
    assert other is not None
    assert (other.passed, other.findings) == (True, ())


def test_every_action_is_known_and_made_of_laws_that_there_are() -> None:
    named = {action for actions in REQUIRED_ACTIONS.values() for action in actions}
    assert named == set(ACTIONS)
    for action in ACTIONS.values():
        assert set(action.laws) <= LAWS
        assert not action.gate or action.gate in GATES
        assert [bool(action.laws or action.gate), action.golden, bool(action.absent)].count(True) == 1


def test_an_action_that_nobody_here_knows_keeps_a_refresh_open_and_the_others_run(here: Office) -> None:
    ref = here.release()
    request = RefreshRequired(trigger="MEMORY_POLICY_UPDATED", dependency=ISSUER, actions=("dance", "consent_checks"))
    here.desk.act(key_of("pub"), [PlannedChange(stream=version_stream(ref), change=request, reason="why not")])
    outcomes = run_refresh(here.desk, ref, here.by("pub"), ENVIRONMENT)
    assert [(outcome.action, outcome.passed) for outcome in outcomes] == [("dance", None), ("consent_checks", True)]
    assert "does not know" in outcomes[0].words
    (waiting,) = versions_with_open_refresh(here.desk)
    assert waiting.open_refreshes[0].outstanding == ("dance",)
