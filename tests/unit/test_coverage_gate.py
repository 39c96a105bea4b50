"""The coverage gate, as CI runs it, on made-up reports."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from contextplane.testing.proofs import proves
from scripts.check_coverage import main

QUOTE = '"'
ROOT = Path(__file__).resolve().parents[2]
GATE = ROOT / "scripts" / "check_coverage.py"


def gate(
    tmp_path: Path, *, covered: object = 90, statements: object = 100, baseline: str | None
) -> subprocess.CompletedProcess[str]:
    report = tmp_path / "report.json"
    # Branches count in coverage's own percentage, and not here.
    totals = {"covered_lines": covered, "num_statements": statements, "percent_covered": 12.5}
    report.write_text(json.dumps({"totals": totals}), encoding="utf-8")
    return run_gate(tmp_path, report, baseline)


def run_gate(tmp_path: Path, report: Path, baseline: str | None) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "baseline.json"
    if baseline is not None:
        path.write_text(baseline, encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(report), str(path)])
    return subprocess.CompletedProcess(["check_coverage.py"], status, out.getvalue(), err.getvalue())


def at_least(percent: str) -> str:
    return f'{{"line_coverage_percent": {percent}, "rationale": "{percent.strip(QUOTE)}: a reason"}}'


@proves("handoff-pack:coverage:fails-only-below-baseline")
@proves("handoff-pack:coverage:threshold-accepts-range", case="100-1")
@pytest.mark.parametrize(("percent", "status"), [("90.01", 1), ("90.0", 0), ("90", 0), ("89.99", 0), ("100", 1)])
def test_the_run_passes_at_the_baseline_and_above_and_fails_below(tmp_path: Path, percent: str, status: int) -> None:
    done = gate(tmp_path, baseline=at_least(percent))
    assert (done.returncode, bool(done.stderr)) == (status, status == 1), done


def test_a_miss_by_less_than_any_rounding_is_a_miss(tmp_path: Path) -> None:
    assert gate(tmp_path, covered=899_999, statements=1_000_000, baseline=at_least("90")).returncode == 1


@proves("handoff-pack:coverage:threshold-rejects-negative", case="-1")
@proves("handoff-pack:coverage:threshold-rejects-zero", case="0")
@proves("handoff-pack:coverage:threshold-rejects-above-100", case="100.0001")
@pytest.mark.parametrize(
    "percent", ["0", "-1", "101", "100.0001", "NaN", "Infinity", '"90"', "true", "null", "[90]", "1" + "0" * 400]
)
def test_a_baseline_that_is_no_percentage_is_refused(tmp_path: Path, percent: str) -> None:
    done = gate(tmp_path, covered=100, baseline=at_least(percent))
    assert (done.returncode, "line_coverage_percent" in done.stderr) == (2, True), done


@proves("handoff-pack:coverage:change-needs-rationale")
@pytest.mark.parametrize(
    "baseline",
    [
        None,
        "",
        "90",
        "[]",
        "{}",
        '{"rationale": "a reason"}',
        '{"line_coverage_percent": 90}',
        '{"line_coverage_percent": 90, "rationale": ""}',
        '{"line_coverage_percent": 90, "rationale": " "}',
        '{"line_coverage_percent": 90, "rationale": 7}',
        '{"line_coverage_percent": 90, "rationale": "a reason"}',
        '{"line_coverage_percent": 90, "rationale": "91: a reason"}',
        '{"line_coverage_percent": 90, "rationale": "90: a reason", "skip": true}',
    ],
)
def test_a_baseline_that_is_missing_or_incomplete_is_refused(tmp_path: Path, baseline: str | None) -> None:
    assert gate(tmp_path, covered=100, baseline=baseline).returncode == 2


@pytest.mark.parametrize(
    ("covered", "statements"), [(0, 0), (5, 4), (-1, 10), (True, 1), ("9", 10), (None, 10), (9.5, 10)]
)
def test_a_report_that_counts_no_lines_is_refused(tmp_path: Path, covered: object, statements: object) -> None:
    assert gate(tmp_path, covered=covered, statements=statements, baseline=at_least("1")).returncode == 2


@proves("handoff-pack:coverage:total-from-machine-readable-report")
@pytest.mark.parametrize("report", ["", "[]", "{}", '{"totals": []}'])
def test_something_that_is_no_report_is_refused(tmp_path: Path, report: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(report, encoding="utf-8")
    assert run_gate(tmp_path, path, at_least("1")).returncode == 2


@proves("handoff-pack:coverage:no-bypass-flag")
def test_no_flag_gets_around_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(GATE), "--help"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (2, "usage: check_coverage.py REPORT BASELINE\n")


@proves("handoff-pack:coverage:baseline-is-reviewable-json", "handoff-pack:coverage:baseline-field")
def test_the_baseline_of_this_repository_is_one_that_the_gate_accepts(tmp_path: Path) -> None:
    baseline = json.loads((ROOT / "coverage-baseline.json").read_text(encoding="utf-8"))
    rooms = baseline.pop("rooms")
    assert gate(tmp_path, covered=100, baseline=json.dumps(baseline)).returncode == 0
    assert {(ROOT / "src" / "contextplane" / room).is_dir() for room in rooms} == {True}


def report_of(tmp_path: Path, covered: dict[str, int]) -> Path:
    """Write a report in which each room has ten lines, so many of them covered, in all modules that there are."""
    summaries = {
        str(path): {"summary": {"covered_lines": 0, "num_statements": 0}}
        for path in (ROOT / "src" / "contextplane").rglob("*.py")
    }
    for room, lines in covered.items():
        summaries[f"src/contextplane/{room}/planted.py"] = {"summary": {"covered_lines": lines, "num_statements": 10}}
    totals = {"covered_lines": sum(covered.values()), "num_statements": 10 * len(covered)}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"totals": totals, "files": summaries}), encoding="utf-8")
    return report


def test_a_room_below_its_own_baseline_fails_however_good_the_whole_is(tmp_path: Path) -> None:
    baseline = '{"line_coverage_percent": 50, "rationale": "50: a reason", "rooms": {"store": 90, "audit": 90}}'
    done = run_gate(tmp_path, report_of(tmp_path, {"store": 8, "audit": 9, "model": 10}), baseline)
    assert (done.returncode, "store: 80" in done.stderr, "audit" in done.stderr) == (1, True, False), done
    assert run_gate(tmp_path, report_of(tmp_path, {"store": 9, "audit": 9}), baseline).returncode == 0


def test_a_module_that_was_never_executed_fails(tmp_path: Path) -> None:
    report = report_of(tmp_path, {"store": 10})
    value = json.loads(report.read_text(encoding="utf-8"))
    del value["files"][str(ROOT / "src" / "contextplane" / "errors.py")]
    report.write_text(json.dumps(value), encoding="utf-8")
    done = run_gate(tmp_path, report, at_least("50"))
    assert (done.returncode, "errors.py: no measured test imports it" in done.stderr) == (1, True), done
