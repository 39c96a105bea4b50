"""The filter of Linux for what a tool asks the system for: no process, no socket, no change of what a file is.

It is held by the kernel, like `landlock`, which decides about the files themselves. What it refuses ends in
`PermissionError`; what came into Linux after it was written does not exist to the tool.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import TypeAlias

from contextplane.adapters.tools.syscalls import REFUSED

__all__ = ["filter_in"]

_Instruction: TypeAlias = tuple[int, int, int, int]

_SET_FILTER, _FILTERED = 22, 2
_LOAD, _IS, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT, _ARGUMENT = 0, 4, 16, 8
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_CLONE, _CLONE3, _A_THREAD = (56, 220), 435, 0x00010000
_SIGNALS = ((62, 129), (234, 131), (129, 138), (297, 240))  # kill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo
_PRLIMIT, _SOCKET, _SOCKETPAIR = (302, 261), (41, 198), (53, 199)
_UNKNOWN_FROM = 463


def filter_in(*, connecting: bool) -> bool:
    """Refuse all that to this thread for good; False where the system has no such filter."""
    machine = _MACHINES.get(os.uname().machine)
    if sys.platform != "linux" or machine is None or sys.maxsize <= 1 << 32:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("=HBBI", *one) for one in _program(*machine, connecting=connecting))
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))
    return bool(libc.prctl(_SET_FILTER, _FILTERED, program, 0, 0) == 0)


def _program(column: int, machine: int, *, connecting: bool) -> Iterator[_Instruction]:
    yield from ((_LOAD, 0, 0, _MACHINE_AT), (_IS, 1, 0, machine), (_RETURN, 0, 0, _KILL))
    yield from ((_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _UNKNOWN_FROM), _failing(errno.ENOSYS))
    # The flags of clone3 lie in memory, where a filter cannot look: without it, threads are begun by clone.
    yield from ((_IS, 0, 1, _CLONE3), _failing(errno.ENOSYS))
    yield from _only(_CLONE[column], 0, (_HAS, _A_THREAD))
    for signal in _SIGNALS:
        yield from _only(signal[column], 0, (_IS, os.getpid()))
    yield from _only(_PRLIMIT[column], 0, (_IS, 0))
    families = (socket.AF_INET, socket.AF_INET6) if connecting else ()
    yield from _only(_SOCKET[column], 0, *((_IS, family) for family in families))
    # A pair that is connected for good; the ends of another kind could be led to a socket of the system.
    kinds = (0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    yield from _only(_SOCKETPAIR[column], 1, *((_IS, socket.SOCK_STREAM | kind) for kind in kinds))
    for numbers in REFUSED.values():
        number = numbers[column]
        if number is not None:
            yield from ((_IS, 0, 1, number), _failing(errno.EPERM))
    yield (_RETURN, 0, 0, _ALLOW)


def _only(number: int, argument: int, *tests: tuple[int, int]) -> Iterator[_Instruction]:
    """A call that is allowed when this argument of it passes one of the tests."""
    yield (_IS, 0, len(tests) + 3, number)
    yield (_LOAD, 0, 0, _ARGUMENTS_AT + argument * _ARGUMENT)  # the lower half: these arguments are int
    for left, (test, value) in zip(reversed(range(len(tests))), tests, strict=True):
        yield (test, left + 1, 0, value)
    yield _failing(errno.EPERM)
    yield (_RETURN, 0, 0, _ALLOW)


def _failing(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERROR | number)
