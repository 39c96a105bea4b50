"""From a log to an execution pack: every content an object, and the manifest that names them.

Putting the contents of a log into a batch: whichever way each is given, every one that is given twice only once.

Many things that are made here one after another, and dealt with in other threads.

Making one is decoding, which holds the interpreter; dealing with it is hashing and writing, which release it. Not more
of them are made ahead than a few, so that memory stays small.
"""

import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, TypeVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Stored
from contextplane.model.execution.log import Content, ExecutionLog, InvalidLog
from contextplane.model.execution.manifest import (
    Environment,
    Input,
    Manifest,
    ManifestRefs,
    Model,
    Output,
    Prompt,
    Step,
    manifest_bytes,
    references_of,
)
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.large import LongText
from contextplane.model.problems import Problem
from contextplane.model.value import Value
from contextplane.policy.detect.secrets import SEARCHED, Looked, SecretScan, looked_at, secret_shapes
from contextplane.ports.objects import Batch, SourceUnreadable
from contextplane.ports.world import InsideStore, OutsideRoot, Sources

if TYPE_CHECKING:
    import queue
    import threading

__all__ = [
    "UNUSABLE",
    "InvalidBase64",
    "PutContent",
    "PutContents",
    "Staged",
    "content_problems",
    "put_contents",
    "side_by_side",
    "stage_log",
]

_MUCH = 8 << 20
_VERY_LONG = 64 << 20
_SHORT = 16 << 10
_AT_HAND_MOST = 16 << 20
_ENTRY = 512  # what it takes to keep one, besides its bytes


class InvalidBase64(ContextPlaneError):
    """A content that is said to be base64 and is not."""

    code: ClassVar[str] = "content_base64_invalid"
    family: ClassVar[Family] = "refused"


UNUSABLE = (InvalidBase64, SourceUnreadable, OutsideRoot, InsideStore, JsonRefused)
"""What makes a content one that cannot be had, whatever the others are."""


class PutContent(Value, frozen=True):
    """What became of one content, and which secrets it looks to hold."""

    stored: Stored
    suspects: tuple[str, ...] = ()

    @property
    def searched(self) -> bool:
        """Whether all of it was looked at for secrets."""
        return self.stored.size <= SEARCHED


class PutContents(Value, frozen=True):
    """What became of all of them, in their order, and the bytes of short ones, which then need not be read again."""

    each: tuple[PutContent, ...]
    at_hand: dict[Digest, bytes]


_Ready = tuple[int, Content, bytes | None]
"""Which of all contents it is; the content; its bytes, or none when it is to be streamed."""


def put_contents(contents: Sequence[Content], batch: Batch, sources: Sources) -> PutContents:
    """Put every content. What is wrong with any of them is told together, each by its JSON Pointer."""
    first: dict[tuple[str, object], int] = {}
    numbers = [
        first.setdefault((content.how, content.value if isinstance(content.value, str) else number), number)
        for number, content in enumerate(contents)
    ]
    putting = _Putting(batch, sources)
    long = sum(content.value.end - content.value.start for content in contents if isinstance(content.value, LongText))
    ready = _ready(contents, first.values(), putting.wrong)
    if long < _MUCH:
        for one in ready:
            putting.put(one)
    else:
        side_by_side(ready, putting.put)
    _refuse([(contents[at], putting.wrong[number]) for at, number in enumerate(numbers) if number in putting.wrong])
    return PutContents(each=tuple(putting.done[number] for number in numbers), at_hand=putting.at_hand)


def content_problems(contents: Iterable[Content], sources: Sources) -> Iterator[Problem]:
    """What is wrong with the contents of a log that is refused anyhow. Nothing is put; files are opened and let go."""
    for content in contents:
        try:
            if content.how == "path":
                next(sources.chunks(_encoded(content).decode()), b"")
            elif content.how == "base64":
                _decoded(_encoded(content))
            elif isinstance(content.value, LongText):
                for _ in content.value.chunks():
                    pass
        except UNUSABLE as error:
            yield Problem(at=content.at, message=_message(error))


