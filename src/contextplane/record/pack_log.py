"""Turns an execution log into the objects and the manifest of an execution pack, in a batch.

A content of a log is text, base64 or the file at a path; a content that occurs twice is put once. Many long contents
are decoded here and put by other threads: decoding holds the interpreter, hashing and writing release it. Only a few
are decoded ahead, so that memory stays small.
"""

import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, TypeVar, assert_never

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import StoredObject
from contextplane.model.execution.log import Content, ExecutionLog, InvalidLog
from contextplane.model.execution.manifest import (
    Environment,
    Input,
    Manifest,
    Model,
    Output,
    Prompt,
    Step,
    manifest_bytes,
)
from contextplane.model.execution.references import ManifestRefs, own_references
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.large import LongText
from contextplane.model.problems import Problem
from contextplane.model.value import Value
from contextplane.policy.detect.secrets import SEARCH_LIMIT, SecretScan, SecretScanResult, scan_value, secret_shapes
from contextplane.ports.objects import Batch, SourceUnreadable
from contextplane.ports.world import InsideStore, OutsideRoot, Sources

if TYPE_CHECKING:
    import queue
    import threading

__all__ = [
    "UNUSABLE",
    "InvalidBase64",
    "StagedPack",
    "StoredContent",
    "StoredContents",
    "content_problems",
    "put_chunks",
    "put_contents",
    "run_in_threads",
    "stage_log",
]

_THREADED_BYTES = 8 << 20  # a log with so many bytes of long texts is put by threads
_STREAMED_BYTES = 64 << 20  # a longer text is streamed
_CACHED_CONTENT_BYTES = 16 << 10  # a longer content is not cached
_CACHE_BYTES = 16 << 20
_CACHE_ENTRY_BYTES = 512  # the memory of a cached content besides its bytes
_THREADS = 3
_QUEUE_LENGTH = 4
_KEPT_BY_ALLOCATOR = 31 << 20

Item = TypeVar("Item")


class InvalidBase64(ContextPlaneError):
    """A content that should be base64 and is not."""

    code: ClassVar[str] = "content_base64_invalid"
    family: ClassVar[Family] = "refused"


UNUSABLE = (InvalidBase64, SourceUnreadable, OutsideRoot, InsideStore, JsonRefused)
"""The errors that concern a single content: they are collected, and the other contents are still examined."""


class StoredContent(Value, frozen=True):
    """A content that was put, and the kinds of secrets that it seems to contain."""

    stored: StoredObject
    suspects: tuple[str, ...] = ()

    @property
    def searched(self) -> bool:
        """Whether all of it was searched for secrets."""
        return self.stored.size <= SEARCH_LIMIT


class StoredContents(Value, frozen=True):
    """The contents of a log in their order, and the bytes of short ones, which need not be read again."""

    each: tuple[StoredContent, ...]
    cached: dict[Digest, bytes]


_LoadedContent = tuple[int, Content, bytes | None]
"""The number of the content in the log; the content; its bytes, or None if it is to be streamed."""


def put_contents(contents: Sequence[Content], batch: Batch, sources: Sources) -> StoredContents:
    """Put every content. The problems of all contents are raised together, each with its JSON Pointer."""
    first: dict[tuple[str, object], int] = {}
    numbers = [
        first.setdefault((content.how, content.value if isinstance(content.value, str) else number), number)
        for number, content in enumerate(contents)
    ]
    writer = _ContentWriter(batch, sources)
    long_bytes = sum(
        content.value.end - content.value.start for content in contents if isinstance(content.value, LongText)
    )
    loaded = _load_contents(contents, first.values(), writer.errors)
    if long_bytes < _THREADED_BYTES:
        for loaded_content in loaded:
            writer.put(loaded_content)
    else:
        run_in_threads(loaded, writer.put)
    _raise_problems(
        [(contents[at], writer.errors[number]) for at, number in enumerate(numbers) if number in writer.errors]
    )
    return StoredContents(each=tuple(writer.stored[number] for number in numbers), cached=writer.cached)


def content_problems(contents: Iterable[Content], sources: Sources) -> Iterator[Problem]:
    """Yield the problems of the contents of a log that is refused already.

    Nothing is put; files are only opened.
    """
    for content in contents:
        try:
            _try_content(content, sources)
        except UNUSABLE as error:
            yield Problem(at=content.at, message=_message(error))


def _try_content(content: Content, sources: Sources) -> None:
    match content.how:
        case "path":
            next(sources.chunks(_encode_value(content).decode()), b"")
        case "base64":
            _decode_base64(_encode_value(content))
        case "text" | "handoff":  # a handoff revision is resolved by the application; its reference is text
            if isinstance(content.value, LongText):
                for _ in content.value.chunks():
                    pass
        case unreachable:
            assert_never(unreachable)


