"""The log of a run, as an agent loop hands it over to be packed.

`read_log` accepts a JSON text or refuses it with all of its problems at once, each with its place. The form is closed
at every level: an unknown field is a problem.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal, cast

from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.large import Buffer, LongText, decode_long_leniently, parse_long, resolve_mark
from contextplane.model.json.pointer import pointer
from contextplane.model.problems import DocumentInvalid, DocumentReader, Problem, type_name
from contextplane.model.timestamp import NO_TIME, InvalidTimestamp, Timestamp
from contextplane.model.value import Value

__all__ = ["Content", "ExecutionLog", "InvalidLog", "LogFile", "LogPrompt", "LogStep", "read_log", "read_partial_log"]


class InvalidLog(DocumentInvalid):
    """An execution log that cannot be packed. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "execution_log_invalid"
    way_out: ClassVar[str] = "'ctx pack --help' shows the form of a log"


class Content(Value, frozen=True):
    """Bytes of a run: text, base64, the path of a file, or a revision of a handoff pack."""

    how: Literal["text", "base64", "path", "handoff"]
    value: str | LongText
    at: str


class LogPrompt(Value, frozen=True):
    role: str
    content: Content


class LogFile(Value, frozen=True):
    """An input or an output of a run."""

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
    """A run as its agent loop logged it."""

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
        """Every content of the run, in the order of a manifest."""
        yield self.system_prompt
        yield from (prompt.content for prompt in self.prompts)
        yield from (input_file.content for input_file in self.inputs)
        yield from (step.output for step in self.steps if step.output is not None)
        yield from (output.content for output in self.outputs)


REASONING = "reasoning"
"""The one type of step that has no tool."""

_LOG_FIELDS = ("created", "model", "system_prompt", "prompts", "inputs", "steps", "outputs", "environment")
_STEP_FIELDS = ("index", "type", "tool", "parameters", "output", "deterministic", "timestamp")
_FILE_FIELDS = ("name", "content", "content_base64", "path")
_HANDOFF = "handoff"
_CONTENT_FORMS: dict[str, Literal["text", "base64", "path", "handoff"]] = {
    "content": "text",
    "content_base64": "base64",
    "path": "path",
    _HANDOFF: "handoff",
}


def read_log(data: Buffer) -> ExecutionLog:
    """Parse an execution log, or raise `InvalidLog` with everything that is wrong with its form."""
    value, pieces = parse_long(data)
    reader = _Reader(pieces)
    log = reader.log(value)
    if reader.problems:
        raise InvalidLog(tuple(reader.problems))
    return log


def read_partial_log(data: Buffer) -> tuple[ExecutionLog, tuple[Problem, ...]] | None:
    """Parse as much as possible of a refused log, with its problems; None when nothing can be read."""
    decoded = decode_long_leniently(data)
    if decoded is None:
        return None
    value, pieces = decoded
    reader = _Reader(pieces)
    try:
        return reader.log(value), tuple(reader.problems)
    except JsonRefused:
        return None


