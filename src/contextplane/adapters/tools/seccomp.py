"""A seccomp filter for the system calls of a tool.

It refuses processes, sockets and changes of file attributes. The kernel enforces it, like `landlock`, which restricts
the files. A refused call ends in `PermissionError`; a call newer than the filter fails as if it did not exist.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import TypeAlias

__all__ = ["REFUSED_CALLS", "install_filter"]

REFUSED_CALLS: dict[str, tuple[int, int | None]] = {
    # other programs and processes, and the memory of one
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "tkill": (200, 130),
    "pidfd_send_signal": (424, 424),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "process_madvise": (440, 440),
    # shared between processes
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # servers
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    # file attributes, which Landlock does not cover
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "open_by_handle_at": (304, 265),
    # the system itself
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "iopl": (172, None),
    "ioperm": (173, None),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
"""Calls that no tool may make: their numbers on x86_64, and on aarch64, which lacks some of them."""


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


def install_filter(*, allow_connect: bool) -> bool:
    """Install the filter in this thread, for good; False where the system has no seccomp."""
    machine = _MACHINES.get(os.uname().machine)
    if sys.platform != "linux" or machine is None or sys.maxsize <= 1 << 32:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(
        struct.pack("=HBBI", *instruction) for instruction in _program(*machine, allow_connect=allow_connect)
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    return bool(libc.prctl(_SET_FILTER, _FILTERED, program, 0, 0) == 0)


def _program(column: int, machine: int, *, allow_connect: bool) -> Iterator[_Instruction]:
    yield from ((_LOAD, 0, 0, _MACHINE_AT), (_IS, 1, 0, machine), (_RETURN, 0, 0, _KILL))
    yield from ((_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _UNKNOWN_FROM), _fail_with(errno.ENOSYS))
    # The flags of clone3 are in memory, which a filter cannot read. Without it, threads are started by clone.
    yield from ((_IS, 0, 1, _CLONE3), _fail_with(errno.ENOSYS))
    yield from _allow_if(_CLONE[column], 0, (_HAS, _A_THREAD))
    for signal in _SIGNALS:
        yield from _allow_if(signal[column], 0, (_IS, os.getpid()))
    yield from _allow_if(_PRLIMIT[column], 0, (_IS, 0))
    families = (socket.AF_INET, socket.AF_INET6) if allow_connect else ()
    yield from _allow_if(_SOCKET[column], 0, *((_IS, family) for family in families))
    # Stream pairs stay connected to each other; the ends of other kinds could be connected elsewhere.
    kinds = (0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    yield from _allow_if(_SOCKETPAIR[column], 1, *((_IS, socket.SOCK_STREAM | kind) for kind in kinds))
    for numbers in REFUSED_CALLS.values():
        number = numbers[column]
        if number is not None:
            yield from ((_IS, 0, 1, number), _fail_with(errno.EPERM))
    yield (_RETURN, 0, 0, _ALLOW)


def _allow_if(number: int, argument: int, *tests: tuple[int, int]) -> Iterator[_Instruction]:
    """Allow a call when this argument of it passes one of the tests."""
    yield (_IS, 0, len(tests) + 3, number)
    yield (_LOAD, 0, 0, _ARGUMENTS_AT + argument * _ARGUMENT)  # the lower half: these arguments are int
    for remaining, (test, value) in zip(reversed(range(len(tests))), tests, strict=True):
        yield (test, remaining + 1, 0, value)
    yield _fail_with(errno.EPERM)
    yield (_RETURN, 0, 0, _ALLOW)


def _fail_with(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERROR | number)
