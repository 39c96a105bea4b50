"""Recording a run while it happens, so that what was recorded survives the process that recorded it.

Every content is an object before its event is written, and every event is durable before the call returns. A run that
was not finished can be finished later, from what it recorded, by any process.

How a recording stands, for whoever records it or finishes it.

The recordings that were begun and did not become a pack. What is finished costs nothing here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import ClassVar, Never, Self

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.log import REASONING
from contextplane.model.execution.manifest import Environment, Input, Model, Output, Prompt, Step
from contextplane.model.ids import Digest, InvalidId, RecordingId
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.policy.detect.secrets import looked_at
from contextplane.ports.catalog import View
from contextplane.record.events import Began, Checking, Given, Noted, RecordingBroken
from contextplane.record.journal import RECORDINGS, Desk, Entry, Journal, RecordingDamaged, RecordingIncomplete
from contextplane.record.pack_log import PutContent

__all__ = [
    "Recording",
    "RecordingNotFound",
    "Standing",
    "Unfinished",
    "Unkept",
    "keep_unfinished",
    "unfinished",
    "unkept",
]


class Standing:
    """What a recording is called, which pack it became, and what in it looks like a secret."""

    def __init__(self, recording_id: RecordingId) -> None:
        self._id = recording_id
        self._digest: Digest | None = None
        self._suspects: list[tuple[str, str]] = []
        self._unsearched: list[str] = []
        self._remembered = True

    @property
    def id(self) -> str:
        """What it is resumed and finalized by."""
        return str(self._id)

    @property
    def digest(self) -> Digest | None:
        """The pack that it became, once it is finished."""
        return self._digest

    @property
    def reference(self) -> str | None:
        """The same, as it is written on a command line."""
        return f"ctx://{self._digest.hex}" if self._digest else None

    @property
    def suspects(self) -> tuple[tuple[str, str], ...]:
        """Where something looks like a secret, and like which kind. It is recorded as it is."""
        return tuple(self._suspects)

    @property
    def unsearched(self) -> tuple[str, ...]:
        """Of which contents, too large for it, only the beginning was looked at for secrets."""
        return tuple(self._unsearched)

    @property
    def remembered(self) -> bool:
        """Whether these two are still known. The events of a recording that became a pack may be collected."""
        return self._remembered

    def _told(self, at: str, event: Began | Noted) -> None:
        self._suspects += [(f"{at}/{field}", kind) for field, kind in event.suspects]
        self._unsearched += [f"{at}/{field}" for field in event.unsearched]


class RecordingNotFound(ContextPlaneError):
    """No recording of this id was begun in this store."""

    code: ClassVar[str] = "recording_not_found"
    family: ClassVar[Family] = "not_found"


class Recording(Standing):
    """One run being recorded. Leaving its block finishes it; leaving it by an exception leaves it to be resumed.

    A content is text, bytes, a `Path` or chunks of bytes. What `ctx pack` refuses in a log is refused here, before
    anything of that call is written. Threads may share one: their calls are recorded one after the other.
    """

    def __init__(self, journal: Journal) -> None:
        """`begin` and `resume` make one."""
        super().__init__(journal.id)
        self._journal = journal
        self._lock = RLock()
        self._counts: Counter[str] = Counter()
        self._closed = False

    @classmethod
    def begin(  # noqa: PLR0913  what a run begins with
        cls,
        desk: Desk,
        recording_id: RecordingId,
        *,
        model: Model,
        system_prompt: Given,
        environment: Environment,
        parent: Digest | None = None,
    ) -> Self:
        """Begin under an id that nobody has used. `parent`: the execution pack that the run is a fork of."""
        with Checking() as check:
            check.text(model.identifier, "/model/identifier", required=True)
            check.free(model.parameters, "/model/parameters")
            check.content(system_prompt, "/system_prompt", required=True)
            check.text(environment.os, "/environment/os", required=True)
            check.text(environment.runtime, "/environment/runtime", required=True)
            check.versions(environment.tool_versions, "/environment/tool_versions")
        journal = Journal(desk, recording_id)
        with journal.entry() as entry:
            put = entry.put(system_prompt, "/system_prompt", required=True)
            search = _Search().content("system_prompt", put).beginning(model, environment)
            began = Began(
                model=model,
                system_prompt=str(put.stored.digest),
                environment=environment,
                parent=str(parent) if parent else "",
                begun=str(Timestamp.of(desk.clock.now())),
                suspects=search.suspects,
                unsearched=search.unsearched,
            )
            entry.write(began, "/", *([parent] if parent else []))
        recording = cls(journal)
        recording._told("", began)
        return recording

    @classmethod
    def resume(cls, desk: Desk, recording_id: RecordingId) -> Self:
        """Go on with a recording, whichever process began it."""
        journal = Journal(desk, recording_id)
        pack = journal.pack()
        try:
            so_far = journal.resume()
        except (RecordingDamaged, RecordingIncomplete, RecordingBroken):
            if pack is None:
                raise
            return cls._forgotten(journal, pack)
        if so_far is None:
            raise RecordingNotFound(
                "no such recording in this store", at=str(recording_id), hint="'ctx log --unfinished' lists them"
            )
        recording = cls(journal)
        for name in ("prompts", "inputs", "steps", "outputs"):
            recording._counts[name] = len(getattr(so_far.manifest, name))
        recording._suspects = list(so_far.suspects)
        recording._unsearched = list(so_far.unsearched)
        recording._closed = so_far.finished is not None
        recording._digest = pack
        return recording

    @classmethod
    def _forgotten(cls, journal: Journal, pack: Digest) -> Self:
        """A recording that is a pack, and whose events were collected: the pack is what is left of it."""
        recording = cls(journal)
        recording._closed, recording._digest, recording._remembered = True, pack, False
        return recording

    def prompt(self, role: str, content: Given) -> None:
        """What was said to the model, or by it."""
        with self._turn("prompts") as (at, entry):
            with Checking() as check:
                check.text(role, f"{at}/role")
                check.content(content, f"{at}/content")
            put = entry.put(content, f"{at}/content")
            part = Prompt(role=role, content_ref=str(put.stored.digest))
            search = _Search().content("content", put).texts("role", role)
            self._note("prompts", entry, search.of(Noted(part=part)))

    def input(self, name: str, content: Given) -> None:
        """A file or data that the run was given."""
        with self._turn("inputs") as (at, entry):
            with Checking() as check:
                check.text(name, f"{at}/name")
                check.content(content, f"{at}/content")
            put = entry.put(content, f"{at}/content")
            given = Input(name=name, content_ref=str(put.stored.digest), size=put.stored.size)
            search = _Search().content("content", put).texts("name", name)
            self._note("inputs", entry, search.of(Noted(given=given)))

    def step(
        self,
        tool: str = "",
        *,
        kind: str = "tool_call",
        parameters: Mapping[str, Json] | None = None,
        output: Given = b"",
        deterministic: bool = False,
        **others: Never,
    ) -> None:
        """One action and what came of it, as of now. Only `kind="reasoning"` needs no tool."""
        _refuse_others(others)
        with self._turn("steps") as (at, entry):
            free = dict(parameters) if isinstance(parameters, Mapping) else parameters
            with Checking() as check:
                check.text(kind, f"{at}/type", required=True)
                check.text(tool, f"{at}/tool", required=kind != REASONING)
                check.free(free, f"{at}/parameters")
                check.content(output, f"{at}/output")
                check.flag(deterministic, f"{at}/deterministic")
            nothing = isinstance(output, str | bytes) and not output
            put = None if nothing else entry.put(output, f"{at}/output")
            step = Step(
                type=kind,
                tool=tool,
                parameters=free,
                output_ref=str(put.stored.digest) if put and put.stored.size else "",
                deterministic=deterministic,
                timestamp=str(Timestamp.of(self._journal.desk.clock.now())),
            )
            search = _Search().content("output", put).texts("type", kind).texts("tool", tool).texts("parameters", free)
            self._note("steps", entry, search.of(Noted(step=step)))

    def output(self, name: str, content: Given) -> None:
        """Something that the run made."""
        with self._turn("outputs") as (at, entry):
            with Checking() as check:
                check.text(name, f"{at}/name", required=True)
                check.content(content, f"{at}/content")
            put = entry.put(content, f"{at}/content")
            made = Output(name=name, content_ref=str(put.stored.digest))
            search = _Search().content("content", put).texts("name", name)
            self._note("outputs", entry, search.of(Noted(made=made)))

    def finish(self) -> Digest:
        """Make what was recorded an execution pack. Doing it again, also after a crash, gives the same one."""
        with self._lock:
            if self._digest is None:
                closed = self._journal.close()
                self._closed = True
                self._journal.register(closed)
                self._digest = closed.digest
            return self._digest

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    @contextmanager
    def _turn(self, name: str) -> Iterator[tuple[str, Entry]]:
        """One thread's turn to note something: where in the manifest it will stand, and what to write it with."""
        with self._lock:
            if self._closed:
                raise self._journal.finished()
            with self._journal.entry() as entry:
                yield f"/{name}/{self._counts[name]}", entry

    def _note(self, name: str, entry: Entry, noted: Noted) -> None:
        at = f"/{name}/{self._counts[name]}"
        entry.write(noted, at)
        self._told(at, noted)
        self._counts[name] += 1


