"""Putting the contents of a log into a batch: whichever way each is given, all of them in order.

Decoding one and hashing another go on at the same time when there is much to do: hashing and writing release the
interpreter. Only one thread ever touches the batch.
"""

import base64
import binascii
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution_log import Content
from contextplane.model.json_cut import LongText
from contextplane.model.value import Value
from contextplane.policy.secrets import secret_shapes
from contextplane.ports.objects import Batch, Stored
from contextplane.ports.sources import Sources

__all__ = ["InvalidBase64", "PutContent", "put_contents"]

_MUCH = 8 << 20
_AHEAD = 4


class InvalidBase64(ContextPlaneError):
    """A content that is said to be base64 and is not."""

    code: ClassVar[str] = "content_base64_invalid"
    family: ClassVar[Family] = "refused"


class PutContent(Value, frozen=True):
    """What became of one content, and which secrets it looks to hold."""

    stored: Stored
    suspects: tuple[str, ...] = ()


class _Ready(Value, frozen=True):
    """A content whose bytes are at hand, or a file to be streamed."""

    content: Content
    data: bytes | None


def put_contents(contents: Sequence[Content], batch: Batch, sources: Sources) -> list[PutContent]:
    """Put every content. An error tells which one by its JSON Pointer."""
    long = sum(one.value.end - one.value.start for one in contents if isinstance(one.value, LongText))
    ready = map(_ready, contents)
    if long < _MUCH:
        return [_put(one, batch, sources) for one in ready]
    return _side_by_side(ready, batch, sources)


def _side_by_side(ready: Iterator[_Ready], batch: Batch, sources: Sources) -> list[PutContent]:
    todo: queue.Queue[_Ready | None] = queue.Queue(_AHEAD)
    done: list[PutContent] = []
    errors: list[BaseException] = []

    def work() -> None:
        while (one := todo.get()) is not None:
            try:
                if not errors:
                    done.append(_put(one, batch, sources))
            except BaseException as error:  # noqa: BLE001  raised again below, in the thread of the caller
                errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        for one in ready:
            todo.put(one)
            if errors:
                break
    finally:
        todo.put(None)
        thread.join()
    if errors:
        raise errors[0]
    return done


def _ready(content: Content) -> _Ready:
    with _told_at(content):
        return _Ready(content=content, data=None if content.how == "path" else _bytes(content))


def _put(one: _Ready, batch: Batch, sources: Sources) -> PutContent:
    with _told_at(one.content):
        if one.data is None:
            return PutContent(stored=batch.put_stream(sources.chunks(_text(one.content))))
        data = _decoded(one.data) if one.content.how == "base64" else one.data
        return PutContent(stored=Stored(digest=batch.put(data), size=len(data)), suspects=secret_shapes(data))


class _told_at:  # noqa: N801  it reads as the clause it is
    """Say of any refusal which content it is about."""

    def __init__(self, content: Content) -> None:
        self._content = content

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ContextPlaneError):
            error.at = self._content.at if not error.at else f"{self._content.at} ({error.at})"


def _bytes(content: Content) -> bytes:
    return content.value.encoded() if isinstance(content.value, LongText) else content.value.encode()


def _text(content: Content) -> str:
    return _bytes(content).decode()


def _decoded(data: bytes) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InvalidBase64(f"not base64: {error}", hint="use the standard alphabet, padded") from error
