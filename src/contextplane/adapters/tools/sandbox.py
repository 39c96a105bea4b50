"""The sandbox of a worker process: resource limits, `landlock`, `seccomp`, and an audit hook.

All of it is set up once, before a tool is called, and cannot be undone in the process.

The audit hook sees what foreign code does through Python, and refuses with `PermissionError`, which code that probes
for a file survives. It is no protection against native code or against an attack: it does not see the creation of a
pipe or a device, nor the folder of a path that is relative to a descriptor (`dir_fd`), and code in the process can
replace its rules. The protection is `landlock` and `seccomp`, where the system has them.
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

from contextplane.adapters.files.workspace import is_below, is_in_store
from contextplane.adapters.tools.landlock import PathAccess, restrict
from contextplane.adapters.tools.seccomp import install_filter
from contextplane.ports.tools import Confinement, ToolFailed, ToolRefused
from contextplane.ports.world import OutsideRoot

__all__ = ["AuditHook", "Workspace", "confine", "library_paths", "path_access"]


class Workspace:
    """The folder that tools work in, without the store in it.

    The store changes with every packed run, so what a tool saw of it could not be replayed; and a tool that could write
    there could change recordings. Every folder called `.ctx` counts as a store.
    """

    def __init__(self, root: str, store: str = "") -> None:
        self.root = os.path.realpath(root)
        self._store = os.path.realpath(store) if store else ""

    def resolve(self, path: str) -> str:
        """Resolve a path, which must lead into the workspace."""
        if "\0" in path:
            raise ToolFailed("a path with a NUL in it")
        real = os.path.realpath(os.path.join(self.root, path))
        if self.is_store(real):
            raise ToolRefused("leads into the store, which is no part of the workspace", at=path)
        if not is_below(self.root, real):
            raise OutsideRoot("leads out of its folder", at=path, hint=f"it must be below {self.root}")
        return real

    def contains(self, real: str) -> bool:
        return is_below(self.root, real) and not self.is_store(real)

    def is_store(self, real: str) -> bool:
        return is_in_store(real, root=self.root, store=self._store)

    def parts_without_store(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Yield the parts of a folder that do not contain the store, and whether each part is taken whole.

        A part that is not whole is a folder that contains the store. Links are left out: their targets are other paths.
        Of stores other than the given one, only `.ctx` in the workspace itself counts: others would need a search.
        """
        if self.is_store(folder):
            return
        stores = (self._store, os.path.join(self.root, ".ctx"))
        if not any(store and is_below(folder, store) and os.path.lexists(store) for store in stores):
            yield folder, True
            return
        yield folder, False
        with suppress(FileNotFoundError, PermissionError), os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    yield from self.parts_without_store(entry.path)


_Args: TypeAlias = tuple[Any, ...]

# Read-only: the system's libraries, and what resolving a host or checking a certificate needs.
_SYSTEM_PATHS = (
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
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READ_EVENTS = frozenset({"os.listdir", "os.scandir", "os.chdir", "os.getxattr", "os.listxattr"})
# Positions in the arguments of an event: a path that is written, and the descriptor of the folder it is relative to.
_WRITE_EVENTS: dict[str, tuple[tuple[int, int | None], ...]] = {
    **dict.fromkeys(("os.chflags", "os.removexattr", "os.setxattr", "os.truncate"), ((0, None),)),
    **dict.fromkeys(("os.remove", "os.rmdir"), ((0, 1),)),
    **dict.fromkeys(("os.chmod", "os.mkdir"), ((0, 2),)),
    **dict.fromkeys(("os.chown", "os.utime"), ((0, 3),)),
    **dict.fromkeys(("os.link", "os.rename"), ((0, 2), (1, 3))),
    "os.symlink": ((1, 2),),
}
_REFUSED_EVENTS = {
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


def library_paths() -> tuple[str, ...]:
    """List the folders of the interpreter's, installed and system libraries: resolved, without duplicates."""
    certificates = ssl.get_default_verify_paths()
    paths = (
        *(os.path.abspath(path) for path in sys.path if path),
        *(os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix)),
        *(path for path in (certificates.cafile, certificates.capath) if path),
        *_SYSTEM_PATHS,
    )
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.exists(path)))


