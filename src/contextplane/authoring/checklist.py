"""The checklist for a change of a pack: eight lines in the order of the contract, each with a verdict and its reason.

A line that cannot be told is no pass: the whole passes when every line does.
"""

from collections.abc import Callable, Iterable
from typing import Literal

from contextplane.authoring.finding import Finding, Gate, Severity
from contextplane.authoring.gates.table import Report
from contextplane.authoring.version_class import Comparison
from contextplane.model.value import Value

__all__ = ["STEPS", "Asked", "Cases", "Checklist", "Line", "Verdict", "checklist"]

Verdict = Literal["passed", "failed", "unknown"]
Outcome = Literal["passed", "failed", "incomplete"]

_NAMED = 3
_NO_PASS: tuple[Verdict, ...] = ("failed", "unknown")
_SEVERITY: dict[Verdict, Severity] = {"failed": "error", "unknown": "unknown"}
_WORDS: dict[Verdict, str] = {"failed": "failed", "unknown": "cannot be told"}


class Cases(Value, frozen=True):
    """What golden cases say: how many there are, those that drifted in words, those whose tools are others.

    Of those that are `unrecorded` nobody can tell which tools they should be given.
    """

    count: int
    drifted: tuple[str, ...] = ()
    surface: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()


class Asked(Value, frozen=True):
    """What is known of a change. None: the form is wrong, so there is no surface; nobody gave it, for the others.

    `surface` is every tool that the pack exposes, whatever the request: no run is given any other. `cases` is what the
    golden cases say; None: there is no folder, or nothing can be compiled.
    """

    report: Report
    surface: frozenset[str] | None
    expected: frozenset[str] | None
    comparison: Comparison | None
    cases: Cases | None = None


class Told(Value, frozen=True):
    """What one step says, and why."""

    verdict: Verdict
    reason: str


class Line(Value, frozen=True):
    """One line of the checklist, from 1. `says` is what it asks for."""

    number: int
    step: str
    says: str
    verdict: Verdict
    reason: str


class Checklist(Value, frozen=True):
    """All lines. `incomplete`: none failed, and of some it cannot be told."""

    lines: tuple[Line, ...]

    @property
    def outcome(self) -> Outcome:
        verdicts = {line.verdict for line in self.lines}
        if "failed" in verdicts:
            return "failed"
        return "incomplete" if "unknown" in verdicts else "passed"


def the_form_is_right(asked: Asked) -> Told:
    """The file is parsed, and valid against the JSON Schema."""
    return _of_gate(asked, "schema", "every layer and every field has its form")


def the_references_resolve(asked: Asked) -> Told:
    """Every internal reference resolves."""
    return _of_gate(asked, "integrity", "every name that a part uses is declared")


def the_surface_is_minimal(asked: Asked) -> Told:
    """The tool manifest is the expected minimal surface."""
    if asked.surface is None:
        return Told(verdict="unknown", reason="the form is wrong, so there is no surface")
    beyond, absent = _apart(asked.surface, asked.expected)
    if beyond or absent:
        parts = (("not expected", beyond), ("expected and not exposed", absent))
        reason = "; ".join(f"{what}: {', '.join(sorted(tools))}" for what, tools in parts if tools)
        return Told(verdict="failed", reason=reason)
    if asked.cases is not None and asked.cases.surface:
        return Told(verdict="failed", reason=f"other tools than recorded in: {', '.join(asked.cases.surface[:_NAMED])}")
    if asked.cases is None or not asked.cases.count:
        known = f"the pack exposes the {len(asked.surface)} expected tools and no other; " if asked.expected else ""
        return Told(verdict="unknown", reason=f"{known}what a request is given of them needs golden cases")
    if asked.cases.unrecorded:
        return Told(verdict="unknown", reason=f"nothing is recorded of {', '.join(asked.cases.unrecorded[:_NAMED])}")
    return Told(verdict="passed", reason=f"as recorded in all golden requests: {asked.cases.count}")


def golden_requests_compile(asked: Asked) -> Told:
    """The golden requests compile."""
    if asked.cases is None:
        missing = "nothing is compiled from a pack that is refused" if not asked.report.passed else _NO_GOLDEN
        return Told(verdict="unknown", reason=missing)
    if asked.cases.drifted:
        more = f"; and {len(asked.cases.drifted) - _NAMED} more" if len(asked.cases.drifted) > _NAMED else ""
        return Told(verdict="failed", reason="; ".join(asked.cases.drifted[:_NAMED]) + more)
    if not asked.cases.count:
        return Told(verdict="unknown", reason="the golden folder holds no case: 'ctx golden record' makes them")
    return Told(verdict="passed", reason=f"all compile to what was recorded: {asked.cases.count}")


