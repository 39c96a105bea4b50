"""What a tool is: parameters in, bounded bytes out. And the names and versions of those that are built in."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from contextplane.ports.tools import ToolFailed

__all__ = ["BUILT_IN", "OURS", "OUTPUT_MOST", "Output", "Parameters", "Tool", "text_of"]

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
