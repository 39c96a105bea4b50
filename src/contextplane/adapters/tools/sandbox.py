"""Confining the process of a tool: limits of the system, the kernel's wall where there is one, and Python's fence.

All of it is set up once, before a tool is called, and cannot be taken down in this process.

A fence around code of others: what it does through Python is looked at first, and refused where it leads out.

It hears every audit event of the interpreter and refuses with `PermissionError`, which code that only tries its luck
survives. It is no wall against native code, nor against code that sets out to break it: it does not see the making of a
pipe or a device, nor the folder that a file is opened in when that is given by a descriptor (`dir_fd`), and code in
this process can replace its rules. `landlock` and `seccomp` are the wall, where the system has them.

The folder that tools work in: what lies in it by where a path really leads, and what of it is the store's.
"""

import math
import os
import resource
import socket
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from contextplane.adapters.files.workspace import below, in_store
from contextplane.adapters.tools.landlock import Reach, wall_in
from contextplane.adapters.tools.seccomp import filter_in
from contextplane.ports.tools import Confinement, ToolFailed, ToolRefused
from contextplane.ports.world import OutsideRoot

__all__ = ["Fence", "Workspace", "below", "confine", "libraries", "reach_of"]


class Workspace:
    """A folder without the store in it.

    The store changes with every run that is packed, so what a run saw of it is never there again; and a tool that could
    write there could change what was recorded. Every folder called `.ctx` counts as one.
    """

    def __init__(self, root: str, store: str = "") -> None:
        self.root = os.path.realpath(root)
        self._store = os.path.realpath(store) if store else ""

    def inside(self, path: str) -> str:
        """Where a path really leads, which must be inside the workspace."""
        if "\0" in path:
            raise ToolFailed("a path with a NUL in it")
        real = os.path.realpath(os.path.join(self.root, path))
        if self.is_store(real):
            raise ToolRefused("leads into the store, which is no part of the workspace", at=path)
        if not below(self.root, real):
            raise OutsideRoot("leads out of its folder", at=path, hint=f"it must lie below {self.root}")
        return real

    def holds(self, real: str) -> bool:
        return below(self.root, real) and not self.is_store(real)

    def is_store(self, real: str) -> bool:
        return in_store(real, root=self.root, store=self._store)

    def around_store(self, place: str) -> Iterator[tuple[str, bool]]:
        """The parts of a folder that together are all of it but the store, and whether each is to be taken whole.

        One that is not is a folder that the store lies in. Links are left out: where they lead is another place. Of
        stores that nobody named only one that lies in the workspace itself counts: others would have to be looked for.
        """
        if self.is_store(place):
            return
        kept_out = (self._store, os.path.join(self.root, ".ctx"))
        if not any(store and below(place, store) and os.path.lexists(store) for store in kept_out):
            yield place, True
            return
        yield place, False
        with suppress(FileNotFoundError, PermissionError), os.scandir(place) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    yield from self.around_store(entry.path)


_Args: TypeAlias = tuple[Any, ...]