def incidents_replay(_: Asked) -> Told:
    """Earlier incidents and corrections replay."""
    return Told(verdict="unknown", reason="needs recorded runs")


def evaluators_agree(_: Asked) -> Told:
    """The evaluators of policy, safety, utility, latency and cost reach their targets."""
    return Told(verdict="unknown", reason="needs the evaluators")


def the_difference_is_shown(asked: Asked) -> Told:
    """The difference to the version before is shown by layer, and the new number says as much."""
    comparison = asked.comparison
    if comparison is None:
        missing = "the form is wrong" if asked.surface is None else "give the version before with --against"
        return Told(verdict="unknown", reason=missing)
    if comparison.refusal:
        return Told(verdict="failed", reason=comparison.refusal)
    if comparison.same:
        return Told(verdict="passed", reason=f"nothing changed since {comparison.old}")
    return Told(
        verdict="passed",
        reason=f"{comparison.old} to {comparison.new}; the least version class is {comparison.bump.least}",
    )


STEPS: tuple[tuple[str, Callable[[Asked], Told]], ...] = (
    ("schema", the_form_is_right),
    ("references", the_references_resolve),
    ("tool_surface", the_surface_is_minimal),
    ("golden", golden_requests_compile),
    ("incidents", incidents_replay),
    ("evaluators", evaluators_agree),
    ("diff", the_difference_is_shown),
)
"""All lines but the last, which looks at these."""

_LEFT_TO_CASES = "golden_cases_unstable"
_NO_GOLDEN = "give the folder of the golden cases with --golden"
_SIGN = "It may be signed and published: every gate, and every line above, has passed."


def checklist(asked: Asked) -> Checklist:
    """Walk the list. Every line is told, whatever became of those before it."""
    lines = [_line(n, step, check.__doc__ or "", check(asked)) for n, (step, check) in enumerate(STEPS, 1)]
    lines.append(_line(len(lines) + 1, "sign", _SIGN, _may_be_signed(asked, lines)))
    return Checklist(lines=tuple(lines))


def _may_be_signed(asked: Asked, lines: list[Line]) -> Told:
    for verdict in _NO_PASS:
        numbers = ", ".join(str(line.number) for line in lines if line.verdict == verdict)
        reasons = [f"{_WORDS[verdict]} above: {numbers}"] if numbers else []
        reasons += _reasons(_open(asked), verdict)
        if reasons:
            return Told(verdict=verdict, reason="; ".join(reasons))
    return Told(verdict="passed", reason="nothing stands against it")


def _open(asked: Asked) -> list[Finding]:
    """What the gates found, without what they left to the golden cases when these have passed."""
    answered = asked.cases is not None and asked.cases.count > 0 and not asked.cases.drifted
    return [finding for finding in asked.report.findings if not (answered and finding.code == _LEFT_TO_CASES)]


def _apart(surface: frozenset[str], expected: frozenset[str] | None) -> tuple[frozenset[str], frozenset[str]]:
    """The tools that are not expected, and those that are and are not there. Nothing expected, nothing apart."""
    return (surface - expected, expected - surface) if expected is not None else (frozenset(), frozenset())


def _of_gate(asked: Asked, gate: Gate, good: str) -> Told:
    """What the findings of one gate come to."""
    if gate in asked.report.not_run:
        return Told(verdict="unknown", reason="the form is wrong, so this gate could not look")
    findings = [finding for finding in asked.report.findings if finding.gate == gate]
    for verdict in _NO_PASS:
        for reason in _reasons(findings, verdict):
            return Told(verdict=verdict, reason=reason)
    return Told(verdict="passed", reason=good)


def _reasons(findings: Iterable[Finding], verdict: Verdict) -> list[str]:
    """The laws that stand against a pass, the first of them by code and place; nothing when there are none."""
    found = [
        f"{finding.code} at {finding.at or 'the whole pack'}"
        for finding in findings
        if finding.severity == _SEVERITY[verdict]
    ]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return [f"{_WORDS[verdict]} by law: {', '.join(found[:_NAMED])}{more}"] if found else []


def _line(number: int, step: str, says: str, told: Told) -> Line:
    return Line(number=number, step=step, says=says, verdict=told.verdict, reason=told.reason)
