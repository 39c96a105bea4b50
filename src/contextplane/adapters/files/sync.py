"""One call that makes everything durable which was written to a file system: `syncfs`, where it can be relied on.

Not every file system does with it what `fsync` does; those that are known to are named, for all others we say no.
An overlay, for example, tells of no write-out that failed in the file system below it.
"""

import ctypes
import os
import re
import sys

__all__ = ["can_sync_all", "sync_all", "tells_errors"]

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_KNOWN = frozenset(
    {
        0x0000EF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0xF2F52010,  # f2fs
        0x01021994,  # tmpfs, which keeps nothing anyway
    }
)
_ENOUGH = 512  # for any system's struct statfs
_TELLS = (5, 8)  # the first Linux whose syncfs tells what could not be written out


def can_sync_all(fd: int) -> bool:
    """Whether `sync_all` does for the file system of this descriptor what syncing each file would do."""
    if _LIBC is None or not hasattr(_LIBC, "syncfs") or not tells_errors(os.uname().release):
        return False
    array = ctypes.create_string_buffer(_ENOUGH)
    if _LIBC.fstatfs(fd, array) != 0:
        return False
    # The first field is the type, a word of the machine.
    kind = int.from_bytes(array.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)
    return kind & 0xFFFFFFFF in _KNOWN


def tells_errors(release: str) -> bool:
    """Whether a Linux of this release is one on which `syncfs` fails when something could not be written out."""
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})", release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _TELLS


def sync_all(fd: int) -> None:
    """Write out everything of the descriptor's file system.

    The error of any write-out since the descriptor was opened is told here: so open it before you write.
    """
    if _LIBC is None or _LIBC.syncfs(fd) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
