"""Landlock, a sandbox of Linux: restricts this thread, and all it starts, to the named files.

The kernel enforces it, against native code as well, and it needs no privilege. A named path is accessible with
everything below it. Nothing can be executed, and only files, folders and links can be created. Newer kernels also close
TCP ports, and signals to processes outside.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress

from contextplane.model.value import Value

__all__ = ["PathAccess", "restrict"]

# The numbers are the same on every architecture; see landlock(7).
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
_FILE_RIGHTS = _WRITE_FILE | _READ_FILE | _TRUNCATE
_REMOVE_FOLDER, _REMOVE_FILE, _MAKE_FOLDER, _MAKE_FILE, _MAKE_LINK, _MOVE = (1 << n for n in (4, 5, 7, 8, 12, 13))
_WRITE = _FILE_RIGHTS | _READ_FOLDER | _REMOVE_FOLDER | _REMOVE_FILE | _MAKE_FOLDER | _MAKE_FILE | _MAKE_LINK | _MOVE
_RIGHTS = {3: 15, 5: 16}
"""Version of the interface: its number of file rights. Before version 3 any file could be truncated."""

_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_BIND, _CONNECT = 1 << 0, 1 << 1
_SCOPES = 0b11  # abstract sockets, signals


class PathAccess(Value, frozen=True):
    """The paths that stay accessible, each with all below it: read, list only, and read-write."""

    read: tuple[str, ...]
    listed: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


def restrict(paths: PathAccess, *, allow_connect: bool) -> bool:
    """Close everything else to this thread, for good; False where the system has no Landlock."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, 0, _VERSION)
    if version < min(_RIGHTS):
        return False
    handled = [(1 << max(count for since, count in _RIGHTS.items() if since <= version)) - 1]
    if version >= _NETWORK_SINCE:
        handled.append(_BIND if allow_connect else _BIND | _CONNECT)
    if version >= _SCOPES_SINCE:
        handled.append(_SCOPES)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = _syscall(libc, _CREATE, attributes, len(attributes), 0)
    rights = ((paths.read, _READ_FILE | _READ_FOLDER), (paths.listed, _READ_FOLDER), (paths.written, _WRITE))
    try:
        for allowed, access in rights:
            for path in allowed:
                _allow(libc, ruleset, path, access)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no new privileges cannot be promised")
        _syscall(libc, _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    with suppress(FileNotFoundError, PermissionError):  # a path that cannot be opened needs no rule
        # The target of a link is another path, which needs its own rule.
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            rule = struct.pack("=Qi", access if os.path.isdir(path) else access & _FILE_RIGHTS, fd)
            _syscall(libc, _ADD, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(fd)


def _syscall(libc: ctypes.CDLL, number: int, *args: object) -> int:
    result: int = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), "the confines of the tools cannot be set up")
    return result
