"""Recording a run while it happens, so that what was recorded survives the process that recorded it.

Every content is an object before its event is written, and every event is durable before the call returns. A run that
was not finished can be finished later, from what it recorded, by any process.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import ClassVar, Never, Self

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json
from contextplane.model.ids import Digest, RecordingId
from contextplane.model.log_reader import REASONING
from contextplane.model.manifest import Environment, Input, Model, Output, Prompt, Step
from contextplane.model.timestamp import Timestamp
from contextplane.policy.secrets import looked_at
from contextplane.record.checking import Checking
from contextplane.record.contents import PutContent
from contextplane.record.folding import Began, Noted, RecordingBroken
from contextplane.record.given import Given
from contextplane.record.journal import Desk, Entry, Journal
from contextplane.record.standing import Standing
from contextplane.record.wholeness import RecordingDamaged, RecordingIncomplete

__all__ = ["Recording", "RecordingNotFound"]


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
