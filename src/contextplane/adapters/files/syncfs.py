"""The system call `syncfs`: makes everything durable that was written to a file system.

Not every file system gives it the guarantees of `fsync`. Those known to are listed; for others `can_sync_all` is False.
An overlay, for example, does not report failed writes of the file system below it.
"""

import ctypes
import os
import re
import sys

__all__ = ["can_sync_all", "reports_write_errors", "sync_all"]

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_RELIABLE_TYPES = frozenset(
    {
        0x0000EF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0xF2F52010,  # f2fs
        0x01021994,  # tmpfs, which keeps nothing anyway
    }
)
_STATFS_BYTES = 512  # enough for any system's struct statfs
_REPORTS_SINCE = (5, 8)  # the first Linux whose syncfs reports failed writes


def can_sync_all(fd: int) -> bool:
    """Whether `sync_all` on this file system is as good as a sync of each file."""
    if _LIBC is None or not hasattr(_LIBC, "syncfs") or not reports_write_errors(os.uname().release):
        return False
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.fstatfs(fd, buffer) != 0:
        return False
    # The first field is the type, a word of the machine.
    kind = int.from_bytes(buffer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)
    return kind & 0xFFFFFFFF in _RELIABLE_TYPES


def reports_write_errors(release: str) -> bool:
    """Whether `syncfs` reports failed writes on this release of Linux."""
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})", release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _REPORTS_SINCE


def sync_all(fd: int) -> None:
    """Sync everything on the file system of a descriptor.

    It reports every failed write since the descriptor was opened, so open it before writing.
    """
    if _LIBC is None or _LIBC.syncfs(fd) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
