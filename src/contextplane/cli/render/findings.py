"""A finding of the gates, told: where it stands, which law it is about, its cause and its cure."""

from typing import TYPE_CHECKING

from contextplane.cli.output import Screen, clean

if TYPE_CHECKING:
    from contextplane.authoring.finding import Finding

__all__ = ["SEVERITY_COLOR", "tell_finding"]

SEVERITY_COLOR = {"error": "red", "warning": "yellow", "unknown": "dim"}
_INDENT = " " * 8


def tell_finding(found: "Finding", where: str, screen: Screen) -> None:
    severity = screen.paint(SEVERITY_COLOR[found.severity], f"{found.severity:<7}")
    tell = screen.failure if found.severity == "error" else screen.say
    tell(f"{severity} {clean(where)}  {found.gate}/{found.code}  {clean(found.at)}")
    tell(f"{_INDENT}{clean(found.cause)}")
    tell(f"{_INDENT}{screen.paint('dim', '->')} {clean(found.cure)}")
