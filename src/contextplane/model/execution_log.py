"""What an agent loop hands over to be packed, checked: every problem at once, each with its place."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from contextplane.model.canonical import Json
from contextplane.model.json_cut import LongText
from contextplane.model.problems import DocumentInvalid
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = ["Content", "ExecutionLog", "InvalidLog", "LogFile", "LogPrompt", "LogStep"]


class InvalidLog(DocumentInvalid):
    """An execution log that cannot be packed. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "execution_log_invalid"
    way_out: ClassVar[str] = "'ctx pack --help' shows the form of a log"


class Content(Value, frozen=True):
    """Bytes that belong to a run: as text, as base64, as the file at a path, or as a revision of a handoff pack."""

    how: Literal["text", "base64", "path", "handoff"]
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

    def contents(self) -> Iterator[Content]:
        """All that the run saw and made, in the order of a manifest."""
        yield self.system_prompt
        yield from (one.content for one in self.prompts)
        yield from (one.content for one in self.inputs)
        yield from (one.output for one in self.steps if one.output is not None)
        yield from (one.content for one in self.outputs)
