"""The recorder: records a run while it happens, so that what was recorded survives the process.

Every content is an object before its event is written, and every event is durable before the call returns. Any process
can finish an unfinished recording later, from its events. `list_unfinished` and `find_unrooted` examine the recordings
that did not become a pack; finished ones cost nothing there.
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
from contextplane.policy.detect.secrets import scan_value
from contextplane.ports.catalog import View
from contextplane.record.events import CallCheck, ContentLike, ItemRecorded, RecordingBroken, RecordingStarted
from contextplane.record.journal import (
    RECORDINGS,
    Journal,
    JournalEntry,
    RecordingContext,
    RecordingDamaged,
    RecordingIncomplete,
)
from contextplane.record.pack_log import StoredContent

__all__ = [
    "Recording",
    "RecordingNotFound",
    "RecordingStatus",
    "UnfinishedRecording",
    "UnrootedRecording",
    "find_unrooted",
    "list_unfinished",
    "restore_recording_roots",
]


class RecordingStatus:
    """The status of a recording: its id, the pack it became, and what in it looks like a secret."""

    def __init__(self, recording_id: RecordingId) -> None:
        self._id = recording_id
        self._digest: Digest | None = None
        self._suspects: list[tuple[str, str]] = []
        self._unsearched: list[str] = []
        self._remembered = True

    @property
    def id(self) -> str:
        """The id by which it is resumed and finalized."""
        return str(self._id)

    @property
    def digest(self) -> Digest | None:
        """The pack that it became, or None while it is not finished."""
        return self._digest

    @property
    def reference(self) -> str | None:
        """The reference of the pack, as written on a command line; None while it is not finished."""
        return f"ctx://{self._digest.hex}" if self._digest else None

    @property
    def suspects(self) -> tuple[tuple[str, str], ...]:
        """Places that look like a secret, and its kind. Contents are recorded unchanged all the same."""
        return tuple(self._suspects)

    @property
    def unsearched(self) -> tuple[str, ...]:
        """Places of contents too large to be searched for secrets to their end."""
        return tuple(self._unsearched)

    @property
    def remembered(self) -> bool:
        """Whether `suspects` and `unsearched` are known. After it became a pack, its events may be collected."""
        return self._remembered

    def _add_findings(self, at: str, event: RecordingStarted | ItemRecorded) -> None:
        self._suspects += [(f"{at}/{field}", kind) for field, kind in event.suspects]
        self._unsearched += [f"{at}/{field}" for field in event.unsearched]


class RecordingNotFound(ContextPlaneError):
    """No recording of this id was begun in this store."""

    code: ClassVar[str] = "recording_not_found"
    family: ClassVar[Family] = "not_found"


class Recording(RecordingStatus):
    """A run being recorded. Leaving its block finishes it; an exception leaves it to be resumed.

    A content is text, bytes, a `Path` or chunks of bytes. What `ctx pack` refuses in a log is refused here, before
    anything of that call is written. Threads may share a recording: their calls are recorded one after the other.
    """

    def __init__(self, journal: Journal) -> None:
        """Call `begin` or `resume` instead."""
        super().__init__(journal.id)
        self._journal = journal
        self._lock = RLock()
        self._counts: Counter[str] = Counter()
        self._closed = False

    @classmethod
    def begin(  # noqa: PLR0913  what a run begins with
        cls,
        context: RecordingContext,
        recording_id: RecordingId,
        *,
        model: Model,
        system_prompt: ContentLike,
        environment: Environment,
        parent: Digest | None = None,
    ) -> Self:
        """Begin a recording under an unused id. `parent`: the execution pack that the run is a fork of."""
        with CallCheck() as check:
            check.text(model.identifier, "/model/identifier", required=True)
            check.free(model.parameters, "/model/parameters")
            check.content(system_prompt, "/system_prompt", required=True)
            check.text(environment.os, "/environment/os", required=True)
            check.text(environment.runtime, "/environment/runtime", required=True)
            check.versions(environment.tool_versions, "/environment/tool_versions")
        journal = Journal(context, recording_id)
        with journal.entry() as entry:
            put = entry.put(system_prompt, "/system_prompt", required=True)
            findings = _SecretFindings().content("system_prompt", put).context(model, environment)
            started = RecordingStarted(
                model=model,
                system_prompt=str(put.stored.digest),
                environment=environment,
                parent=str(parent) if parent else "",
                begun=str(Timestamp.of(context.clock.now())),
                suspects=findings.suspects,
                unsearched=findings.unsearched,
            )
            entry.write(started, "/", *([parent] if parent else []))
        recording = cls(journal)
        recording._add_findings("", started)
        return recording

    @classmethod
    def resume(cls, context: RecordingContext, recording_id: RecordingId) -> Self:
        """Continue a recording, which any process may have begun."""
        journal = Journal(context, recording_id)
        pack = journal.pack()
        try:
            state = journal.resume()
        except (RecordingDamaged, RecordingIncomplete, RecordingBroken):
            if pack is None:
                raise
            return cls._from_pack(journal, pack)
        if state is None:
            raise RecordingNotFound(
                "no such recording in this store", at=str(recording_id), hint="'ctx log --unfinished' lists them"
            )
        recording = cls(journal)
        for name in ("prompts", "inputs", "steps", "outputs"):
            recording._counts[name] = len(getattr(state.manifest, name))
        recording._suspects = list(state.suspects)
        recording._unsearched = list(state.unsearched)
        recording._closed = state.closed_as is not None
        recording._digest = pack
        return recording

    @classmethod
    def _from_pack(cls, journal: Journal, pack: Digest) -> Self:
        """A recording that became a pack, and whose events were collected since."""
        recording = cls(journal)
        recording._closed, recording._digest, recording._remembered = True, pack, False
        return recording

    def prompt(self, role: str, content: ContentLike) -> None:
        """Record a message to the model, or by it."""
        with self._turn("prompts") as (at, entry):
            with CallCheck() as check:
                check.text(role, f"{at}/role")
                check.content(content, f"{at}/content")
            put = entry.put(content, f"{at}/content")
            prompt = Prompt(role=role, content_ref=str(put.stored.digest))
            findings = _SecretFindings().content("content", put).texts("role", role)
            self._record("prompts", entry, findings.add_to(ItemRecorded(prompt=prompt)))

    def input(self, name: str, content: ContentLike) -> None:
        """Record a file or data that the run was given."""
        with self._turn("inputs") as (at, entry):
            with CallCheck() as check:
                check.text(name, f"{at}/name")
                check.content(content, f"{at}/content")
            put = entry.put(content, f"{at}/content")
            run_input = Input(name=name, content_ref=str(put.stored.digest), size=put.stored.size)
            findings = _SecretFindings().content("content", put).texts("name", name)
            self._record("inputs", entry, findings.add_to(ItemRecorded(input=run_input)))

    def step(
        self,
        tool: str = "",
        *,
        kind: str = "tool_call",
        parameters: Mapping[str, Json] | None = None,
        output: ContentLike = b"",
        deterministic: bool = False,
        **others: Never,
    ) -> None:
        """Record an action and its output, as of now. Only `kind="reasoning"` needs no tool."""
        _reject_unknown_arguments(others)
        with self._turn("steps") as (at, entry):
            free = dict(parameters) if isinstance(parameters, Mapping) else parameters
            with CallCheck() as check:
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
                timestamp=str(Timestamp.of(self._journal.context.clock.now())),
            )
            findings = _SecretFindings().content("output", put).texts("type", kind).texts("tool", tool)
            self._record("steps", entry, findings.texts("parameters", free).add_to(ItemRecorded(step=step)))

    def output(self, name: str, content: ContentLike) -> None:
        """Record a result of the run."""
        with self._turn("outputs") as (at, entry):
            with CallCheck() as check:
                check.text(name, f"{at}/name", required=True)
                check.content(content, f"{at}/content")
            put = entry.put(content, f"{at}/content")
            output = Output(name=name, content_ref=str(put.stored.digest))
            findings = _SecretFindings().content("content", put).texts("name", name)
            self._record("outputs", entry, findings.add_to(ItemRecorded(output=output)))

    def finish(self) -> Digest:
        """Make the recording an execution pack. Finishing again, also after a crash, gives the same pack."""
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
    def _turn(self, name: str) -> Iterator[tuple[str, JournalEntry]]:
        """Take this thread's turn: the place of the next item in the manifest, and the entry to write it with."""
        with self._lock:
            if self._closed:
                raise self._journal.finished_error()
            with self._journal.entry() as entry:
                yield f"/{name}/{self._counts[name]}", entry

    def _record(self, name: str, entry: JournalEntry, event: ItemRecorded) -> None:
        at = f"/{name}/{self._counts[name]}"
        entry.write(event, at)
        self._add_findings(at, event)
        self._counts[name] += 1


