"""Putting the contents of a log into a batch: whichever way each is given, every one that is given twice only once.

Where there is much to do, one thread decodes, and others hash and write, which release the interpreter. Not more of
them are decoded ahead than a few, so that memory stays small.
"""

import base64
import binascii
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution_log import Content, InvalidLog
from contextplane.model.ids import Digest
from contextplane.model.json_cut import LongText
from contextplane.model.problems import Problem
from contextplane.model.value import Value
from contextplane.policy.secrets import SEARCHED, SecretScan, secret_shapes
from contextplane.ports.objects import Batch, SourceUnreadable, Stored
from contextplane.ports.sources import InsideStore, OutsideRoot, Sources

__all__ = ["InvalidBase64", "PutContent", "PutContents", "put_contents"]

_MUCH = 8 << 20
_THREADS = 3
_AHEAD = 4
_SHORT = 16 << 10
_AT_HAND_MOST = 16 << 20
_ENTRY = 512  # what it takes to keep one, besides its bytes
_KEPT_BY_ALLOCATOR = 31 << 20


class InvalidBase64(ContextPlaneError):
    """A content that is said to be base64 and is not."""

    code: ClassVar[str] = "content_base64_invalid"
    family: ClassVar[Family] = "refused"


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


class _Ready(Value, frozen=True):
    """A content whose bytes are at hand, or a file to be streamed; and which of all contents it is."""

    number: int
    content: Content
    data: bytes | None


def put_contents(contents: Sequence[Content], batch: Batch, sources: Sources) -> PutContents:
    """Put every content. What is wrong with any of them is told together, each by its JSON Pointer."""
    first: dict[tuple[str, object], int] = {}
    numbers = [
        first.setdefault((one.how, one.value if isinstance(one.value, str) else number), number)
        for number, one in enumerate(contents)
    ]
    putting = _Putting(batch, sources)
    long = sum(one.value.end - one.value.start for one in contents if isinstance(one.value, LongText))
    ready = (_ready(number, contents[number]) for number in first.values())
    if long < _MUCH:
        for one in ready:
            putting.put(one)
    else:
        _side_by_side(ready, putting)
    _refuse([(contents[at], putting.wrong[number]) for at, number in enumerate(numbers) if number in putting.wrong])
    return PutContents(each=tuple(putting.done[number] for number in numbers), at_hand=putting.at_hand)


class _Putting:
    """Puts one after another, from any thread, and notes what came of each."""

    def __init__(self, batch: Batch, sources: Sources) -> None:
        self._batch = batch
        self._sources = sources
        self._room = _AT_HAND_MOST
        self.done: dict[int, PutContent] = {}
        self.at_hand: dict[Digest, bytes] = {}
        self.wrong: dict[int, ContextPlaneError] = {}

    def put(self, one: _Ready) -> None:
        try:
            self.done[one.number] = self._file(one.content) if one.data is None else self._bytes(one)
        except (InvalidBase64, SourceUnreadable, OutsideRoot, InsideStore) as error:
            self.wrong[one.number] = error
        except ContextPlaneError as error:
            _tell_place(error, one.content)
            raise

    def _bytes(self, one: _Ready) -> PutContent:
        data = one.data or b""
        if one.content.how == "base64":
            data = _decoded(data)
        digest = self._batch.put(data)
        if len(data) <= _SHORT and self._room > 0:
            self._room -= len(data) + _ENTRY
            self.at_hand[digest] = data
        return PutContent(stored=Stored(digest=digest, size=len(data)), suspects=secret_shapes(data))

    def _file(self, content: Content) -> PutContent:
        scan = SecretScan()
        path = _encoded(content).decode()
        return PutContent(stored=self._batch.put_stream(_seen(self._sources.chunks(path), scan)), suspects=scan.kinds)


def _refuse(wrong: list[tuple[Content, ContextPlaneError]]) -> None:
    """One thing that is wrong is told as what it is, several as a log that has these problems."""
    if len(wrong) > 1:
        raise InvalidLog(tuple(Problem(at=one.at, message=_message(error)) for one, error in wrong))
    for one, error in wrong:
        _tell_place(error, one)
        raise error


def _message(error: ContextPlaneError) -> str:
    return f"{error.message} ({error.at})" if error.at else error.message


def _tell_place(error: ContextPlaneError, content: Content) -> None:
    error.at = content.at if not error.at else f"{content.at} ({error.at})"


def _side_by_side(ready: Iterable[_Ready], putting: _Putting) -> None:
    """Decode here, and put in other threads."""
    # Once so much was given back at once, the allocator of most Linux systems keeps what is given back later for the
    # next content, instead of asking the kernel for fresh pages each time: a third of the time of all this.
    bytearray(_KEPT_BY_ALLOCATOR)
    todo: queue.Queue[_Ready | None] = queue.Queue(_AHEAD)
    errors: list[BaseException] = []

    def work() -> None:
        while (one := todo.get()) is not None:
            try:
                if not errors:
                    putting.put(one)
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


def _end(threads: list[threading.Thread], todo: queue.Queue[_Ready | None]) -> None:
    for _ in threads:
        todo.put(None)
    for thread in threads:
        thread.join()


def _ready(number: int, content: Content) -> _Ready:
    try:
        return _Ready(number=number, content=content, data=None if content.how == "path" else _encoded(content))
    except ContextPlaneError as error:
        _tell_place(error, content)
        raise


def _seen(chunks: Iterator[bytes], scan: SecretScan) -> Iterator[bytes]:
    for chunk in chunks:
        scan.see(chunk)
        yield chunk


def _encoded(content: Content) -> bytes:
    return content.value.encoded() if isinstance(content.value, LongText) else content.value.encode()


def _decoded(data: bytes) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InvalidBase64(f"not base64: {error}", hint="use the standard alphabet, padded") from error
