"""The checklist over any state of affairs: it passes when every line does, and nothing passes in silence."""

from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.checklist import (
    STEPS,
    Checklist,
    ChecklistInput,
    ChecklistLine,
    GoldenCaseResults,
    Verdict,
    run_checklist,
)
from contextplane.authoring.gates.table import GATES, Report
from contextplane.authoring.law import Finding

SEVERITIES = st.sampled_from(["error", "warning", "unknown"])
FINDINGS = st.builds(
    Finding,
    gate=st.sampled_from(GATES),
    code=st.just("some_law"),
    severity=SEVERITIES,
    at=st.sampled_from(["", "/pack_meta"]),
    cause=st.just("because"),
    cure=st.just("mend it"),
)
TOOLS = st.none() | st.frozensets(st.sampled_from(["a.x", "a.y", "b.z"]))
NAMED = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=5, unique=True).map(tuple)
CASES = st.none() | st.builds(GoldenCaseResults, count=st.integers(0, 5), drifted=NAMED, surface=NAMED)
REPORTS = st.builds(
    Report,
    findings=st.lists(FINDINGS, max_size=6).map(tuple),
    not_run=st.sampled_from([(), GATES[1:]]),
)


@given(report=REPORTS, surface=TOOLS, expected=TOOLS)
def test_every_line_is_told_and_the_whole_is_as_good_as_its_worst_line(
    report: Report, surface: frozenset[str] | None, expected: frozenset[str] | None
) -> None:
    checklist = run_checklist(ChecklistInput(report=report, surface=surface, expected=expected, comparison=None))
    verdicts = [line.verdict for line in checklist.lines]
    assert len(checklist.lines) == len(STEPS) + 1
    assert all(line.says and line.reason for line in checklist.lines)
    assert checklist.outcome == ("failed" if "failed" in verdicts else "incomplete")
    assert verdicts[3:6] == ["unknown"] * 3
    assert verdicts[-1] != "passed"
    if any(finding.severity == "error" for finding in report.findings):
        assert verdicts[-1] == "failed"


@given(surface=st.frozensets(st.sampled_from(["a.x", "a.y", "b.z"])), expected=TOOLS)
def test_the_surface_fails_exactly_when_it_is_known_to_be_another(
    surface: frozenset[str], expected: frozenset[str] | None
) -> None:
    inputs = ChecklistInput(report=Report(findings=()), surface=surface, expected=expected, comparison=None)
    verdict = run_checklist(inputs).lines[2].verdict
    assert verdict == ("failed" if expected is not None and expected != surface else "unknown")


@given(cases=CASES, surface=st.frozensets(st.sampled_from(["a.x", "b.z"])), expected=TOOLS)
def test_golden_cases_pass_exactly_when_there_are_some_and_none_drifted(
    cases: GoldenCaseResults | None, surface: frozenset[str], expected: frozenset[str] | None
) -> None:
    inputs = ChecklistInput(
        report=Report(findings=()), surface=surface, expected=expected, comparison=None, cases=cases
    )
    _, _, tools, golden, *_ = run_checklist(inputs).lines
    has_cases = cases is not None and cases.count > 0
    drifted = cases is not None and bool(cases.drifted)
    assert golden.verdict == ("failed" if drifted else "passed" if has_cases else "unknown")
    other_tools = (expected is not None and expected != surface) or (cases is not None and bool(cases.surface))
    assert tools.verdict == ("failed" if other_tools else "passed" if has_cases else "unknown")


@given(findings=st.lists(FINDINGS, max_size=6))
def test_a_warning_never_stands_in_the_way(findings: list[Finding]) -> None:
    harmless = tuple(finding for finding in findings if finding.severity == "warning")
    inputs = ChecklistInput(report=Report(findings=harmless), surface=frozenset(), expected=None, comparison=None)
    assert [line.verdict for line in run_checklist(inputs).lines[:2]] == ["passed", "passed"]


@given(verdicts=st.lists(st.sampled_from(["passed", "failed", "unknown"]), min_size=1, max_size=8))
def test_the_whole_passes_exactly_when_every_line_does(verdicts: list[Verdict]) -> None:
    lines = tuple(
        ChecklistLine(number=n, step="step", says="It holds.", verdict=verdict, reason="so")
        for n, verdict in enumerate(verdicts, 1)
    )
    outcome = Checklist(lines=lines).outcome
    assert (outcome == "passed") == all(verdict == "passed" for verdict in verdicts)
    assert (outcome == "failed") == ("failed" in verdicts)
