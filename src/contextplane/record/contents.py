"""Putting the contents of a log into a batch: whichever way each is given, every one that is given twice only once."""

import binascii
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution_log import Content, InvalidLog
from contextplane.model.ids import Digest
from contextplane.model.json_cut import LongText
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.problems import Problem
from contextplane.model.value import Value
from contextplane.policy.secrets import SEARCHED, SecretScan, secret_shapes
from contextplane.ports.objects import Batch, SourceUnreadable, Stored
from contextplane.ports.sources import InsideStore, OutsideRoot, Sources

__all__ = ["UNUSABLE", "InvalidBase64", "PutContent", "PutContents", "content_problems", "put_contents"]

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
        first.setdefault((one.how, one.value if isinstance(one.value, str) else number), number)
        for number, one in enumerate(contents)
    ]
    putting = _Putting(batch, sources)
    long = sum(one.value.end - one.value.start for one in contents if isinstance(one.value, LongText))
    ready = _ready(contents, first.values(), putting.wrong)
    if long < _MUCH:
        for one in ready:
            putting.put(one)
    else:
        from contextplane.record.side_by_side import side_by_side  # noqa: PLC0415  threads are loaded for much only

        side_by_side(ready, putting.put)
    _refuse([(contents[at], putting.wrong[number]) for at, number in enumerate(numbers) if number in putting.wrong])
    return PutContents(each=tuple(putting.done[number] for number in numbers), at_hand=putting.at_hand)


def content_problems(contents: Iterable[Content], sources: Sources) -> Iterator[Problem]:
    """What is wrong with the contents of a log that is refused anyhow. Nothing is put; files are opened and let go."""
    for one in contents:
        try:
            if one.how == "path":
                next(sources.chunks(_encoded(one).decode()), b"")
            elif one.how == "base64":
                _decoded(_encoded(one))
            elif isinstance(one.value, LongText):
                for _ in one.value.chunks():
                    pass
        except UNUSABLE as error:
            yield Problem(at=one.at, message=_message(error))


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
        number, content, data = one
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
    for one, error in wrong:
        _tell_place(error, one)
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
