"""The log of the server, on standard error. It never contains anything of a message or a pack."""

import os
import select

__all__ = ["Log"]

_LEVELS = {"off": 0, "error": 1, "warn": 2, "info": 3, "debug": 4, "trace": 5}
_NAME = "mcp_context_pack"
_ERR = 2


class Log:
    """Writes log lines up to a level.

    `filter` is a level or `mcp_context_pack=LEVEL`, several with commas; one that is not understood means info.
    """

    def __init__(self, filter: str) -> None:  # noqa: A002  the name of the setting
        self._level = _level(filter)

    def __call__(self, level: str, text: str) -> None:
        if _LEVELS[level] <= self._level and _is_writable():
            line = "".join(character if character.isprintable() else "?" for character in text)
            try:
                os.write(_ERR, f"mcp-context-pack: {level}: {line}\n".encode(errors="replace"))
            except OSError:
                self._level = 0  # the other end is closed


def _is_writable() -> bool:
    """Whether a line can be written now: a client that never empties this pipe must not stop the server."""
    poll = select.poll()
    poll.register(_ERR, select.POLLOUT)
    return any(event & select.POLLOUT for _, event in poll.poll(0))


def _level(filter: str) -> int:  # noqa: A002
    result = "info"
    for directive in filter.lower().split(","):
        name, equals, level = (part.strip() for part in directive.rpartition("="))
        if level in _LEVELS and (not equals or name == _NAME):
            result = level
    return _LEVELS[result]
