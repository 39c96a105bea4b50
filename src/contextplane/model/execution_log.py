"""What an agent loop hands over to be packed, checked: every problem at once, each with its place."""

from typing import ClassVar, Literal

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json
from contextplane.model.json_cut import LongText
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = ["Content", "ExecutionLog", "InvalidLog", "LogFile", "LogPrompt", "LogStep", "Problem"]

_TOLD = 9


class Problem(Value, frozen=True):
    """One thing that is wrong with a log: its JSON Pointer, and what."""

    at: str
    message: str


class InvalidLog(ContextPlaneError):
    """An execution log that cannot be packed. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "execution_log_invalid"
    family: ClassVar[Family] = "refused"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first, *more = problems
        also = "".join(f"; {one.at}: {one.message}" for one in more[:_TOLD])
        cut = f"; and {len(more) - _TOLD} more" if len(more) > _TOLD else ""
        super().__init__(
            f"{first.message}{also}{cut}",
            at=first.at,
            hint="'ctx pack --help' shows the form of a log",
            details={"problems": [{"at": one.at, "message": one.message} for one in problems]},
        )
        self.problems = problems


class Content(Value, frozen=True):
    """Bytes that belong to a run: as text, as base64, or as the file at a path."""

    how: Literal["text", "base64", "path"]
    value: str | LongText
    at: str


class LogPrompt(Value, frozen=True):
    role: str
    content: Content


class LogFile(Value, frozen=True):
    """An input or an output."""

    name: str
    content: Content


class LogStep(Value, frozen=True):
    index: int
    type: str
    tool: str
    parameters: dict[str, Json] | None
    output: Content | None
    deterministic: bool
    timestamp: Timestamp


class ExecutionLog(Value, frozen=True):
    """A run as it was logged."""

    created: Timestamp
    model: str
    model_parameters: dict[str, Json] | None
    system_prompt: Content
    prompts: tuple[LogPrompt, ...]
    inputs: tuple[LogFile, ...]
    steps: tuple[LogStep, ...]
    outputs: tuple[LogFile, ...]
    os: str
    runtime: str
    tool_versions: dict[str, str] | None
