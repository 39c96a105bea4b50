"""What the worker and its owner say to each other: messages with their length before them, over two pipes."""

import struct
from typing import Any, Literal

import msgspec

from contextplane.model.value import Value

__all__ = ["HEAD", "Answer", "Request", "framed", "length", "read_answer", "read_request", "wire_bytes"]

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
