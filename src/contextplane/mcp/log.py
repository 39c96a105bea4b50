"""What the server says about itself, on standard error: never what a message or a pack holds."""

import os
import select

__all__ = ["Log"]

_LEVELS = {"off": 0, "error": 1, "warn": 2, "info": 3, "debug": 4, "trace": 5}
_NAME = "mcp_context_pack"
_ERR = 2


class Log:
    """`filter` is a level, or `mcp_context_pack=LEVEL`, several with commas; what is not understood means info."""

    def __init__(self, filter: str) -> None:  # noqa: A002  the name of the setting
        self._level = _level(filter)

    def __call__(self, level: str, text: str) -> None:
        if _LEVELS[level] <= self._level and _is_read():
            line = "".join(one if one.isprintable() else "?" for one in text)
            try:
                os.write(_ERR, f"mcp-context-pack: {level}: {line}\n".encode(errors="replace"))
            except OSError:
                self._level = 0  # nobody reads it


def _is_read() -> bool:
    """Whether a line can be written now: a client that never empties this pipe must not stop the server."""
    waiting = select.poll()
    waiting.register(_ERR, select.POLLOUT)
    return any(event & select.POLLOUT for _, event in waiting.poll(0))


def _level(filter: str) -> int:  # noqa: A002
    chosen = "info"
    for directive in filter.lower().split(","):
        name, equals, level = (part.strip() for part in directive.rpartition("="))
        if level in _LEVELS and (not equals or name == _NAME):
            chosen = level
    return _LEVELS[chosen]