def _refuse_others(others: Mapping[str, object]) -> None:
    """Python's own refusal of an argument that there is not. It names the one that a log calls otherwise."""
    for name in others:
        kind = ': what a log calls type is kind here, as in kind="reasoning"' if name == "type" else ""
        raise TypeError(f"step() got an unexpected keyword argument {name!r}{kind}")


class _Search:
    """What looking for secrets showed, field by field of one event."""

    def __init__(self) -> None:
        self.suspects: tuple[tuple[str, str], ...] = ()
        self.unsearched: tuple[str, ...] = ()

    def content(self, field: str, put: PutContent | None) -> Self:
        return self._add(field, put.suspects, whole=put.searched) if put else self

    def texts(self, field: str, value: Json) -> Self:
        looked = looked_at(value)
        return self._add(field, looked.kinds, whole=looked.whole)

    def beginning(self, model: Model, environment: Environment) -> Self:
        self.texts("model/identifier", model.identifier).texts("model/parameters", model.parameters)
        versions: dict[str, Json] = {**(environment.tool_versions or {})}
        return self.texts("environment", [environment.os, environment.runtime, versions])

    def of(self, noted: Noted) -> Noted:
        return replace(noted, suspects=self.suspects, unsearched=self.unsearched)

    def _add(self, field: str, kinds: tuple[str, ...], *, whole: bool) -> Self:
        self.suspects += tuple((field, kind) for kind in kinds)
        self.unsearched += () if whole else (field,)
        return self


