"""The events of a recording, their fold into a manifest, and the checks of what a program records.

The state of a recording is a fold over its events. What an execution log could not contain, a recording cannot either:
`CallCheck` checks the arguments of each call before anything is written. `put_content` is the only function here that
does I/O: it puts one content into a batch.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, assert_never

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import StoredObject
from contextplane.model.execution.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.pointer import pointer
from contextplane.model.problems import DocumentInvalid, Problem, ProblemCollector
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.policy.detect.secrets import secret_shapes
from contextplane.ports.objects import Batch
from contextplane.ports.world import Sources
from contextplane.record.pack_log import StoredContent, put_chunks

__all__ = [
    "CallCheck",
    "ContentLike",
    "ItemRecorded",
    "RecordingBroken",
    "RecordingClosed",
    "RecordingEvent",
    "RecordingRefused",
    "RecordingStarted",
    "RecordingState",
    "extend_recording",
    "not_begun_error",
    "put_content",
    "size_in_manifest",
]

_ENTRY_BYTES = 10  # the comma behind an entry, and the digits of its index
_FRAME_BYTES = 200  # the names of the fields, the version and the time
_PARAMETERS = "/steps/0/parameters"

ContentLike: TypeAlias = "str | bytes | bytearray | memoryview | os.PathLike[str] | Iterable[bytes]"
"""A content that a program records. A `str` is always the content itself, never a path.