class _ContentWriter:
    """Puts contents, from any thread, and collects what was stored and the errors, by content number."""

    def __init__(self, batch: Batch, sources: Sources) -> None:
        self._batch = batch
        self._sources = sources
        self._room = _CACHE_BYTES
        self.stored: dict[int, StoredContent] = {}
        self.cached: dict[Digest, bytes] = {}
        self.errors: dict[int, ContextPlaneError] = {}

    def put(self, loaded: _LoadedContent) -> None:
        number, content, data = loaded
        try:
            self.stored[number] = self._put_stream(content) if data is None else self._put_bytes(content, data)
        except UNUSABLE as error:
            self.errors[number] = error
        except ContextPlaneError as error:
            _add_place(error, content)
            raise

    def _put_bytes(self, content: Content, data: bytes) -> StoredContent:
        match content.how:
            case "text":
                pass
            case "base64":
                data = _decode_base64(data)
            case "path" | "handoff":
                raise _not_loaded(content)
            case unreachable:
                assert_never(unreachable)
        digest = self._batch.put(data)
        if len(data) <= _CACHED_CONTENT_BYTES and self._room > 0:
            self._room -= len(data) + _CACHE_ENTRY_BYTES
            self.cached[digest] = data
        return StoredContent(stored=StoredObject(digest=digest, size=len(data)), suspects=secret_shapes(data))

    def _put_stream(self, content: Content) -> StoredContent:
        match content.how:
            case "path":
                return put_chunks(self._sources.chunks(_encode_value(content).decode()), self._batch)
            case "text" if isinstance(content.value, LongText):
                return put_chunks(content.value.chunks(), self._batch)
            case "text" | "base64" | "handoff":
                raise _not_loaded(content)
            case unreachable:
                assert_never(unreachable)


def put_chunks(chunks: Iterator[bytes], batch: Batch) -> StoredContent:
    """Put a content that comes in chunks, and search it for secrets on the way."""
    scan = SecretScan()
    return StoredContent(stored=batch.put_stream(_scan_chunks(chunks, scan)), suspects=scan.kinds)


def _not_loaded(content: Content) -> TypeError:
    """The error for a content that was not prepared: storing its `value` would store the wrong bytes."""
    return TypeError(f"a content of kind {content.how!r} cannot be put like this: {content.at}")


def _raise_problems(failures: list[tuple[Content, ContextPlaneError]]) -> None:
    """Raise a single error as it is, several as an `InvalidLog` that lists them."""
    if len(failures) > 1:
        raise InvalidLog(tuple(Problem(at=content.at, message=_message(error)) for content, error in failures))
    for content, error in failures:
        _add_place(error, content)
        raise error


def _message(error: ContextPlaneError) -> str:
    if isinstance(error, JsonRefused):
        return f"{error.place}: {error.message}" if error.place else error.message
    return f"{error.message} ({error.at})" if error.at else error.message


def _add_place(error: ContextPlaneError, content: Content) -> None:
    error.at = content.at if not error.at else f"{content.at} ({error.at})"


def _load_contents(
    contents: Sequence[Content], numbers: Iterable[int], errors: dict[int, ContextPlaneError]
) -> Iterator[_LoadedContent]:
    """Yield the contents of these numbers that can be read. `errors` takes the errors of the others."""
    for number in numbers:
        content = contents[number]
        try:
            data = None if _is_streamed(content) else _encode_value(content)
        except JsonRefused as error:
            errors[number] = error
        else:
            yield number, content, data


def _is_streamed(content: Content) -> bool:
    """Whether the content is never in memory as a whole: a file, or a very long text."""
    match content.how:
        case "path":
            return True
        case "text":
            value = content.value
            return isinstance(value, LongText) and value.end - value.start > _STREAMED_BYTES
        case "base64" | "handoff":
            return False
        case unreachable:
            assert_never(unreachable)


def _scan_chunks(chunks: Iterator[bytes], scan: SecretScan) -> Iterator[bytes]:
    for chunk in chunks:
        scan.see(chunk)
        yield chunk


def _encode_value(content: Content) -> bytes:
    return content.value.to_bytes() if isinstance(content.value, LongText) else content.value.encode()


def _decode_base64(data: bytes) -> bytes:
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except binascii.Error as error:
        raise InvalidBase64(f"not base64: {error}", hint="use the standard alphabet, padded") from error