class _Putting:
    """Puts one after another, from any thread, and notes what came of each."""

    def __init__(self, batch: Batch, sources: Sources) -> None:
        self._batch = batch
        self._sources = sources
        self._room = _AT_HAND_MOST
        self.done: dict[int, PutContent] = {}
        self.at_hand: dict[Digest, bytes] = {}
        self.wrong: dict[int, ContextPlaneError] = {}

    def put(self, ready: _Ready) -> None:
        number, content, data = ready
        try:
            self.done[number] = self._streamed(content) if data is None else self._bytes(content, data)
        except UNUSABLE as error:
            self.wrong[number] = error
        except ContextPlaneError as error:
            _tell_place(error, content)
            raise

    def _bytes(self, content: Content, data: bytes) -> PutContent:
        if content.how == "base64":
            data = _decoded(data)
        digest = self._batch.put(data)
        if len(data) <= _SHORT and self._room > 0:
            self._room -= len(data) + _ENTRY
            self.at_hand[digest] = data
        return PutContent(stored=Stored(digest=digest, size=len(data)), suspects=secret_shapes(data))

    def _streamed(self, content: Content) -> PutContent:
        scan = SecretScan()
        if content.how != "path" and isinstance(content.value, LongText):
            chunks = content.value.chunks()
        else:
            chunks = self._sources.chunks(_encoded(content).decode())
        return PutContent(stored=self._batch.put_stream(_seen(chunks, scan)), suspects=scan.kinds)


def _refuse(wrong: list[tuple[Content, ContextPlaneError]]) -> None:
    """One thing that is wrong is told as what it is, several as a log that has these problems."""
    if len(wrong) > 1:
        raise InvalidLog(tuple(Problem(at=one.at, message=_message(error)) for one, error in wrong))
    for content, error in wrong:
        _tell_place(error, content)
        raise error


def _message(error: ContextPlaneError) -> str:
    if isinstance(error, JsonRefused):
        return f"{error.place}: {error.message}" if error.place else error.message
    return f"{error.message} ({error.at})" if error.at else error.message


def _tell_place(error: ContextPlaneError, content: Content) -> None:
    error.at = content.at if not error.at else f"{content.at} ({error.at})"


def _ready(
    contents: Sequence[Content], numbers: Iterable[int], wrong: dict[int, ContextPlaneError]
) -> Iterator[_Ready]:
    """Each that is asked for and can be read. `wrong` takes those that cannot."""
    for number in numbers:
        content = contents[number]
        try:
            data = None if _is_streamed(content) else _encoded(content)
        except JsonRefused as error:
            wrong[number] = error
        else:
            yield number, content, data


def _is_streamed(content: Content) -> bool:
    """Whether it never is in memory as a whole: a file, or a text that is very long."""
    if content.how == "path":
        return True
    value = content.value
    return content.how == "text" and isinstance(value, LongText) and value.end - value.start > _VERY_LONG


def _seen(chunks: Iterator[bytes], scan: SecretScan) -> Iterator[bytes]:
    for chunk in chunks:
        scan.see(chunk)
        yield chunk


def _encoded(content: Content) -> bytes:
    return content.value.encoded() if isinstance(content.value, LongText) else content.value.encode()


def _decoded(data: bytes) -> bytes:
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except binascii.Error as error:
        raise InvalidBase64(f"not base64: {error}", hint="use the standard alphabet, padded") from error


class Staged(Value, frozen=True):
    """A pack whose objects are in a batch. `suspects`: where something looks like a secret, and like which.

    `raw`: the manifest's bytes, `refs`: what it refers to. `unsearched`: of what only the beginning was looked at.
    `at_hand`: the bytes of short contents.
    """

    digest: Digest
    manifest: Manifest
    raw: bytes
    refs: ManifestRefs | None
    contents: tuple[Stored, ...]
    at_hand: dict[Digest, bytes]
    suspects: tuple[tuple[str, str], ...]
    unsearched: tuple[str, ...]


def stage_log(log: ExecutionLog, parent: Digest | None, batch: Batch, sources: Sources) -> Staged:
    """Put everything that a log contains, and its manifest last; nothing is visible before the batch is committed."""
    given = [
        ("system_prompt", log.system_prompt),
        *(("prompts", prompt.content) for prompt in log.prompts),
        *(("inputs", log_file.content) for log_file in log.inputs),
        *(("steps", step.output) for step in log.steps if step.output is not None),
        *(("outputs", output.content) for output in log.outputs),
    ]
    contents = [content for _, content in given]
    put = put_contents(contents, batch, sources)
    manifest = _manifest(log, parent, iter(put.each))
    raw = manifest_bytes(manifest)
    digest = batch.put(raw)
    named = [(role, done.stored.digest) for (role, _), done in zip(given, put.each, strict=True)]
    if parent is not None:
        named.append(("parent", parent))
    beside = tuple(_beside_contents(log))
    return Staged(
        digest=digest,
        manifest=manifest,
        raw=raw,
        refs=references_of(named, raw),
        contents=tuple(dict.fromkeys(put_content.stored for put_content in put.each)),
        at_hand=put.at_hand,
        suspects=(*_suspects(contents, put), *((at, kind) for at, looked in beside for kind in looked.kinds)),
        unsearched=(
            *(content.at for content, done in zip(contents, put.each, strict=True) if not done.searched),
            *(at for at, looked in beside if not looked.whole),
        ),
    )


