"""What the worker and its owner say to each other: messages with their length before them, over two pipes.

What a tool is: parameters in, bounded bytes out. And the names and versions of those that are built in.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from contextplane.model.value import Value
from contextplane.ports.tools import ToolFailed

__all__ = [
    "BUILT_IN",
    "HEAD",
    "OURS",
    "OUTPUT_MOST",
    "Answer",
    "Output",
    "Parameters",
    "Request",
    "Tool",
    "framed",
    "length",
    "read_answer",
    "read_request",
    "text_of",
    "wire_bytes",
]

HEAD = 8


class Request(Value, frozen=True):
    """One call."""

    tool: str
    parameters: dict[str, Any]


class Answer(Value, frozen=True):
    """How it ended. `output` counts only when it ended so."""

    ended: Literal["output", "failed", "refused"]
    output: bytes = b""
    message: str = ""


def framed(payload: bytes) -> bytes:
    return struct.pack(">Q", len(payload)) + payload


def length(head: bytes) -> int:
    """How long the message is that follows."""
    (size,) = struct.unpack(">Q", head)
    return int(size)


def wire_bytes(message: Request | Answer) -> bytes:
    """A request is JSON, as its parameters were; an answer is MessagePack, which holds bytes as they are."""
    return msgspec.json.encode(message) if isinstance(message, Request) else msgspec.msgpack.encode(message)


def read_request(payload: bytes) -> Request:
    return msgspec.json.decode(payload, type=Request)


def read_answer(payload: bytes) -> Answer:
    return msgspec.msgpack.decode(payload, type=Answer)


Parameters: TypeAlias = Mapping[str, object]
Tool: TypeAlias = Callable[[Parameters], bytes]

BUILT_IN = {"http_get": "1", "list_files": "1", "python": "1", "read_file": "1", "search": "1"}
"""Each with the version of what it does; it changes when the same call would give other bytes."""

OURS = frozenset(BUILT_IN) - {"python"}
"""Those that run no code of others."""

OUTPUT_MOST = 16 << 20


class Output:
    """The bytes of an output as they come, never more than the limit."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > OUTPUT_MOST:
            raise ToolFailed(f"the output is larger than {OUTPUT_MOST >> 20} MiB")
        self._pieces.append(piece)

    def whole(self) -> bytes:
        return b"".join(self._pieces)


def text_of(parameters: Parameters, *names: str, default: str | None = None) -> str:
    """The parameter that has one of these names, which must be text; the first name that is given counts."""
    for name in names:
        if name in parameters:
            value = parameters[name]
            if isinstance(value, str) and value:
                return value
            raise ToolFailed(f"the parameter {name} must be text that is not empty")
    if default is None:
        raise ToolFailed(f"the parameter {names[0]} is missing")
    return default
