"""Recording the runs of one's own agent loop into the store that we are in.

with Recorder(model="model-x", system_prompt="You are careful.") as run:
    run.prompt("user", "Refund order 881")
    run.step("read_file", parameters={"path": "order.json"}, output=Path("order.json"))
    run.output("report.md", "# Refunded")
print(run.reference)

Recordings in the care of a store: what a check, and whoever collects, compares of them.
"""

import os
import platform as machine
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from contextplane.adapters.files.workspace import FileSources
from contextplane.adapters.system import SystemIds
from contextplane.app.execution.pack import register_within
from contextplane.app.platform import Platform, opened
from contextplane.app.settings import Settings, from_environment
from contextplane.audit.load import load
from contextplane.model.execution.manifest import Environment, Model
from contextplane.model.ids import Digest, ExecutionRef, RecordingId
from contextplane.model.json.canonical import Json
from contextplane.model.problems import Problem
from contextplane.model.reference import FORMS, ExecutionPrefix, InvalidReference, Reference, parse_reference
from contextplane.ports.catalog import View
from contextplane.record.events import Given, RecordingRefused
from contextplane.record.journal import Desk, RecordingFinished
from contextplane.record.recorder import Recording, unkept
from contextplane.store.damage import Comparison, Finding
from contextplane.store.find import find_execution_pack

__all__ = ["Recorder", "desk_of", "recording_comparison"]

T = TypeVar("T")
_HINT = "write ctx://<hash> or its first digits; 'ctx log' lists them"


class Recorder:
    """Begins a recording when its block is entered, and makes it an execution pack when the block is left.

    Whatever `run` was told is durable when the call returns. When the block is left by an exception, or the process
    dies, `Recorder.resume` goes on with it and `ctx finalize` makes a pack of what there is.

    A content is text, bytes, a `Path` of a regular file outside the store (streamed) or an iterable of chunks of bytes.
    `parent` names the execution pack that the run is a fork of.
    """

    def __init__(  # noqa: PLR0913  what a run begins with
        self,
        *,
        model: str,
        system_prompt: Given,
        parameters: Mapping[str, Json] | None = None,
        tool_versions: Mapping[str, str] | None = None,
        parent: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        def begun(platform: Platform) -> Recording:
            return Recording.begin(
                desk_of(platform),
                RecordingId(f"rec_{SystemIds().token()}"),
                model=Model(identifier=model, parameters=_plain(parameters)),
                system_prompt=system_prompt,
                environment=Environment(
                    os=os.uname().sysname.lower(),
                    runtime=f"python{machine.python_version()}",
                    tool_versions=_plain(tool_versions),
                ),
                parent=_known(parent, platform) if parent is not None else None,
            )

        self._begun = begun
        self._settings = settings
        self._open = ExitStack()

    @staticmethod
    def resume(recording_id: str, *, settings: Settings | None = None) -> AbstractContextManager[Recording]:
        """Go on with a recording that was not finished: `with Recorder.resume("rec_...") as run`."""
        return _in_store(lambda setting: Recording.resume(desk_of(setting), RecordingId.parse(recording_id)), settings)

    if not TYPE_CHECKING:  # a checker of types knows by itself that there is nothing else

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"a Recorder has no {name!r}: use it as 'with Recorder(...) as run', then run.{name}")

    def __enter__(self) -> Recording:
        return self._open.enter_context(_in_store(self._begun, self._settings))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


def desk_of(platform: Platform) -> Desk:
    return Desk(
        objects=platform.objects,
        catalog=platform.catalog,
        clock=platform.clock,
        sources=FileSources(os.sep, apart=platform.home.path),
        register=lambda tx, digest, raw: register_within(platform, tx, digest, raw),
    )


@contextmanager
def _in_store(start: Callable[[Platform], Recording], settings: Settings | None) -> Iterator[Recording]:
    with opened(settings or from_environment()) as platform:
        recording = start(platform)
        try:
            with recording:
                yield recording
        except BaseException as error:
            error.add_note(_where(recording, error))
            raise


def _where(recording: Recording, error: BaseException) -> str:
    """Where what was recorded is, for whoever reads the traceback."""
    if recording.reference is not None:
        return f"the recording {recording.id} is finished: {recording.reference}"
    if isinstance(error, RecordingFinished):
        return f"'ctx finalize {recording.id}' tells the pack that it became"
    return f"recorded so far: {recording.id}; 'ctx finalize {recording.id}' makes a pack of it"


def _known(text: str, platform: Platform) -> Digest:
    """The registered pack that `text` names, whole."""
    reference = _read(text)
    named = ExecutionRef(reference.named) if isinstance(reference.named, Digest) else reference.named
    if reference.selector or not isinstance(named, ExecutionRef | ExecutionPrefix):
        raise RecordingRefused((Problem(at="/parent", message=f"names no execution pack: {text[:80]!r}"),))
    return load(find_execution_pack(platform.catalog, named), platform.objects).digest


def _read(text: str) -> Reference:
    try:
        return parse_reference(text)
    except InvalidReference as error:
        error.hint = _HINT if error.hint == FORMS else error.hint  # of all that there is, only runs are parents
        raise


def _plain(value: Mapping[str, T] | None) -> dict[str, T] | None:
    """A dictionary; what is no mapping stays what it is, and is refused with its place."""
    return dict(value) if isinstance(value, Mapping) else value


def recording_comparison(platform: Platform) -> Comparison:
    """Every recording that is no pack yet can be read, and what it needs is kept."""
    desk = desk_of(platform)

    def compared(view: View) -> Iterator[Finding]:
        for one in unkept(desk, view):
            if one.lost is None:
                yield Finding(state="corrupt", what=one.stream, why=one.problem)
            else:
                yield Finding(state="index", what=one.stream, why=f"it needs {one.lost}, and nothing keeps that")

    return compared
