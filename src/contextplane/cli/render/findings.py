"""Prints a finding of the gates: its place, its law, its cause and its cure."""

from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput, clean

if TYPE_CHECKING:
    from contextplane.app.packs.lint import Finding

__all__ = ["SEVERITY_COLOR", "print_finding"]

SEVERITY_COLOR = {"error": "red", "warning": "yellow", "unknown": "dim"}
_INDENT = " " * 8


def print_finding(finding: "Finding", where: str, output: CommandOutput) -> None:
    severity = output.paint(SEVERITY_COLOR[finding.severity], f"{finding.severity:<7}")
    print_line = output.failure_line if finding.severity == "error" else output.line
    print_line(f"{severity} {clean(where)}  {finding.gate}/{finding.code}  {clean(finding.at)}")
    print_line(f"{_INDENT}{clean(finding.cause)}")
    print_line(f"{_INDENT}{output.paint('dim', '->')} {clean(finding.cure)}")
