"""The port to the tools that a run called: the same call once more, confined, and its output."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Protocol, TypeAlias

from contextplane.errors import ContextPlaneError, Family

__all__ = ["Confinement", "ToolFailed", "ToolRefused", "ToolTimedOut", "ToolUnknown", "Tools"]

Confinement: TypeAlias = Literal["kernel", "python"]
"""What confines tools: the operating system, or checks in Python, which malicious code can get around."""


class ToolUnknown(ContextPlaneError):
    """No tool of this name is available here."""

    code: ClassVar[str] = "tool_unknown"
    family: ClassVar[Family] = "not_found"


class ToolFailed(ContextPlaneError):
    """A tool ran and came to no output: its parameters were wrong, or what it needed was not there."""

    code: ClassVar[str] = "tool_failed"
    family: ClassVar[Family] = "failed"


class ToolTimedOut(ContextPlaneError):
    """A tool was still running at its time limit, and was ended."""

    code: ClassVar[str] = "tool_timed_out"
    family: ClassVar[Family] = "failed"


class ToolRefused(ContextPlaneError):
    """A call that would leave its confines.

    A file outside the workspace, a host or a module that is not allowed. What the system itself denies to a tool counts
    as well: it is where the confines are held.
    """

    code: ClassVar[str] = "tool_refused"
    family: ClassVar[Family] = "refused"


class Tools(Protocol):
    """Tools by name.

    - A call ends within a time limit: with its output, or with an error of this module.
    - An output is of bounded size.
    - What a call may reach (files, hosts, code) is decided by the code that made the `Tools`, never by its
      parameters.
    """

    def names(self) -> tuple[str, ...]:
        """Every tool that is available, sorted."""
        ...

    def version(self, name: str) -> str:
        """The version of a tool's behaviour. `ToolUnknown` when there is no such tool."""
        ...

    def call(self, name: str, parameters: Mapping[str, object]) -> bytes: ...
