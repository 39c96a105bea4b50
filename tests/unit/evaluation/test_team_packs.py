"""Packs as teams write them do what their authors meant: each request, call, approval and claim of their tables."""

from contextplane.app.packs.lint import lint
from contextplane.evaluation.case_coverage import measure_coverage
from contextplane.evaluation.case_run import run_table
from tests.support.cases import cases
from tests.support.pack_tables import FOLDER, NAMES, pack_table, source_of

LEAST_CASES = 12
WARNED = {
    "support": ("evidence_attested_by_request", "guardrail_by_signal_only", "guardrail_by_signal_only"),
    "kyc": ("evidence_attested_by_request",),
    "oncall": ("tool_surface_wide",),
}
"""The warnings of a pack. A comment in the pack says why its authors accept each."""


@cases("name", NAMES)
def test_a_pack_does_what_its_authors_meant(name: str) -> None:
    table = pack_table(name)
    assert len(table.table.cases) >= LEAST_CASES
    assert list(table.failures()) == []


@cases("name", NAMES)
def test_a_pack_passes_the_gates_without_an_unexplained_warning(name: str) -> None:
    report = lint(pack_table(name).file).report
    codes = sorted(finding.code for finding in report.findings if finding.severity in {"error", "warning"})
    assert codes == sorted(WARNED.get(name, ()))


@cases("name", NAMES)
def test_the_cases_of_a_pack_reach_every_rule_guardrail_and_gate(name: str) -> None:
    table = pack_table(name)
    source = source_of(table.file.file.value)
    outcomes = run_table(source, table.table_file, table.table, None)
    coverage = measure_coverage(source.pack, (outcome.draft for outcome in outcomes if outcome.draft is not None))
    assert coverage.percent == 100, coverage


def test_every_pack_of_the_folder_is_tested() -> None:
    assert {path.name.partition(".")[0] for path in FOLDER.iterdir()} == set(NAMES)
