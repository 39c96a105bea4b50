"""A recording is its events: what has been recorded so far is a fold over them. Pure.

What a log could not say, a recording cannot either: checked call by call, before anything is written.

The contents that a program hands over while it runs: text, bytes, the file at a path, or chunks as they come.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Stored
from contextplane.model.execution.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.pointer import pointer
from contextplane.model.problems import DocumentInvalid, Problem
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.policy.detect.secrets import SecretScan, secret_shapes
from contextplane.ports.objects import Batch
from contextplane.ports.world import Sources
from contextplane.record.pack_log import PutContent

__all__ = [
    "Began",
    "Checking",
    "Finished",
    "Given",
    "Noted",
    "RecordingBroken",
    "RecordingEvent",
    "RecordingRefused",
    "SoFar",
    "folded",
    "put_given",
    "room_of",
]

_BESIDE = 10  # the comma behind an entry, and the digits of its index
_FRAME = 200  # the names of the fields, the version and the time


class RecordingBroken(ContextPlaneError):
    """The events of a recording are not those that a recorder writes."""

    code: ClassVar[str] = "recording_broken"
    family: ClassVar[Family] = "refused"


class Began(Value, frozen=True, tag="began"):
    """The first event: when, under which model and where.

    `suspects`: which field looks to hold which secret. `unsearched`: of which only the beginning was looked at.
    """

    model: Model
    system_prompt: str
    environment: Environment
    parent: str = ""
    begun: str = ""
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()


class Noted(Value, frozen=True, tag="noted"):
    """One thing that belongs to the run.

    `suspects`: which of its fields looks to hold which kind of secret. `unsearched`: of which only the beginning was
    looked at.
    """

    part: Prompt | None = None
    given: Input | None = None
    step: Step | None = None
    made: Output | None = None
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()


class Finished(Value, frozen=True, tag="finished"):
    """The last event: the run is the pack of this digest. Nothing follows it."""

    digest: str


RecordingEvent = Began | Noted | Finished


class SoFar(Value, frozen=True):
    """What was recorded: the manifest it makes, where something looks like a secret, and the pack it was closed as.

    `unsearched`: of which contents only the beginning was looked at for secrets.
    """

    manifest: Manifest
    begun: Timestamp
    suspects: tuple[tuple[str, str], ...]
    unsearched: tuple[str, ...]
    finished: Digest | None


class _Lists:
    """The lists of a manifest as they grow."""

    def __init__(self) -> None:
        self.of: dict[str, list[Any]] = {"prompts": [], "inputs": [], "steps": [], "outputs": []}
        self.suspects: list[tuple[str, str]] = []
        self.unsearched: list[str] = []

    def add(self, event: Noted) -> None:
        named = (("prompts", event.part), ("inputs", event.given), ("steps", event.step), ("outputs", event.made))
        for name, one in named:
            if one is not None:
                at = f"/{name}/{len(self.of[name])}"
                self.suspects += [(f"{at}/{field}", kind) for field, kind in event.suspects]
                self.unsearched += [f"{at}/{field}" for field in event.unsearched]
                self.of[name].append(one)


def folded(events: Iterable[RecordingEvent]) -> SoFar:
    """What these events say. The run's `created` is the time of its newest step, or when it began if it has none."""
    began: Began | None = None
    finished: Digest | None = None
    lists = _Lists()
    for event in events:
        match event:
            case Began():
                began = event
                lists.suspects += [(f"/{field}", kind) for field, kind in event.suspects]
                lists.unsearched += [f"/{field}" for field in event.unsearched]
            case Noted():
                lists.add(event)
            case Finished():
                finished = Digest.parse(event.digest)
    if began is None:
        raise RecordingBroken("it does not begin", hint="it was not written by a recorder")
    begun = Timestamp.parse(began.begun) if began.begun else NO_TIME
    steps = lists.of["steps"]
    manifest = Manifest(
        created=str(max((Timestamp.parse(step.timestamp) for step in steps), default=begun)),
        model=began.model,
        system_prompt=began.system_prompt,
        environment=began.environment,
        parent=began.parent,
        prompts=tuple(lists.of["prompts"]),
        inputs=tuple(lists.of["inputs"]),
        steps=tuple(msgspec.structs.replace(step, index=n) for n, step in enumerate(steps)),
        outputs=tuple(lists.of["outputs"]),
    )
    return SoFar(
        manifest=manifest,
        begun=begun,
        suspects=tuple(lists.suspects),
        unsearched=tuple(lists.unsearched),
        finished=finished,
    )


