"""The wall of Linux: from here on this thread, and all that it begins, reaches only the files that are named.

It is held by the kernel, against native code as well, and needs no privilege. What is named is open with all that lies
below it. Nothing may be executed, and nothing made but files, folders and links. Where the kernel knows how, no TCP
port is reached either, and no process outside is signalled.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress

from contextplane.model.value import Value

__all__ = ["Reach", "wall_in"]

# The numbers are the same on every architecture; see landlock(7).
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
_OF_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE
_REMOVE_FOLDER, _REMOVE_FILE, _MAKE_FOLDER, _MAKE_FILE, _MAKE_LINK, _MOVE = (1 << n for n in (4, 5, 7, 8, 12, 13))
_WRITE = _OF_FILES | _READ_FOLDER | _REMOVE_FOLDER | _REMOVE_FILE | _MAKE_FOLDER | _MAKE_FILE | _MAKE_LINK | _MOVE
_RIGHTS = {3: 15, 5: 16}
"""How many rights to files each version of the interface knows. Before the third, any file could be cut to nothing."""

_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_BIND, _CONNECT = 1 << 0, 1 << 1
_SCOPES = 0b11  # abstract sockets, signals


class Reach(Value, frozen=True):
    """What stays open, each with all below it: to be read, to be listed only, to be written as well."""

    read: tuple[str, ...]
    listed: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


def wall_in(reach: Reach, *, connecting: bool) -> bool:
    """Close everything else to this thread for good; False where the system has no such wall."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, 0, _VERSION)
    if version < min(_RIGHTS):
        return False
    handled = [(1 << max(count for since, count in _RIGHTS.items() if since <= version)) - 1]
    if version >= _NETWORK_SINCE:
        handled.append(_BIND if connecting else _BIND | _CONNECT)
    if version >= _SCOPES_SINCE:
        handled.append(_SCOPES)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = _called(libc, _CREATE, attributes, len(attributes), 0)
    open_to = ((reach.read, _READ_FILE | _READ_FOLDER), (reach.listed, _READ_FOLDER), (reach.written, _WRITE))
    try:
        for places, access in open_to:
            for place in places:
                _allow(libc, ruleset, place, access)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no new privileges cannot be promised")
        _called(libc, _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _allow(libc: ctypes.CDLL, ruleset: int, place: str, access: int) -> None:
    with suppress(FileNotFoundError, PermissionError):  # what cannot be opened need not be allowed
        # Where a link leads was not named; whoever means it names it.
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            rule = struct.pack("=Qi", access if os.path.isdir(place) else access & _OF_FILES, fd)
            _called(libc, _ADD, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(fd)


def _called(libc: ctypes.CDLL, number: int, *args: object) -> int:
    result: int = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), "the confines of the tools cannot be set up")
    return result
