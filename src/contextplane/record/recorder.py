"""Recording a run while it happens, so that what was recorded survives the process that recorded it.

Every content is an object before its event is written, and every event is durable before the call returns. A run that
was not finished can be finished later, from what it recorded.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import ClassVar, Self

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json, canonical
from contextplane.model.ids import Digest
from contextplane.model.manifest import Environment, Input, Model, Output, Prompt, Step, manifest_bytes
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import BLOB, MAX_INLINE, Catalog, Event, Recorded
from contextplane.ports.clock import Clock
from contextplane.ports.objects import Objects
from contextplane.record.folding import Began, Finished, Noted, RecordingBroken, folded

__all__ = ["Desk", "Recorder", "RecordingFinished", "RecordingRefused", "unfinished"]

_STREAM = "recording/"
_decoder = msgspec.json.Decoder(Began | Noted | Finished)


class RecordingFinished(ContextPlaneError):
    """A recording that was finished takes nothing more."""

    code: ClassVar[str] = "recording_finished"
    family: ClassVar[Family] = "conflict"


class RecordingRefused(ContextPlaneError):
    """Something that a manifest cannot hold was about to be recorded: a name that is no text, for example."""

    code: ClassVar[str] = "recording_refused"
    family: ClassVar[Family] = "refused"


class Desk(Value, frozen=True):
    """What a recorder works with. `register` makes a stored manifest a registered execution pack."""

    objects: Objects
    catalog: Catalog
    clock: Clock
    register: Callable[[Digest, bytes], bool]


class Recorder:
    """One run being recorded. Leaving its block finishes it; leaving it by an exception leaves it to be resumed."""

    def __init__(self, desk: Desk, recording_id: str) -> None:
        self._desk = desk
        self.id = recording_id
        with desk.catalog.read() as view:
            self._seq = view.streams.head(self._stream)
        self._digest = self._finished_as()

    @classmethod
    def begin(
        cls, desk: Desk, recording_id: str, *, model: Model, system_prompt: str | bytes, environment: Environment
    ) -> Self:
        """Begin a new recording under a name nobody has used."""
        recorder = cls(desk, recording_id)
        if recorder._seq:
            raise RecordingFinished("this id was used before", at=recording_id, hint="begin under another one")
        prompt = recorder._put(system_prompt)
        began = Began(model=model, system_prompt=str(prompt), environment=environment)
        recorder._append(began, prompt)
        return recorder

    @property
    def digest(self) -> Digest | None:
        """The pack that it became, once it is finished."""
        return self._digest

    def prompt(self, role: str, content: str | bytes) -> None:
        digest = self._put(content)
        self._append(Noted(part=Prompt(role=role, content_ref=str(digest))), digest)

    def input(self, name: str, content: str | bytes) -> None:
        digest = self._put(content)
        size = self._desk.objects.size(digest)
        self._append(Noted(given=Input(name=name, content_ref=str(digest), size=size)), digest)

    def step(
        self,
        tool: str = "",
        *,
        kind: str = "tool_call",
        parameters: Mapping[str, Json] | None = None,
        output: str | bytes = b"",
        deterministic: bool = False,
    ) -> None:
        """One action and what came of it, as of now. `kind="reasoning"` needs no tool."""
        if parameters is not None:
            canonical(dict(parameters))  # what JSON does not have, a set for example, has no order to record
        digest = self._put(output) if output else None
        step = Step(
            type=kind,
            tool=tool,
            parameters=dict(parameters) if parameters is not None else None,
            output_ref=str(digest) if digest else "",
            deterministic=deterministic,
            timestamp=str(Timestamp.of(self._desk.clock.now())),
        )
        self._append(Noted(step=step), *([digest] if digest else []))

    def output(self, name: str, content: str | bytes) -> None:
        digest = self._put(content)
        self._append(Noted(made=Output(name=name, content_ref=str(digest))), digest)

    def finish(self) -> Digest:
        """Make what was recorded an execution pack. Doing it again, also after a crash, gives the same one."""
        if self._digest is None:
            raw = manifest_bytes(folded(self._events()))
            digest = self._desk.objects.put(raw)
            self._desk.register(digest, raw)
            self._append(Finished(digest=str(digest)))
            with self._desk.catalog.write(survives="crash") as tx:
                for name, _ in list(tx.objects.roots(f"{self._stream}/")):
                    tx.objects.release(name)
            self._digest = digest
        return self._digest

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    @property
    def _stream(self) -> str:
        return _STREAM + self.id

    def _put(self, content: str | bytes) -> Digest:
        return self._desk.objects.put(content.encode() if isinstance(content, str) else content)

    def _append(self, event: Began | Noted | Finished, *contents: Digest) -> None:
        """Write an event, with its contents kept alive until the pack keeps them."""
        if self._digest is not None:
            raise RecordingFinished("this recording is finished", at=self.id, hint="begin another one")
        try:
            body = canonical(msgspec.to_builtins(event))
            _decoder.decode(body)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            # Before it is written: afterwards nothing could be made of the whole recording.
            raise RecordingRefused(f"cannot be recorded: {error}", at=self.id, hint="check the types") from error
        if len(body) > MAX_INLINE:
            elsewhere = self._desk.objects.put(body)
            body, contents = canonical({"ref": str(elsewhere)}), (*contents, elsewhere)
        with self._desk.catalog.write() as tx:
            self._seq = tx.streams.append(self._stream, self._seq, [Event(kind="recorded", body=body)])
            for n, digest in enumerate(contents):
                size = self._desk.objects.size(digest)
                tx.objects.record(Recorded(digest=digest, kind=BLOB, size=size, traced=True))
                tx.objects.keep(f"{self._stream}/{self._seq}/{n}", digest)

    def _events(self) -> list[Began | Noted | Finished]:
        with self._desk.catalog.read() as view:
            bodies = [event.body for event in view.streams.read(self._stream)]
        return [self._event(body) for body in bodies]

    def _event(self, body: bytes) -> Began | Noted | Finished:
        try:
            pointer = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
            if set(pointer) == {"ref"}:
                body = self._desk.objects.get(Digest.parse(msgspec.json.decode(pointer["ref"], type=str)))
            event: Began | Noted | Finished = _decoder.decode(body)
        except msgspec.DecodeError as error:
            raise RecordingBroken(str(error), at=self._stream, hint="it was not written by a recorder") from error
        return event

    def _finished_as(self) -> Digest | None:
        for event in self._events():
            if isinstance(event, Finished):
                return Digest.parse(event.digest)
        return None


def unfinished(desk: Desk) -> list[str]:
    """The recordings that were begun and not finished, by id."""
    with desk.catalog.read() as view:
        names = list(view.streams.names(_STREAM))
    return [name for name in (stream.removeprefix(_STREAM) for stream in names) if not _is_finished(desk, name)]


def _is_finished(desk: Desk, recording_id: str) -> bool:
    try:
        return Recorder(desk, recording_id).digest is not None
    except RecordingBroken:
        return False  # somebody has to look at it