def room_of(event: Began | Noted) -> int:
    """How many bytes of the manifest an event takes: never too few, and too many by less than the name of a field."""
    if isinstance(event, Began):
        named = {"model": event.model, "environment": event.environment, "system_prompt": event.system_prompt}
        return _FRAME + len(canonical(msgspec.to_builtins({**named, "parent": event.parent})))
    parts = (one for one in (event.part, event.given, event.step, event.made) if one is not None)
    return sum(_BESIDE + len(canonical(msgspec.to_builtins(part))) for part in parts)


_PARAMETERS = "/steps/0/parameters"


class RecordingRefused(DocumentInvalid):
    """Something that no execution pack can hold was about to be recorded: a step without a tool, for example."""

    code: ClassVar[str] = "recording_refused"
    way_out: ClassVar[str] = "nothing of this call was recorded; mend what is named"
    whole_list: ClassVar[str] = "its `problems` lists them all"


class Checking:
    """Notes what is wrong with the arguments of one call; leaving its block tells all of it, with its places."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None and self._problems:
            raise RecordingRefused(tuple(self._problems))

    def text(self, value: object, at: str, *, required: bool = False) -> None:
        if type(value) is not str:
            self._note(at, f"must be text, not {type(value).__name__}")
        elif required and not value:
            self._note(at, "is missing")
        elif not _is_unicode(value):
            self._note(at, "is not Unicode text")

    def flag(self, value: object, at: str) -> None:
        if type(value) is not bool:
            self._note(at, f"must be true or false, not {type(value).__name__}")

    def free(self, value: object, at: str) -> None:
        """An object with any content that JSON has, or nothing."""
        if value is None:
            return
        if type(value) is not dict:
            self._note(at, f"must be an object, not {type(value).__name__}")
            return
        try:
            canonical({"steps": [{"parameters": value}]})  # as deep as it will stand in the manifest
        except JsonRefused as error:
            self._note(at + (error.at or "").removeprefix(_PARAMETERS), error.message)

    def versions(self, value: object, at: str) -> None:
        self.free(value, at)
        for tool, version in value.items() if type(value) is dict else ():
            self.text(version, at + pointer([tool]))

    def content(self, value: object, at: str, *, required: bool = False) -> None:
        if isinstance(value, str | bytes | bytearray | memoryview):
            if required and not value:
                self._note(at, "is missing")
            elif isinstance(value, str) and not _is_unicode(value):
                self._note(at, "is not Unicode text")
        elif not isinstance(value, os.PathLike | Iterable):
            self._note(at, f"must be text, bytes, a path or chunks of bytes, not {type(value).__name__}")

    def _note(self, at: str, message: str) -> None:
        self._problems.append(Problem(at=at, message=message))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


Given: TypeAlias = "str | bytes | bytearray | memoryview | os.PathLike[str] | Iterable[bytes]"
"""A path is a `Path`: a text is always the content itself. Files and chunks are streamed, never wholly in memory."""


def put_given(content: Given, batch: Batch, sources: Sources, at: str) -> PutContent:
    """Put a content. `at`: where it will stand in the manifest, for whoever is told that it cannot."""
    if isinstance(content, str | bytes | bytearray | memoryview):
        data = content.encode() if isinstance(content, str) else bytes(content)
        return PutContent(stored=Stored(digest=batch.put(data), size=len(data)), suspects=secret_shapes(data))
    scan = SecretScan()
    chunks = _file(content, sources, at) if isinstance(content, os.PathLike) else _checked(content, at)
    return PutContent(stored=batch.put_stream(_seen(chunks, scan)), suspects=scan.kinds)


def _seen(chunks: Iterator[bytes], scan: SecretScan) -> Iterator[bytes]:
    for chunk in chunks:
        scan.see(chunk)
        yield chunk


def _file(path: "os.PathLike[str]", sources: Sources, at: str) -> Iterator[bytes]:
    try:
        yield from sources.chunks(str(Path(path).absolute()))
    except ContextPlaneError as error:
        error.at = f"{at} ({os.fspath(path)})"
        raise


def _checked(chunks: Iterable[bytes], at: str) -> Iterator[bytes]:
    for chunk in chunks:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise RecordingRefused(
                (Problem(at=at, message=f"must come in chunks of bytes, not {type(chunk).__name__}"),)
            )
        yield bytes(chunk)
