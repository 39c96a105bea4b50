"""The protocol between a worker and its owner: length-prefixed messages over two pipes.

Also the type of a tool (parameters in, bounded bytes out), and the names and versions of the built-in ones.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from contextplane.model.value import Value
from contextplane.ports.tools import ToolFailed

__all__ = [
    "BUILTIN_VERSIONS",
    "HEADER_BYTES",
    "MAX_OUTPUT_BYTES",
    "OWN_TOOLS",
    "OutputBuffer",
    "Parameters",
    "Tool",
    "ToolRequest",
    "ToolResponse",
    "decode_request",
    "decode_response",
    "encode_message",
    "frame",
    "payload_length",
    "text_parameter",
]

HEADER_BYTES = 8

Parameters: TypeAlias = Mapping[str, object]
Tool: TypeAlias = Callable[[Parameters], bytes]

BUILTIN_VERSIONS = {"http_get": "1", "list_files": "1", "python": "1", "read_file": "1", "search": "1"}
"""The version of each built-in tool. It changes when the same call would return other bytes."""

OWN_TOOLS = frozenset(BUILTIN_VERSIONS) - {"python"}
"""The built-in tools that run no foreign code."""

MAX_OUTPUT_BYTES = 16 << 20


class ToolRequest(Value, frozen=True):
    """A call of a tool."""

    tool: str
    parameters: dict[str, Any]


class ToolResponse(Value, frozen=True):
    """The end of a call. `output` is valid only when `ended` is "output"."""

    ended: Literal["output", "failed", "refused"]
    output: bytes = b""
    message: str = ""


def frame(payload: bytes) -> bytes:
    """Put the header, which is the length of the payload, in front of it."""
    return struct.pack(">Q", len(payload)) + payload


def payload_length(header: bytes) -> int:
    """Decode a header: the length of the payload that follows."""
    (size,) = struct.unpack(">Q", header)
    return int(size)


def encode_message(message: ToolRequest | ToolResponse) -> bytes:
    """Encode a request as JSON, like its parameters, and a response as MessagePack, which holds bytes."""
    return msgspec.json.encode(message) if isinstance(message, ToolRequest) else msgspec.msgpack.encode(message)


def decode_request(payload: bytes) -> ToolRequest:
    return msgspec.json.decode(payload, type=ToolRequest)


def decode_response(payload: bytes) -> ToolResponse:
    return msgspec.msgpack.decode(payload, type=ToolResponse)


class OutputBuffer:
    """Collects the chunks of an output, up to the size limit."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > MAX_OUTPUT_BYTES:
            raise ToolFailed(f"the output is larger than {MAX_OUTPUT_BYTES >> 20} MiB")
        self._chunks.append(chunk)

    def to_bytes(self) -> bytes:
        return b"".join(self._chunks)


def text_parameter(parameters: Parameters, *names: str, default: str | None = None) -> str:
    """Return the text parameter with one of these names; the first name that is present counts."""
    for name in names:
        if name in parameters:
            value = parameters[name]
            if isinstance(value, str) and value:
                return value
            raise ToolFailed(f"the parameter {name} must be text that is not empty")
    if default is None:
        raise ToolFailed(f"the parameter {names[0]} is missing")
    return default