class StagedPack(Value, frozen=True):
    """A pack whose objects are in a batch. `suspects`: places that look like a secret, and its kind.

    `raw`: the bytes of the manifest. `refs`: the objects that it refers to. `unsearched`: places too large to be
    searched for secrets to their end. `cached`: the bytes of short contents.
    """

    digest: Digest
    manifest: Manifest
    raw: bytes
    refs: ManifestRefs | None
    contents: tuple[StoredObject, ...]
    cached: dict[Digest, bytes]
    suspects: tuple[tuple[str, str], ...]
    unsearched: tuple[str, ...]


def stage_log(log: ExecutionLog, parent: Digest | None, batch: Batch, sources: Sources) -> StagedPack:
    """Put the contents of a log, and its manifest last. Nothing is visible before the batch is committed."""
    roles = [
        ("system_prompt", log.system_prompt),
        *(("prompts", prompt.content) for prompt in log.prompts),
        *(("inputs", log_file.content) for log_file in log.inputs),
        *(("steps", step.output) for step in log.steps if step.output is not None),
        *(("outputs", output.content) for output in log.outputs),
    ]
    contents = [content for _, content in roles]
    put = put_contents(contents, batch, sources)
    manifest = _manifest(log, parent, iter(put.each))
    raw = manifest_bytes(manifest)
    digest = batch.put(raw)
    references = [(role, content.stored.digest) for (role, _), content in zip(roles, put.each, strict=True)]
    if parent is not None:
        references.append(("parent", parent))
    other_texts = tuple(_search_other_texts(log))
    return StagedPack(
        digest=digest,
        manifest=manifest,
        raw=raw,
        refs=own_references(references, raw),
        contents=tuple(dict.fromkeys(content.stored for content in put.each)),
        cached=put.cached,
        suspects=(*_suspects(contents, put), *((at, kind) for at, looked in other_texts for kind in looked.kinds)),
        unsearched=(
            *(content.at for content, stored in zip(contents, put.each, strict=True) if not stored.searched),
            *(at for at, looked in other_texts if not looked.whole),
        ),
    )


def _manifest(log: ExecutionLog, parent: Digest | None, following: Iterator[StoredContent]) -> Manifest:
    """The manifest of a log. `following`: the contents in the order in which they were put."""

    def ref() -> str:
        return str(next(following).stored.digest)

    # Very many steps often have the same time: all steps of a log that has no times.
    format_time = cache(str)
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
            timestamp=format_time(step.timestamp),
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


def _suspects(contents: Sequence[Content], put: StoredContents) -> Iterator[tuple[str, str]]:
    for content, stored in zip(contents, put.each, strict=True):
        for kind in stored.suspects:
            yield content.at, kind


def _search_other_texts(log: ExecutionLog) -> Iterator[tuple[str, SecretScanResult]]:
    """Search the texts of the manifest that are no contents for secrets. Yields places with a finding.

    Most of these texts occur often, so each is searched once.
    """
    known: dict[str, SecretScanResult] = {}
    for place, value in _other_texts(log):
        if not value:
            continue
        if isinstance(value, str):
            looked = known.get(value) or known.setdefault(value, scan_value(value))
        else:
            looked = scan_value(value)
        if looked.kinds or not looked.whole:
            yield "/" + "/".join(map(str, place)), looked


def _other_texts(log: ExecutionLog) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield each text with the parts of its place, joined later: very few of the places are ever written."""
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


def run_in_threads(items: Iterable[Item], act: Callable[[Item], None]) -> None:
    """Call `act` with each item, in any order, in threads. The first error ends it, and is raised here."""
    import queue  # noqa: PLC0415  only many long contents need it
    import threading  # noqa: PLC0415

    # After one large block was freed, the allocator of most Linux systems keeps blocks that are freed later for the
    # next content, instead of asking the kernel for fresh pages each time. That saves a third of the time.
    bytearray(_KEPT_BY_ALLOCATOR)
    todo: queue.Queue[Item | None] = queue.Queue(_QUEUE_LENGTH)
    errors: list[BaseException] = []

    def work() -> None:
        while (item := todo.get()) is not None:
            try:
                if not errors:
                    act(item)
            except BaseException as error:  # noqa: BLE001  raised again below, in the thread of the caller
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    try:
        for item in items:
            todo.put(item)
            if errors:
                break
    finally:
        _stop_threads(threads, todo)
    if errors:
        raise errors[0]


def _stop_threads(threads: "list[threading.Thread]", todo: "queue.Queue[Item | None]") -> None:
    for _ in threads:
        todo.put(None)
    for thread in threads:
        thread.join()
