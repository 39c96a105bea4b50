"""Tools with fixed answers: the `Tools` port for tests of code that calls tools."""

from collections.abc import Mapping

from contextplane.errors import ContextPlaneError
from contextplane.ports.tools import ToolUnknown

__all__ = ["KnownTools"]


class KnownTools:
    """Each tool has one answer; an error among the answers is raised. `calls` records all calls."""

    def __init__(self, answers: Mapping[str, bytes | ContextPlaneError]) -> None:
        self._answers = dict(answers)
        self.calls: list[tuple[str, Mapping[str, object]]] = []

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._answers))

    def version(self, name: str) -> str:
        if name not in self._answers:
            raise ToolUnknown(f"no tool {name[:80]!r} is known here")
        return "2"

    def call(self, name: str, parameters: Mapping[str, object]) -> bytes:
        self.version(name)
        self.calls.append((name, parameters))
        answer = self._answers[name]
        if isinstance(answer, ContextPlaneError):
            raise answer
        return answer
