"""A finding of the gates, told: where it stands, which law it is about, its cause and its cure."""

from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput, clean

if TYPE_CHECKING:
    from contextplane.authoring.law import Finding

__all__ = ["SEVERITY_COLOR", "print_finding"]

SEVERITY_COLOR = {"error": "red", "warning": "yellow", "unknown": "dim"}
_INDENT = " " * 8


def print_finding(finding: "Finding", where: str, output: CommandOutput) -> None:
    severity = output.paint(SEVERITY_COLOR[finding.severity], f"{finding.severity:<7}")
    tell = output.failure_line if finding.severity == "error" else output.line
    tell(f"{severity} {clean(where)}  {finding.gate}/{finding.code}  {clean(finding.at)}")
    tell(f"{_INDENT}{clean(finding.cause)}")
    tell(f"{_INDENT}{output.paint('dim', '->')} {clean(finding.cure)}")