def _reject_unknown_arguments(others: Mapping[str, object]) -> None:
    """Raise Python's own error for an unknown argument, with a hint for `type`, which is `kind` here."""
    for name in others:
        kind = ': what a log calls type is kind here, as in kind="reasoning"' if name == "type" else ""
        raise TypeError(f"step() got an unexpected keyword argument {name!r}{kind}")


class _SecretFindings:
    """The findings of the secret search, field by field of one event."""

    def __init__(self) -> None:
        self.suspects: tuple[tuple[str, str], ...] = ()
        self.unsearched: tuple[str, ...] = ()

    def content(self, field: str, put: StoredContent | None) -> Self:
        return self._add(field, put.suspects, whole=put.searched) if put else self

    def texts(self, field: str, value: Json) -> Self:
        looked = scan_value(value)
        return self._add(field, looked.kinds, whole=looked.whole)

    def context(self, model: Model, environment: Environment) -> Self:
        self.texts("model/identifier", model.identifier).texts("model/parameters", model.parameters)
        versions: dict[str, Json] = {**(environment.tool_versions or {})}
        return self.texts("environment", [environment.os, environment.runtime, versions])

    def add_to(self, event: ItemRecorded) -> ItemRecorded:
        return replace(event, suspects=self.suspects, unsearched=self.unsearched)

    def _add(self, field: str, kinds: tuple[str, ...], *, whole: bool) -> Self:
        self.suspects += tuple((field, kind) for kind in kinds)
        self.unsearched += () if whole else (field,)
        return self