def _manifest(log: ExecutionLog, parent: Digest | None, following: Iterator[PutContent]) -> Manifest:
    """The manifest of a log. Its fields are filled in the order in which the contents were put."""

    def ref() -> str:
        return str(next(following).stored.digest)

    # Very many steps of one moment are nothing unusual: a log that tells no time has no other.
    written = cache(str)
    system_prompt = ref()
    prompts = tuple(Prompt(role=prompt.role, content_ref=ref()) for prompt in log.prompts)
    inputs = tuple(
        Input(name=log_file.name, content_ref=str(stored.digest), size=stored.size)
        for log_file, stored in ((log_file, next(following).stored) for log_file in log.inputs)
    )
    steps = tuple(
        Step(
            index=step.index,
            type=step.type,
            tool=step.tool,
            parameters=step.parameters,
            output_ref="" if step.output is None else ref(),
            deterministic=step.deterministic,
            timestamp=written(step.timestamp),
        )
        for step in log.steps
    )
    return Manifest(
        created=str(log.created),
        model=Model(identifier=log.model, parameters=log.model_parameters),
        system_prompt=system_prompt,
        prompts=prompts,
        inputs=inputs,
        steps=steps,
        outputs=tuple(Output(name=output.name, content_ref=ref()) for output in log.outputs),
        environment=Environment(os=log.os, runtime=log.runtime, tool_versions=log.tool_versions),
        parent="" if parent is None else str(parent),
    )


def _suspects(contents: Sequence[Content], put: PutContents) -> Iterator[tuple[str, str]]:
    for content, done in zip(contents, put.each, strict=True):
        for kind in done.suspects:
            yield content.at, kind


def _beside_contents(log: ExecutionLog) -> Iterator[tuple[str, Looked]]:
    """What looking at all the other texts of the manifest showed, place by place. Most of them stand there often."""
    known: dict[str, Looked] = {}
    for place, value in _other_texts(log):
        if not value:
            continue
        if isinstance(value, str):
            looked = known.get(value) or known.setdefault(value, looked_at(value))
        else:
            looked = looked_at(value)
        if looked.kinds or not looked.whole:
            yield "/" + "/".join(map(str, place)), looked


def _other_texts(log: ExecutionLog) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Each with the parts of its place: very few of the places are ever written."""
    yield ("model", "identifier"), log.model
    yield ("model", "parameters"), log.model_parameters
    yield ("environment",), [log.os, log.runtime, dict(log.tool_versions or {})]
    yield from ((("prompts", number, "role"), log_prompt.role) for number, log_prompt in enumerate(log.prompts))
    yield from ((("inputs", number, "name"), log_file.name) for number, log_file in enumerate(log.inputs))
    yield from ((("outputs", number, "name"), log_file.name) for number, log_file in enumerate(log.outputs))
    for number, step in enumerate(log.steps):
        yield ("steps", number, "type"), step.type
        yield ("steps", number, "tool"), step.tool
        yield ("steps", number, "parameters"), step.parameters


_THREADS = 3
_AHEAD = 4
_KEPT_BY_ALLOCATOR = 31 << 20

One = TypeVar("One")


def side_by_side(ready: Iterable[One], act: Callable[[One], None]) -> None:
    """Call `act` with each, in any order. The first error ends it, and is raised here."""
    import queue  # noqa: PLC0415  only many long contents need it
    import threading  # noqa: PLC0415

    # Once so much was given back at once, the allocator of most Linux systems keeps what is given back later for the
    # next content, instead of asking the kernel for fresh pages each time: a third of the time of all this.
    bytearray(_KEPT_BY_ALLOCATOR)
    todo: queue.Queue[One | None] = queue.Queue(_AHEAD)
    errors: list[BaseException] = []

    def work() -> None:
        while (one := todo.get()) is not None:
            try:
                if not errors:
                    act(one)
            except BaseException as error:  # noqa: BLE001  raised again below, in the thread of the caller
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    try:
        for one in ready:
            todo.put(one)
            if errors:
                break
    finally:
        _end(threads, todo)
    if errors:
        raise errors[0]


def _end(threads: "list[threading.Thread]", todo: "queue.Queue[One | None]") -> None:
    for _ in threads:
        todo.put(None)
    for thread in threads:
        thread.join()