class Unfinished(Value, frozen=True):
    """A recording as it stands. `problem`: why it cannot be read, when it cannot."""

    id: RecordingId
    begun: Timestamp = NO_TIME
    model: str = ""
    steps: int = 0
    problem: str = ""


def unfinished(desk: Desk) -> list[Unfinished]:
    """Those that can be resumed or finished, the newest first."""
    with desk.catalog.read() as view:
        recordings = [_as_it_stands(desk, with_root, view) for with_root in _with_roots(view)]
    return sorted(recordings, key=lambda recording: (recording.begun, recording.id), reverse=True)


def keep_unfinished(desk: Desk) -> None:
    """Keep the contents of every unfinished recording anew: what kept them is index, and may be lost with a catalog."""
    with desk.catalog.write() as tx:
        for stream in list(tx.streams.names(RECORDINGS)):
            try:
                Journal(desk, RecordingId.parse(stream.removeprefix(RECORDINGS))).keep_again(tx)
            except ContextPlaneError:
                continue  # it cannot be read, so nobody can tell what it needs


class Unkept(Value, frozen=True):
    """A recording whose contents may be collected. `lost`: something that it needs and that nothing keeps.

    None when its events cannot be read, so that nobody can tell what it needs: `problem` says why.
    """

    stream: str
    lost: Digest | None = None
    problem: str = ""


def unkept(desk: Desk, view: View) -> Iterator[Unkept]:
    """Every recording that its roots do not keep whole. Those that became a pack need none."""
    for stream in view.streams.names(RECORDINGS):
        try:
            journal = Journal(desk, RecordingId.parse(stream.removeprefix(RECORDINGS)))
            needed, kept = journal.needs(view), journal.kept(view)
        except ContextPlaneError as error:
            yield Unkept(stream=stream, problem=f"{error.code}: {error.message}")
            continue
        for digest in needed:
            if digest not in kept:
                yield Unkept(stream=stream, lost=digest)
                break


def _with_roots(view: View) -> Iterator[RecordingId]:
    names = dict.fromkeys(name.removeprefix(RECORDINGS).partition("/")[0] for name, _ in view.objects.roots(RECORDINGS))
    for name in names:
        try:
            yield RecordingId.parse(name)
        except InvalidId:
            continue


def _as_it_stands(desk: Desk, recording_id: RecordingId, view: View) -> Unfinished:
    try:
        so_far = Journal(desk, recording_id).read(view)
    except ContextPlaneError as error:
        return Unfinished(id=recording_id, problem=f"{error.code}: {error.message}")
    manifest = so_far.manifest
    return Unfinished(id=recording_id, begun=so_far.begun, model=manifest.model.identifier, steps=len(manifest.steps))