Files and chunks are streamed, never wholly in memory.
"""


class RecordingBroken(ContextPlaneError):
    """The events of a recording are not those that a recorder writes."""

    code: ClassVar[str] = "recording_broken"
    family: ClassVar[Family] = "refused"


class RecordingStarted(Value, frozen=True, tag="began"):
    """The first event: when the run began, with which model and in which environment.

    `suspects`: fields that look like they hold a secret, with its kind. `unsearched`: fields too large to be searched
    to their end.
    """

    model: Model
    system_prompt: str
    environment: Environment
    parent: str = ""
    begun: str = ""
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()


class ItemRecorded(Value, frozen=True, tag="noted"):
    """A prompt, an input, a step or an output of the run. Exactly one of the four is set.

    `suspects` and `unsearched`: as in `RecordingStarted`. The names of stored fields are those of `msgspec.field`.
    """

    prompt: Prompt | None = msgspec.field(default=None, name="part")
    input: Input | None = msgspec.field(default=None, name="given")
    step: Step | None = None
    output: Output | None = msgspec.field(default=None, name="made")
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()

    def items(self) -> Iterator[tuple[str, Prompt | Input | Step | Output]]:
        """Yield the recorded item, with the name of its list in the manifest."""
        if self.prompt is not None:
            yield "prompts", self.prompt
        if self.input is not None:
            yield "inputs", self.input
        if self.step is not None:
            yield "steps", self.step
        if self.output is not None:
            yield "outputs", self.output


class RecordingClosed(Value, frozen=True, tag="finished"):
    """The last event: the manifest of the run has this digest. No event follows it."""

    digest: str


RecordingEvent = RecordingStarted | ItemRecorded | RecordingClosed


class RecordingState(Value, frozen=True):
    """What was recorded so far: the manifest, the suspected secrets, and the digest it was closed as.

    `suspects`: places that look like a secret, with its kind. `unsearched`: places too large to be searched to their
    end. `closed_as` is None while the recording is open.
    """

    manifest: Manifest
    begun: Timestamp
    suspects: tuple[tuple[str, str], ...]
    unsearched: tuple[str, ...]
    closed_as: Digest | None


class _ManifestLists:
    """The four lists of a manifest while events are folded, and the findings of the secret search."""

    def __init__(self, state: RecordingState | None) -> None:
        self.of: dict[str, list[Any]] = {
            name: list(getattr(state.manifest, name)) if state else []
            for name in ("prompts", "inputs", "steps", "outputs")
        }
        self.suspects = list(state.suspects) if state else []
        self.unsearched = list(state.unsearched) if state else []

    def add(self, event: ItemRecorded) -> None:
        for name, item in event.items():
            number = len(self.of[name])
            self.add_findings(f"/{name}/{number}", event)
            self.of[name].append(msgspec.structs.replace(item, index=number) if isinstance(item, Step) else item)

    def add_findings(self, at: str, event: RecordingStarted | ItemRecorded) -> None:
        self.suspects += [(f"{at}/{field}", kind) for field, kind in event.suspects]
        self.unsearched += [f"{at}/{field}" for field in event.unsearched]


def extend_recording(state: RecordingState | None, events: Iterable[RecordingEvent]) -> RecordingState | None:
    """Fold more events into the state of a recording, which is None before its first event.

    The run's `created` is the time of its newest step, or the time it began if it has no step.
    """
    started = _started_event(state) if state else None
    closed_as = state.closed_as if state else None
    lists, is_changed = _ManifestLists(state), False
    for event in events:
        is_changed = True
        match event:
            case RecordingStarted():
                started = event
                lists.add_findings("", event)
            case ItemRecorded():
                lists.add(event)
            case RecordingClosed():
                closed_as = Digest.parse(event.digest)
            case unreachable:
                assert_never(unreachable)
    if not is_changed:
        return state
    if started is None:
        raise not_begun_error()
    begun = Timestamp.parse(started.begun) if started.begun else NO_TIME
    manifest = Manifest(
        created=str(max((Timestamp.parse(step.timestamp) for step in lists.of["steps"]), default=begun)),
        model=started.model,
        system_prompt=started.system_prompt,
        environment=started.environment,
        parent=started.parent,
        prompts=tuple(lists.of["prompts"]),
        inputs=tuple(lists.of["inputs"]),
        steps=tuple(lists.of["steps"]),
        outputs=tuple(lists.of["outputs"]),
    )
    return RecordingState(
        manifest=manifest,
        begun=begun,
        suspects=tuple(lists.suspects),
        unsearched=tuple(lists.unsearched),
        closed_as=closed_as,
    )


def not_begun_error() -> RecordingBroken:
    """The error for a stream without a first event."""
    return RecordingBroken("it does not begin", hint="it was not written by a recorder")


def _started_event(state: RecordingState) -> RecordingStarted:
    """The first event of a recording, as far as its state depends on it."""
    manifest = state.manifest
    return RecordingStarted(
        model=manifest.model,
        system_prompt=manifest.system_prompt,
        environment=manifest.environment,
        parent=manifest.parent,
        begun=str(state.begun),
    )


def size_in_manifest(event: RecordingStarted | ItemRecorded) -> int:
    """The bytes that an event adds to the manifest, at most.

    Never too few; too many by less than the name of a field.
    """
    match event:
        case RecordingStarted():
            fields = {"model": event.model, "environment": event.environment, "system_prompt": event.system_prompt}
            return _FRAME_BYTES + len(canonical(msgspec.to_builtins({**fields, "parent": event.parent})))
        case ItemRecorded():
            return sum(_ENTRY_BYTES + len(canonical(msgspec.to_builtins(item))) for _, item in event.items())
        case unreachable:
            assert_never(unreachable)


# --- checking what is recorded ----------------------------------------------------------------------------------------


class RecordingRefused(DocumentInvalid):
    """Something that no execution pack can hold was about to be recorded: a step without a tool, say."""

    code: ClassVar[str] = "recording_refused"
    way_out: ClassVar[str] = "nothing of this call was recorded; fix the problems that are named"
    whole_list: ClassVar[str] = "its `problems` lists them all"


class CallCheck(ProblemCollector):
    """Checks the arguments of a call of a recorder.

    Leaving its block raises `RecordingRefused` with all problems.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None and self.problems:
            raise RecordingRefused(tuple(self.problems))

    def text(self, value: object, at: str, *, required: bool = False) -> None:
        if type(value) is not str:
            self.note(at, f"must be text, not {type(value).__name__}")
        elif required and not value:
            self.note(at, "is missing")
        elif not _is_unicode(value):
            self.note(at, "is not Unicode text")

    def flag(self, value: object, at: str) -> None:
        if type(value) is not bool:
            self.note(at, f"must be true or false, not {type(value).__name__}")

    def free(self, value: object, at: str) -> None:
        """Check a JSON object with any fields, or None."""
        if value is None:
            return
        if type(value) is not dict:
            self.note(at, f"must be an object, not {type(value).__name__}")
            return
        try:
            canonical({"steps": [{"parameters": value}]})  # as deep as it will stand in the manifest
        except JsonRefused as error:
            self.note(at + (error.at or "").removeprefix(_PARAMETERS), error.message)

    def versions(self, value: object, at: str) -> None:
        self.free(value, at)
        for tool, version in value.items() if type(value) is dict else ():
            self.text(version, at + pointer([tool]))

    def content(self, value: object, at: str, *, required: bool = False) -> None:
        if isinstance(value, str | bytes | bytearray | memoryview):
            if required and not value:
                self.note(at, "is missing")
            elif isinstance(value, str) and not _is_unicode(value):
                self.note(at, "is not Unicode text")
        elif not isinstance(value, os.PathLike | Iterable):
            self.note(at, f"must be text, bytes, a path or chunks of bytes, not {type(value).__name__}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def put_content(content: ContentLike, batch: Batch, sources: Sources, at: str) -> StoredContent:
    """Put a content into the batch, and search it for secrets. `at`: its place in the manifest."""
    match content:
        case str():
            return _put_bytes(content.encode(), batch)
        case bytes() | bytearray() | memoryview():
            return _put_bytes(bytes(content), batch)
        case os.PathLike():
            return put_chunks(_file_chunks(content, sources, at), batch)
        case Iterable():
            return put_chunks(_require_bytes(content, at), batch)
        case unreachable:
            assert_never(unreachable)


def _put_bytes(data: bytes, batch: Batch) -> StoredContent:
    return StoredContent(stored=StoredObject(digest=batch.put(data), size=len(data)), suspects=secret_shapes(data))


def _file_chunks(path: "os.PathLike[str]", sources: Sources, at: str) -> Iterator[bytes]:
    try:
        yield from sources.chunks(str(Path(path).absolute()))
    except ContextPlaneError as error:
        error.at = f"{at} ({os.fspath(path)})"
        raise


def _require_bytes(chunks: Iterable[bytes], at: str) -> Iterator[bytes]:
    for chunk in chunks:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise RecordingRefused(
                (Problem(at=at, message=f"must come in chunks of bytes, not {type(chunk).__name__}"),)
            )
        yield bytes(chunk)