class _Reader(DocumentReader):
    """Reads a log whose long texts were cut out."""

    DOCUMENT: ClassVar[str] = "log"

    def __init__(self, pieces: tuple[LongText, ...]) -> None:
        super().__init__()
        self._pieces = pieces

    def log(self, value: Json) -> ExecutionLog:
        top = self._object(value, "", _LOG_FIELDS)
        model = self._object(top.get("model"), "/model", ("identifier", "parameters"))
        environment = self._object(top.get("environment"), "/environment", ("os", "runtime", "tool_versions"))
        steps = tuple(self._step(value, at, n) for n, (value, at) in enumerate(self._list(top, "steps")))
        return ExecutionLog(
            model=self._text(model, "identifier", "/model", required=True),
            model_parameters=self._free(model, "parameters", "/model"),
            system_prompt=self._content(top, "system_prompt", "", required=True),
            prompts=tuple(self._prompt(value, at) for value, at in self._list(top, "prompts")),
            inputs=tuple(self._file(value, at, named=False) for value, at in self._list(top, "inputs")),
            steps=steps,
            outputs=tuple(self._file(value, at, named=True) for value, at in self._list(top, "outputs")),
            os=self._text(environment, "os", "/environment", required=True),
            runtime=self._text(environment, "runtime", "/environment", required=True),
            tool_versions=self._versions(environment),
            # The run ended with its newest step. A log without any time is still the same log every time.
            created=self._time(top, "created", "") or max((step.timestamp for step in steps), default=NO_TIME),
        )

    def _prompt(self, value: Json, at: str) -> LogPrompt:
        entry = self._object(value, at, ("role", "content"))
        return LogPrompt(role=self._text(entry, "role", at), content=self._content(entry, "content", at))

    def _file(self, value: Json, at: str, *, named: bool) -> LogFile:
        entry = self._object(value, at, _FILE_FIELDS if named else (*_FILE_FIELDS, _HANDOFF))
        content_keys = [key for key in _CONTENT_FORMS if entry.get(key) is not None]
        if len(content_keys) > 1:
            self.note(at, f"gives {' and '.join(content_keys)}: only one of them can be its content")
        content = self._content(entry, content_keys[0] if content_keys else "content", at)
        name = self._text(entry, "name", at, required=named)
        if content.how == "handoff" and not name:
            name = f"handoff/{content.value}"
        return LogFile(name=name, content=content)

    def _step(self, value: Json, at: str, position: int) -> LogStep:
        entry = self._object(value, at, _STEP_FIELDS)
        kind = self._text(entry, "type", at, required=True)
        index = self._typed_field(entry, "index", at, int)
        output = self._content(entry, "output", at)
        return LogStep(
            index=position if index is None else index,
            type=kind,
            tool=self._text(entry, "tool", at, required=kind != REASONING),
            parameters=self._free(entry, "parameters", at),
            output=output if output.value != "" else None,
            deterministic=bool(self._typed_field(entry, "deterministic", at, bool)),
            timestamp=self._time(entry, "timestamp", at) or NO_TIME,
        )

    def _content(self, entry: dict[str, Json], key: str, at: str, *, required: bool = False) -> Content:
        value = resolve_mark(entry.get(key), self._pieces)
        if value is not None and not isinstance(value, str | LongText):
            self.note(f"{at}/{key}", f"must be text, not {type_name(value)}")
        elif required and not value:
            self.note(f"{at}/{key}", "is missing")
        text = value if isinstance(value, str | LongText) else ""
        return Content(how=_CONTENT_FORMS.get(key, "text"), value=text, at=f"{at}/{key}")

    def _text(self, entry: dict[str, Json], key: str, at: str, *, required: bool = False) -> str:
        value = self._typed_field(entry, key, at, str) or ""
        if self._pieces:
            value = cast("str", self._whole(value, f"{at}/{key}"))
        if required and not value:
            self.note(f"{at}/{key}", "is missing")
        return value

    def _time(self, entry: dict[str, Json], key: str, at: str) -> Timestamp | None:
        if self._typed_field(entry, key, at, str) is None:
            return None
        try:
            return Timestamp.parse(self._text(entry, key, at))
        except InvalidTimestamp as error:
            self.note(f"{at}/{key}", f"{error.message}: {error.hint}")
            return None

    def _versions(self, environment: dict[str, Json]) -> dict[str, str] | None:
        versions = self._free(environment, "tool_versions", "/environment")
        for tool, version in (versions or {}).items():
            if type(version) is not str:
                self.note(f"/environment/tool_versions{pointer([tool])}", f"must be text, not {type_name(version)}")
        return cast("dict[str, str] | None", versions)

    def _free(self, entry: dict[str, Json], key: str, at: str) -> dict[str, Json] | None:
        """An object with any content, its long texts put back."""
        value = self._typed_field(entry, key, at, dict)
        return cast("dict[str, Json] | None", self._whole(value, f"{at}/{key}")) if self._pieces else value

    def _whole(self, value: Json, at: str) -> Json:
        """A value with its long texts put back. Not called when none were cut: there are many values."""
        try:
            return self._read_in(value)
        except JsonRefused as error:
            raise error.under(at) from None

    def _read_in(self, value: Json) -> Json:
        long_text = resolve_mark(value, self._pieces)
        if isinstance(long_text, LongText):
            return long_text.to_bytes().decode()
        if isinstance(long_text, dict):
            return {key: self._whole(part, pointer([key])) for key, part in long_text.items()}
        return (
            [self._whole(part, f"/{n}") for n, part in enumerate(long_text)]
            if isinstance(long_text, list)
            else long_text
        )