# To read only: the system's libraries, and what resolving a name or checking a certificate needs.
_SYSTEM = (
    *(
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/share/zoneinfo",
        "/usr/share/ca-certificates",
    ),
    *("/etc/ssl", "/etc/pki", "/etc/localtime", "/etc/ld.so.cache", "/etc/mime.types", "/dev/urandom", os.devnull),
    *("/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services"),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READING = frozenset({"os.listdir", "os.scandir", "os.chdir", "os.getxattr", "os.listxattr"})
# Where in its arguments an event has a path that is written, and the descriptor of the folder that it is relative to.
_WRITTEN_AT: dict[str, tuple[tuple[int, int | None], ...]] = {
    **dict.fromkeys(("os.chflags", "os.removexattr", "os.setxattr", "os.truncate"), ((0, None),)),
    **dict.fromkeys(("os.remove", "os.rmdir"), ((0, 1),)),
    **dict.fromkeys(("os.chmod", "os.mkdir"), ((0, 2),)),
    **dict.fromkeys(("os.chown", "os.utime"), ((0, 3),)),
    **dict.fromkeys(("os.link", "os.rename"), ((0, 2), (1, 3))),
    "os.symlink": ((1, 2),),
}
_NEVER = {
    **dict.fromkeys(
        (
            *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system"),
            *("subprocess.Popen", "pty.spawn"),
        ),
        "beginning another process",
    ),
    **dict.fromkeys(("os.kill", "os.killpg"), "a signal to a process"),
    **dict.fromkeys(
        ("ctypes.dlopen", "ctypes.dlsym", "sqlite3.enable_load_extension", "sqlite3.load_extension"),
        "loading native code by hand",
    ),
    **dict.fromkeys(
        ("socket.bind", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo", "socket.sethostname"),
        "this use of the network",
    ),
}


def libraries() -> tuple[str, ...]:
    """Where the interpreter, what is installed for it, and the system keep their libraries: resolved, each once."""
    certificates = ssl.get_default_verify_paths()
    places = (
        *(os.path.abspath(place) for place in sys.path if place),
        *(os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix)),
        *(place for place in (certificates.cafile, certificates.capath) if place),
        *_SYSTEM,
    )
    return tuple(dict.fromkeys(os.path.realpath(place) for place in places if os.path.exists(place)))


class Fence:
    """The rules, as a function of an audit event.

    Files: the workspace and libraries to read, and the folder `scratch` to write, when there is one. Hosts: those
    allowed. `walled`: the kernel holds the files as well.
    """

    def __init__(
        self, workspace: Workspace, hosts: Iterable[str], readable: Iterable[str], *, scratch: str, walled: bool
    ) -> None:
        self._workspace = workspace
        self._hosts = frozenset(host.lower() for host in hosts)
        self._scratch = os.path.realpath(scratch) if scratch else ""
        self._readable = (*readable, self._scratch) if scratch else tuple(readable)
        self._walled = walled
        self._addresses = set(self._hosts)
        self._checks: dict[str, Callable[[_Args], None]] = {
            "open": self._open,
            "socket.getaddrinfo": self._name,
            "sqlite3.connect": self._database,
            **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), self._connect),
        }

    def __call__(self, event: str, args: _Args) -> None:
        if event in self._checks:
            self._checks[event](args)
        elif event in _READING:
            self._read(args[0])
        elif event in _WRITTEN_AT:
            for path, folder in _WRITTEN_AT[event]:
                self._write(_placed(args[path], -1 if folder is None else args[folder]))
        elif event in _NEVER:
            raise PermissionError(f"{_NEVER[event]} is not allowed to a tool")

    def resolving(self, resolve: Callable[..., Any]) -> Callable[..., Any]:
        """`socket.getaddrinfo` so that what it gives for an allowed host may be connected to."""

        def getaddrinfo(*args: object, **options: object) -> Any:  # noqa: ANN401  as the one that it wraps
            found = resolve(*args, **options)
            self._addresses |= {address[0] for *_, address in found}
            return found

        return getaddrinfo

    def _open(self, args: _Args) -> None:
        path, _, flags = args
        (self._write if flags & _WRITING else self._read)(path)

    def _database(self, args: _Args) -> None:
        """SQLite opens to write, and is content with reading where the kernel does not let it."""
        if args[0] != ":memory:":
            (self._read if self._walled else self._write)(args[0])

    def _read(self, path: object) -> None:
        if isinstance(path, int):
            return  # it was opened before
        real = os.path.realpath(_text(path))
        if not self._workspace.holds(real) and (
            self._workspace.is_store(real) or not any(below(place, real) for place in self._readable)
        ):
            raise PermissionError(f"{real} lies outside the workspace")

    def _write(self, path: object) -> None:
        if isinstance(path, int):
            return
        text = _text(path)
        folder, name = os.path.split(os.path.abspath(text))
        # The entry itself counts as well as where it leads: a link may be removed, or be written through.
        for real in (os.path.realpath(text), os.path.join(os.path.realpath(folder), name)):
            if real != os.devnull and not (self._scratch and below(self._scratch, real)):
                raise PermissionError(f"{real} is not to be written")

    def _name(self, args: _Args) -> None:
        host = args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]
        if str(host).lower() not in self._hosts:
            raise PermissionError(f"the host {str(host)[:80]!r} is not allowed")

    def _connect(self, args: _Args) -> None:
        _, address = args
        if address is None:
            return  # to where it is connected already
        host = address[0] if isinstance(address, tuple) else None
        if host not in self._addresses:
            raise PermissionError(f"the address {str(host or address)[:80]!r} is not allowed")


def _placed(path: Any, folder: int) -> Any:  # noqa: ANN401  whatever code of others gave
    """A path from where it is relative to; where the system does not tell where that is, it leads nowhere."""
    if folder == -1 or isinstance(path, int):
        return path
    try:
        return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), _text(path))
    except OSError:
        raise PermissionError("a path in a folder that is given by a descriptor is not allowed to a tool") from None


def _text(path: Any) -> str:  # noqa: ANN401  whatever code of others gave
    return os.fsdecode(os.curdir if path is None else path)


_LIMITS = {resource.RLIMIT_DATA: 2 << 30, resource.RLIMIT_FSIZE: 1 << 30, resource.RLIMIT_CORE: 0}
"""Memory, the size of a file that is written, and no image of a process that died."""


def confine(workspace: Workspace, hosts: Sequence[str], *, scratch: str, seconds: float) -> Confinement:
    """Close to this process all but the workspace and the libraries (to read), the scratch folder, and these hosts.

    Who has a scratch folder runs code of others, and that once: to it, the kernel closes the store as well, and it ends
    by itself when all processors together could have worked on it for so long.
    """
    readable = libraries()
    work = {resource.RLIMIT_CPU: math.ceil(seconds) * (os.cpu_count() or 1)} if scratch else {}
    for limit, most in {**_LIMITS, **work}.items():
        _, hard = resource.getrlimit(limit)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (least, least))
    reach = reach_of(workspace, readable, scratch=scratch)
    walled = wall_in(reach, connecting=bool(hosts)) and filter_in(connecting=bool(hosts))
    fence = Fence(workspace, hosts, readable, scratch=scratch, walled=walled)
    socket.getaddrinfo = fence.resolving(socket.getaddrinfo)
    sys.addaudithook(fence)
    return "kernel" if walled else "python"


def reach_of(workspace: Workspace, readable: Sequence[str], *, scratch: str) -> Reach:
    """What the wall leaves open.

    Its rules hold for all below a place, so the store is closed by naming what lies around it, as it is now. Our own
    tools look after the store by themselves, and see what comes into the workspace later.
    """
    places = (*readable, workspace.root)
    if not scratch:
        return Reach(read=places, written=(os.devnull,))
    parts = dict(part for place in places for part in workspace.around_store(place))
    return Reach(
        read=tuple(part for part, whole in parts.items() if whole),
        listed=tuple(part for part, whole in parts.items() if not whole),
        written=(os.path.realpath(scratch), os.devnull),
    )
