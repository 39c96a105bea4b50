"""The release checklist of a pack: eight steps, each with a verdict and a reason.

A step that cannot be decided is no pass: the checklist passes when every step does. The docstring of a step is printed
as the text of its line.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from contextplane.authoring.gates.evaluation import LEFT_TO_CASES
from contextplane.authoring.gates.table import Report
from contextplane.authoring.law import Finding, Gate, Severity
from contextplane.authoring.version_class import Comparison
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = [
    "SKIPPABLE",
    "STEPS",
    "Checklist",
    "ChecklistInput",
    "ChecklistLine",
    "GoldenCaseResults",
    "Verdict",
    "exposed_tools",
    "run_checklist",
]

Verdict = Literal["passed", "failed", "unknown", "skipped"]
"""`unknown`: the line could not be decided, which is no pass. `skipped`: the caller left it out."""

Outcome = Literal["passed", "failed", "incomplete"]

_NAMED = 3
_NO_PASS: tuple[Verdict, ...] = ("failed", "unknown")
_SEVERITY: dict[Verdict, Severity] = {"failed": "error", "unknown": "unknown"}
_WORDS: dict[Verdict, str] = {"failed": "failed", "unknown": "undecided"}


class GoldenCaseResults(Value, frozen=True):
    """The results of the golden cases: their number, and the names of those that are not as recorded.

    `drifted`: they compile to something else, each in words. `surface`: they are given other tools. `unrecorded`: no
    tools are recorded for them, so their surface cannot be checked.
    """

    count: int
    drifted: tuple[str, ...] = ()
    surface: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()


class ChecklistInput(Value, frozen=True):
    """The facts that the steps judge. A field is None when it was not given.

    `surface` is every tool that the pack exposes to any request; None when the form of the pack is wrong. `cases` are
    the results of the golden cases; None when there is no folder, or nothing can be compiled.
    """

    report: Report
    surface: frozenset[str] | None
    expected: frozenset[str] | None
    comparison: Comparison | None
    cases: GoldenCaseResults | None = None


class ChecklistVerdict(Value, frozen=True):
    """The verdict of one step, and its reason."""

    verdict: Verdict
    reason: str


class ChecklistLine(Value, frozen=True):
    """One line of the checklist. `number` counts from 1, `says` is the text of the step."""

    number: int
    step: str
    says: str
    verdict: Verdict
    reason: str


class Checklist(Value, frozen=True):
    """All lines. Its outcome is `incomplete` when none failed and some cannot be decided.

    A line that the caller skips does not count.
    """

    lines: tuple[ChecklistLine, ...]

    @property
    def outcome(self) -> Outcome:
        verdicts = {line.verdict for line in self.lines}
        if "failed" in verdicts:
            return "failed"
        return "incomplete" if "unknown" in verdicts else "passed"


def the_form_is_right(inputs: ChecklistInput) -> ChecklistVerdict:
    """The file is parsed, and valid against the JSON Schema."""
    return _gate_verdict(inputs, "schema", "every layer and every field is valid")


def the_references_resolve(inputs: ChecklistInput) -> ChecklistVerdict:
    """Every internal reference resolves."""
    return _gate_verdict(inputs, "integrity", "every name that is used is declared")


def the_surface_is_minimal(inputs: ChecklistInput) -> ChecklistVerdict:
    """The tool manifest is the expected minimal surface."""
    if inputs.surface is None:
        return ChecklistVerdict(verdict="unknown", reason="the schema is violated, so there is no tool surface")
    beyond, absent = _surface_difference(inputs.surface, inputs.expected)
    if beyond or absent:
        parts = (("not expected", beyond), ("expected and not exposed", absent))
        reason = "; ".join(f"{what}: {', '.join(sorted(tools))}" for what, tools in parts if tools)
        return ChecklistVerdict(verdict="failed", reason=reason)
    if inputs.cases is not None and inputs.cases.surface:
        return ChecklistVerdict(
            verdict="failed", reason=f"other tools than recorded in: {', '.join(inputs.cases.surface[:_NAMED])}"
        )
    if inputs.cases is None or not inputs.cases.count:
        known = f"the pack exposes the {len(inputs.surface)} expected tools and no other; " if inputs.expected else ""
        return ChecklistVerdict(
            verdict="unknown", reason=f"{known}golden cases are needed for the tools of each request (--golden)"
        )
    if inputs.cases.unrecorded:
        return ChecklistVerdict(
            verdict="unknown", reason=f"no tools are recorded for {', '.join(inputs.cases.unrecorded[:_NAMED])}"
        )
    return ChecklistVerdict(verdict="passed", reason=f"as recorded in all golden requests: {inputs.cases.count}")


def golden_requests_compile(inputs: ChecklistInput) -> ChecklistVerdict:
    """The golden requests compile."""
    if inputs.cases is None:
        missing = "nothing is compiled from a pack that is refused" if not inputs.report.passed else _NO_GOLDEN
        return ChecklistVerdict(verdict="unknown", reason=missing)
    if inputs.cases.drifted:
        more = f"; and {len(inputs.cases.drifted) - _NAMED} more" if len(inputs.cases.drifted) > _NAMED else ""
        return ChecklistVerdict(verdict="failed", reason="; ".join(inputs.cases.drifted[:_NAMED]) + more)
    if not inputs.cases.count:
        return ChecklistVerdict(
            verdict="unknown", reason="the golden folder holds no case: 'ctx golden record' makes them"
        )
    return ChecklistVerdict(verdict="passed", reason=f"all compile to what was recorded: {inputs.cases.count}")


def incidents_replay(_: ChecklistInput) -> ChecklistVerdict:
    """Earlier incidents and corrections replay."""
    return ChecklistVerdict(verdict="unknown", reason="needs recorded runs")


def evaluators_agree(_: ChecklistInput) -> ChecklistVerdict:
    """The evaluators of policy, safety, utility, latency and cost reach their targets."""
    return ChecklistVerdict(verdict="unknown", reason="needs the evaluators")


def the_difference_is_shown(inputs: ChecklistInput) -> ChecklistVerdict:
    """The differences from the previous version are listed by layer, and its version number covers them."""
    comparison = inputs.comparison
    if comparison is None:
        missing = "the schema is violated" if inputs.surface is None else "name the previous version with --against"
        return ChecklistVerdict(verdict="unknown", reason=missing)
    if comparison.refusal:
        return ChecklistVerdict(verdict="failed", reason=comparison.refusal)
    if comparison.same:
        return ChecklistVerdict(verdict="passed", reason=f"nothing changed since {comparison.old}")
    return ChecklistVerdict(
        verdict="passed",
        reason=f"{comparison.old} to {comparison.new}; the least version class is {comparison.bump.least}",
    )


STEPS: tuple[tuple[str, Callable[[ChecklistInput], ChecklistVerdict]], ...] = (
    ("schema", the_form_is_right),
    ("references", the_references_resolve),
    ("tool_surface", the_surface_is_minimal),
    ("golden", golden_requests_compile),
    ("incidents", incidents_replay),
    ("evaluators", evaluators_agree),
    ("diff", the_difference_is_shown),
)
"""All steps but the last, which judges these."""

_NO_GOLDEN = "name the folder of golden cases with --golden"
_SIGN = "It may be signed and published: every gate, and every line above, has passed."


SKIPPABLE = tuple(step for step, _ in STEPS[2:])
"""The steps that a caller may skip: without the first two, the others have nothing to judge."""

_SKIPPED = "left out with --skip"


def run_checklist(inputs: ChecklistInput, skipped: Mapping[str, str] | None = None) -> Checklist:
    """Run every step, also after one that failed. `skipped`: the steps to leave out, each with the reason."""
    reasons = skipped or {}
    lines: list[ChecklistLine] = []
    for n, (step, check) in enumerate(STEPS, 1):
        verdict = (
            ChecklistVerdict(verdict="skipped", reason=reasons[step] or _SKIPPED) if step in reasons else check(inputs)
        )
        lines.append(_line(n, step, check.__doc__ or "", verdict))
    lines.append(_line(len(lines) + 1, "sign", _SIGN, _may_be_signed(inputs, lines)))
    return Checklist(lines=tuple(lines))


def _may_be_signed(inputs: ChecklistInput, lines: list[ChecklistLine]) -> ChecklistVerdict:
    skipped = [line for line in lines if line.verdict == "skipped"]
    findings = _open_findings(inputs, without_cases=any(line.step == "golden" for line in skipped))
    for verdict in _NO_PASS:
        numbers = ", ".join(str(line.number) for line in lines if line.verdict == verdict)
        reasons = [f"{_WORDS[verdict]} above: {numbers}"] if numbers else []
        reasons += _reasons(findings, verdict)
        if reasons:
            return ChecklistVerdict(verdict=verdict, reason="; ".join(reasons))
    numbers = ", ".join(str(line.number) for line in skipped)
    return ChecklistVerdict(
        verdict="passed", reason="nothing prevents it" + (f"; skipped: {numbers}" if numbers else "")
    )


def _open_findings(inputs: ChecklistInput, *, without_cases: bool) -> list[Finding]:
    """Return the findings of the gates, without the one that golden cases settle when they passed.

    `without_cases`: the caller left the golden cases out.
    """
    passed = inputs.cases is not None and inputs.cases.count > 0 and not inputs.cases.drifted
    is_settled = passed or without_cases
    return [finding for finding in inputs.report.findings if not (is_settled and finding.code == LEFT_TO_CASES)]


def _surface_difference(
    surface: frozenset[str], expected: frozenset[str] | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the unexpected tools and the missing ones; none of either when nothing is expected."""
    return (surface - expected, expected - surface) if expected is not None else (frozenset(), frozenset())