class UnfinishedRecording(Value, frozen=True):
    """A summary of an unfinished recording. `problem`: why it cannot be read, if it cannot."""

    id: RecordingId
    begun: Timestamp = NO_TIME
    model: str = ""
    steps: int = 0
    problem: str = ""


def list_unfinished(context: RecordingContext) -> list[UnfinishedRecording]:
    """List the recordings that can be resumed or finished, the newest first."""
    with context.catalog.read() as view:
        recordings = [_summarize(context, recording_id, view) for recording_id in _rooted_recordings(view)]
    return sorted(recordings, key=lambda recording: (recording.begun, recording.id), reverse=True)


def restore_recording_roots(context: RecordingContext) -> None:
    """Rebuild the roots of every unfinished recording. Roots are index: they may be lost with a catalog."""
    with context.catalog.write() as tx:
        for stream in list(tx.streams.names(RECORDINGS)):
            try:
                Journal(context, RecordingId.parse(stream.removeprefix(RECORDINGS))).restore_roots(tx)
            except ContextPlaneError:
                continue  # it cannot be read, so what it needs is unknown


class UnrootedRecording(Value, frozen=True):
    """A recording whose contents may be collected. `lost`: an object that it needs and that no root keeps.

    `lost` is None if its events cannot be read, so that what it needs is unknown: `problem` says why.
    """

    stream: str
    lost: Digest | None = None
    problem: str = ""


def find_unrooted(context: RecordingContext, view: View) -> Iterator[UnrootedRecording]:
    """Yield every recording that its roots do not keep whole. One that became a pack needs no roots."""
    for stream in view.streams.names(RECORDINGS):
        try:
            journal = Journal(context, RecordingId.parse(stream.removeprefix(RECORDINGS)))
            required, rooted = journal.required_objects(view), journal.rooted_objects(view)
        except ContextPlaneError as error:
            yield UnrootedRecording(stream=stream, problem=f"{error.code}: {error.message}")
            continue
        for digest in required:
            if digest not in rooted:
                yield UnrootedRecording(stream=stream, lost=digest)
                break


def _rooted_recordings(view: View) -> Iterator[RecordingId]:
    names = dict.fromkeys(name.removeprefix(RECORDINGS).partition("/")[0] for name, _ in view.objects.roots(RECORDINGS))
    for name in names:
        try:
            yield RecordingId.parse(name)
        except InvalidId:
            continue


def _summarize(context: RecordingContext, recording_id: RecordingId, view: View) -> UnfinishedRecording:
    try:
        state = Journal(context, recording_id).read(view)
    except ContextPlaneError as error:
        return UnfinishedRecording(id=recording_id, problem=f"{error.code}: {error.message}")
    manifest = state.manifest
    return UnfinishedRecording(
        id=recording_id, begun=state.begun, model=manifest.model.identifier, steps=len(manifest.steps)
    )