class AuditHook:
    """An audit hook that refuses what a tool may not do.

    It allows reading the workspace and libraries, writing to the folder `scratch` if there is one, and the given hosts.
    `kernel_confined`: the kernel restricts files as well.
    """

    def __init__(
        self,
        workspace: Workspace,
        hosts: Iterable[str],
        readable: Iterable[str],
        *,
        scratch: str,
        kernel_confined: bool,
    ) -> None:
        self._workspace = workspace
        self._hosts = frozenset(host.lower() for host in hosts)
        self._scratch = os.path.realpath(scratch) if scratch else ""
        self._readable = (*readable, self._scratch) if scratch else tuple(readable)
        self._kernel_confined = kernel_confined
        self._addresses = set(self._hosts)
        self._checks: dict[str, Callable[[_Args], None]] = {
            "open": self._check_open,
            "socket.getaddrinfo": self._check_lookup,
            "sqlite3.connect": self._check_database,
            **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), self._check_connect),
        }

    def __call__(self, event: str, args: _Args) -> None:
        if event in self._checks:
            self._checks[event](args)
        elif event in _READ_EVENTS:
            self._check_read(args[0])
        elif event in _WRITE_EVENTS:
            for path, folder in _WRITE_EVENTS[event]:
                self._check_write(_path_in_folder(args[path], -1 if folder is None else args[folder]))
        elif event in _REFUSED_EVENTS:
            raise PermissionError(f"{_REFUSED_EVENTS[event]} is not allowed to a tool")

    def wrap_getaddrinfo(self, resolve: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap `socket.getaddrinfo`, so that the addresses of an allowed host may be connected to."""

        def getaddrinfo(*args: object, **options: object) -> Any:  # noqa: ANN401  as the function it wraps
            infos = resolve(*args, **options)
            self._addresses |= {address[0] for *_, address in infos}
            return infos

        return getaddrinfo

    def _check_open(self, args: _Args) -> None:
        path, _, flags = args
        (self._check_write if flags & _WRITE_FLAGS else self._check_read)(path)

    def _check_database(self, args: _Args) -> None:
        """SQLite opens a file to write, and falls back to reading where the kernel forbids it."""
        if args[0] != ":memory:":
            (self._check_read if self._kernel_confined else self._check_write)(args[0])

    def _check_read(self, path: object) -> None:
        if isinstance(path, int):
            return  # a descriptor that is open already
        real = os.path.realpath(_text(path))
        if not self._workspace.contains(real) and (
            self._workspace.is_store(real) or not any(is_below(folder, real) for folder in self._readable)
        ):
            raise PermissionError(f"{real} lies outside the workspace")

    def _check_write(self, path: object) -> None:
        if isinstance(path, int):
            return
        text = _text(path)
        folder, name = os.path.split(os.path.abspath(text))
        # Check the entry and its target: a link may be removed, or be written through.
        for real in (os.path.realpath(text), os.path.join(os.path.realpath(folder), name)):
            if real != os.devnull and not (self._scratch and is_below(self._scratch, real)):
                raise PermissionError(f"{real} must not be written")

    def _check_lookup(self, args: _Args) -> None:
        host = args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]
        if str(host).lower() not in self._hosts:
            raise PermissionError(f"the host {str(host)[:80]!r} is not allowed")

    def _check_connect(self, args: _Args) -> None:
        _, address = args
        if address is None:
            return  # it is connected already
        host = address[0] if isinstance(address, tuple) else None
        if host not in self._addresses:
            raise PermissionError(f"the address {str(host or address)[:80]!r} is not allowed")


def _path_in_folder(path: Any, folder: int) -> Any:  # noqa: ANN401  an argument of foreign code
    """Return a path with the folder it is relative to; refuse it where the folder is unknown."""
    if folder == -1 or isinstance(path, int):
        return path
    try:
        return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), _text(path))
    except OSError:
        raise PermissionError("a path in a folder that is given by a descriptor is not allowed to a tool") from None


def _text(path: Any) -> str:  # noqa: ANN401  an argument of foreign code
    return os.fsdecode(os.curdir if path is None else path)


_LIMITS = {resource.RLIMIT_DATA: 2 << 30, resource.RLIMIT_FSIZE: 1 << 30, resource.RLIMIT_CORE: 0}
"""Memory, the size of a written file, and no core dumps."""


def confine(workspace: Workspace, hosts: Sequence[str], *, scratch: str, seconds: float) -> Confinement:
    """Confine this process to the workspace and libraries (read), the scratch folder, and these hosts.

    A process with a scratch folder runs foreign code, once. To it the kernel closes the store as well, and its CPU time
    is limited to `seconds` on all processors.
    """
    readable = library_paths()
    cpu_limit = {resource.RLIMIT_CPU: math.ceil(seconds) * (os.cpu_count() or 1)} if scratch else {}
    for limit, maximum in {**_LIMITS, **cpu_limit}.items():
        _, hard = resource.getrlimit(limit)
        value = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
        resource.setrlimit(limit, (value, value))
    paths = path_access(workspace, readable, scratch=scratch)
    kernel_confined = restrict(paths, allow_connect=bool(hosts)) and install_filter(allow_connect=bool(hosts))
    audit_hook = AuditHook(workspace, hosts, readable, scratch=scratch, kernel_confined=kernel_confined)
    socket.getaddrinfo = audit_hook.wrap_getaddrinfo(socket.getaddrinfo)
    sys.addaudithook(audit_hook)
    return "kernel" if kernel_confined else "python"


def path_access(workspace: Workspace, readable: Sequence[str], *, scratch: str) -> PathAccess:
    """Return the paths that the kernel leaves accessible.

    A rule covers everything below a path, so the store is closed by naming its current siblings instead of its parent.
    Our own tools check for the store themselves, and see files that are added to the workspace later.
    """
    paths = (*readable, workspace.root)
    if not scratch:
        return PathAccess(read=paths, written=(os.devnull,))
    parts = dict(part for path in paths for part in workspace.parts_without_store(path))
    return PathAccess(
        read=tuple(part for part, whole in parts.items() if whole),
        listed=tuple(part for part, whole in parts.items() if not whole),
        written=(os.path.realpath(scratch), os.devnull),
    )