def _gate_verdict(inputs: ChecklistInput, gate: Gate, good: str) -> ChecklistVerdict:
    """Return the verdict that follows from the findings of one gate."""
    if gate in inputs.report.not_run:
        return ChecklistVerdict(verdict="unknown", reason="the schema is violated, so this gate did not run")
    findings = [finding for finding in inputs.report.findings if finding.gate == gate]
    for verdict in _NO_PASS:
        for reason in _reasons(findings, verdict):
            return ChecklistVerdict(verdict=verdict, reason=reason)
    return ChecklistVerdict(verdict="passed", reason=good)


def _reasons(findings: Iterable[Finding], verdict: Verdict) -> list[str]:
    """Return the findings that cause a verdict, the first by code and place, as one reason; or no reason."""
    causes = [
        f"{finding.code} at {finding.at or 'the whole pack'}"
        for finding in findings
        if finding.severity == _SEVERITY[verdict]
    ]
    more = f" and {len(causes) - _NAMED} more" if len(causes) > _NAMED else ""
    return [f"{_WORDS[verdict]} by law: {', '.join(causes[:_NAMED])}{more}"] if causes else []


def _line(number: int, step: str, says: str, verdict: ChecklistVerdict) -> ChecklistLine:
    return ChecklistLine(number=number, step=step, says=says, verdict=verdict.verdict, reason=verdict.reason)


def exposed_tools(value: Json, report: Report) -> frozenset[str] | None:
    """List every tool that an allowed permission exposes and its adapter declares.

    None when the form of the pack is wrong.
    """
    if report.not_run:
        return None
    tooling = msgspec.convert(value, type=ContextPack).tooling_layer
    declared = {
        f"{adapter.adapter_id}.{capability}"
        for adapter in tooling.adapter_registry
        for capability in adapter.capabilities
    }
    allowed = (
        f"{permission.adapter_id}.{permission.capability}" for permission in tooling.permissions if permission.allow
    )
    return frozenset(tool for tool in allowed if tool in declared)
