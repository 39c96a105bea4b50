"""Records the runs of an agent loop into the current store.

with Recorder(model="model-x", system_prompt="You are careful.") as run:
    run.prompt("user", "Refund order 881")
    run.step("read_file", parameters={"path": "order.json"}, output=Path("order.json"))
    run.output("report.md", "# Refunded")
print(run.reference)

`finish_recording` makes a pack of a recording that its process left; `recording_comparison` is what `fsck` and `gc`
check of recordings.
"""

import os
import platform as machine
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from contextplane.adapters.files.workspace import FileSources
from contextplane.adapters.system import SystemIds
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings, from_environment
from contextplane.audit.load import load_pack
from contextplane.model.execution.manifest import Environment, Manifest, Model
from contextplane.model.ids import Digest, ExecutionRef, RecordingId
from contextplane.model.json.canonical import Json
from contextplane.model.problems import Problem
from contextplane.model.reference import FORMS, ExecutionPrefix, InvalidReference, Reference, parse_reference
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction, View
from contextplane.record.events import ContentLike, RecordingRefused
from contextplane.record.journal import RecordingContext, RecordingFinished
from contextplane.record.recorder import Recording, UnfinishedRecording, find_unrooted, list_unfinished
from contextplane.store.damage import Comparison, FsckFinding
from contextplane.store.find import find_execution_pack

__all__ = [
    "FinishedRecording",
    "Recorder",
    "UnfinishedRecording",
    "finish_recording",
    "recording_comparison",
    "recording_context",
    "unfinished_recordings",
]

T = TypeVar("T")
_HINT = "write ctx://<hash> or its first digits; 'ctx log' lists them"


class FinishedRecording(Value, frozen=True):
    """The pack that a recording became.

    `new`: it was not finished before. `suspects` and `unsearched` are None if its events were collected since then.
    """

    id: str
    digest: Digest
    manifest: Manifest
    new: bool
    suspects: tuple[tuple[str, str], ...] | None
    unsearched: tuple[str, ...] | None


class Recorder:
    """Begins a recording when its block is entered, and makes it an execution pack when the block is left.

    Each call of `run` is durable when it returns. When the block is left by an exception, or the process dies,
    `Recorder.resume` continues the recording and `ctx finalize` makes a pack of what was recorded so far.

    A content is text, bytes, a `Path` of a regular file outside the store (streamed) or an iterable of chunks of bytes.
    `parent` names the execution pack that the run is a fork of.
    """

    def __init__(  # noqa: PLR0913  all that a run begins with
        self,
        *,
        model: str,
        system_prompt: ContentLike,
        parameters: Mapping[str, Json] | None = None,
        tool_versions: Mapping[str, str] | None = None,
        parent: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        def begin(platform: Platform) -> Recording:
            return Recording.begin(
                recording_context(platform),
                RecordingId(f"rec_{SystemIds().token()}"),
                model=Model(identifier=model, parameters=_as_dict(parameters)),
                system_prompt=system_prompt,
                environment=Environment(
                    os=os.uname().sysname.lower(),
                    runtime=f"python{machine.python_version()}",
                    tool_versions=_as_dict(tool_versions),
                ),
                parent=_parent_digest(parent, platform) if parent is not None else None,
            )

        self._begin = begin
        self._settings = settings
        self._open = ExitStack()

    @staticmethod
    def resume(recording_id: str, *, settings: Settings | None = None) -> AbstractContextManager[Recording]:
        """Continue a recording that was not finished: `with Recorder.resume("rec_...") as run`."""
        return _open_recording(
            lambda platform: Recording.resume(recording_context(platform), RecordingId.parse(recording_id)), settings
        )

    if not TYPE_CHECKING:  # a type checker reports a wrong attribute by itself

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"a Recorder has no {name!r}: use it as 'with Recorder(...) as run', then run.{name}")

    def __enter__(self) -> Recording:
        return self._open.enter_context(_open_recording(self._begin, self._settings))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


def recording_context(platform: Platform) -> RecordingContext:
    return RecordingContext(
        objects=platform.objects,
        catalog=platform.catalog,
        clock=platform.clock,
        sources=FileSources(os.sep, excluded_store=platform.home.path),
        register=partial(_register, platform),
    )


def _register(platform: Platform, tx: Transaction, digest: Digest, raw: bytes) -> bool:
    from contextplane.app.execution.pack import register_in_transaction

    return register_in_transaction(platform, tx, digest, raw)


def finish_recording(platform: Platform, recording_id: RecordingId) -> FinishedRecording:
    """Make an execution pack of what was recorded so far. Idempotent."""
    recording = Recording.resume(recording_context(platform), recording_id)
    new = recording.digest is None
    digest = recording.finish()
    return FinishedRecording(
        id=recording.id,
        digest=digest,
        manifest=load_pack(digest, platform.objects).manifest,
        new=new,
        suspects=recording.suspects if recording.remembered else None,
        unsearched=recording.unsearched if recording.remembered else None,
    )


def unfinished_recordings(platform: Platform) -> list[UnfinishedRecording]:
    """List the recordings that did not become a pack, the newest first."""
    return list_unfinished(recording_context(platform))


@contextmanager
def _open_recording(start: Callable[[Platform], Recording], settings: Settings | None) -> Iterator[Recording]:
    with open_platform(settings or from_environment()) as platform:
        recording = start(platform)
        try:
            with recording:
                yield recording
        except BaseException as error:
            error.add_note(_recording_note(recording, error))
            raise


def _recording_note(recording: Recording, error: BaseException) -> str:
    """Return the note for the traceback that says where the recording is."""
    if recording.reference is not None:
        return f"the recording {recording.id} is finished: {recording.reference}"
    if isinstance(error, RecordingFinished):
        return f"'ctx finalize {recording.id}' prints its pack"
    return f"recorded so far: {recording.id}; 'ctx finalize {recording.id}' makes a pack of it"


def _parent_digest(text: str, platform: Platform) -> Digest:
    """Return the registered pack that `text` names, verified by loading its manifest."""
    reference = _parse_parent(text)
    named = ExecutionRef(reference.target) if isinstance(reference.target, Digest) else reference.target
    if reference.selector or not isinstance(named, ExecutionRef | ExecutionPrefix):
        raise RecordingRefused((Problem(at="/parent", message=f"names no execution pack: {text[:80]!r}"),))
    return load_pack(find_execution_pack(platform.catalog, named), platform.objects).digest


def _parse_parent(text: str) -> Reference:
    try:
        return parse_reference(text)
    except InvalidReference as error:
        error.hint = _HINT if error.hint == FORMS else error.hint  # only execution packs can be parents
        raise


def _as_dict(value: Mapping[str, T] | None) -> dict[str, T] | None:
    """Convert a mapping to a dict. Anything else stays as it is, and is refused with its place later."""
    return dict(value) if isinstance(value, Mapping) else value


def recording_comparison(platform: Platform) -> Comparison:
    """Compare: every unfinished recording can be read, and its objects are kept from collection."""
    context = recording_context(platform)

    def compare(view: View) -> Iterator[FsckFinding]:
        for recording in find_unrooted(context, view):
            if recording.lost is None:
                yield FsckFinding(state="corrupt", what=recording.stream, why=recording.problem)
            else:
                why = f"it needs {recording.lost}, which is not stored"
                yield FsckFinding(state="index", what=recording.stream, why=why)

    return compare
