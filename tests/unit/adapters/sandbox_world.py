"""A workspace with a store in it, a secret next to it, and a module that tries to break out."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from contextplane.adapters.tools.process import ProcessTools, SandboxOptions
from contextplane.adapters.tools.sandbox import AuditHook, Workspace, library_paths

__all__ = ["Try", "World", "run_tries"]

Try: TypeAlias = tuple[str, Mapping[str, object]]
"""A function of the module, and its arguments."""

HOSTILE = """
import asyncio, ctypes, os, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading
import _posixsubprocess

def attempt(tries, unhooked):
    if unhooked:
        from contextplane.adapters.tools import sandbox
        sandbox.AuditHook.__call__ = lambda *_: None
    return [outcome(*attempted) for attempted in tries]
def outcome(name, arguments):
    try:
        return ["done", str(globals()[name](**arguments))]
    except BaseException as error:
        return [type(error).__name__, str(error)]

def read(path): return open(path).read()
def listed(path): return sorted(os.listdir(path))
def write(path):
    with open(path, "w") as file: file.write("x")
    return "written"
def remove(path): os.remove(path)
def rename(old, new): os.rename(old, new)
def make(path): os.mkdir(path)
def make_pipe(path): os.mkfifo(path)
def make_node(path): os.mknod(path)
def cut(path): os.truncate(path, 0)
def link(old, new): os.link(old, new)
def symlink(old, new): os.symlink(old, new)
def change_mode(path): os.chmod(path, 0)
def change_mode_when_open(path):
    with open(path) as file: os.fchmod(file.fileno(), 0)
def change_times(path): os.utime(path, (0, 0))
def remove_tree(path): shutil.rmtree(path)
def database(path): sqlite3.connect(path)
def query(path): return sqlite3.connect(path).execute("SELECT 881").fetchone()
def read_elsewhere(folder, path):
    return os.read(os.open(path, os.O_RDONLY, dir_fd=os.open(folder, os.O_RDONLY)), 100)
def write_elsewhere(folder, path):
    os.open(path, os.O_WRONLY | os.O_CREAT, dir_fd=os.open(folder, os.O_RDONLY))
def fork():
    if os.fork() == 0: os._exit(0)
def fork_without_asking():
    read_end, write_end = os.pipe()
    left = (-1, -1, -1, -1, -1, -1, read_end, write_end, False, False, -1, None, None, None, -1, os.setsid, False)
    return _posixsubprocess.fork_exec([b"x"], (b"/bin/true",), True, (write_end,), None, None, *left)
def run(): subprocess.run(["true"])
def system(): return 0 / (os.system("true") == 0)
def spawn(): os.posix_spawn("/bin/true", ["true"], {})
def leave_session(): os.setsid()
def native(): ctypes.CDLL(None)
def kill(pid): os.kill(pid, 0)
def connect(port): socket.create_connection(("127.0.0.1", port)).close()
def connect_at_once(port): socket.socket().connect(("127.0.0.1", port))
def send(port): socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port))
def send_through_a_pair(path): socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", path)
def look_up(name): socket.getaddrinfo(name, 80)
def look_up_otherwise(name): socket.gethostbyname(name)
def serve(): socket.socket().bind(("127.0.0.1", 0))
def local(path): socket.socket(socket.AF_UNIX).connect(path)
def memory(): return len(bytearray(3 << 30))
def large_file():
    with tempfile.TemporaryFile() as file: file.truncate(2 << 30)
def probe():
    try:
        return open("/etc/passwd").read()
    except OSError:
        return "a default"
def environment(): return dict(os.environ)
def ordinary():
    async def soon(): return "soon"
    results = []
    thread = threading.Thread(target=results.append, args=("thread",))
    thread.start()
    thread.join()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "deep"), "w") as file: file.write("written")
        os.rename(file.name, file.name + "er")
        results.append(open(file.name + "er").read())
    return [asyncio.run(soon()), *results]
def scratch(): return tempfile.gettempdir()
def forge(output):
    import msgspec, struct
    answer = msgspec.msgpack.encode({"ended": "output", "output": output.encode(), "message": ""})
    for fd in range(3, 12):
        try:
            os.write(fd, (struct.pack(">Q", len(answer)) + answer) * 9)
        except OSError:
            pass
    return "its own"
"""


class World:
    """A workspace with a store in it, and a secret next to it."""

    def __init__(self, folder: Path) -> None:
        self.outside, self.root = folder / "secret", folder / "work"
        self.store = self.root / "deep" / "kept"
        for subfolder in (self.root / "deep" / "er", self.root / ".ctx", self.store):
            subfolder.mkdir(parents=True)
        self.outside.write_text("nobody may read this")
        (self.root / ".ctx" / "config.json").write_text("{}")
        (self.store / "config.json").write_text("{}")
        (self.root / "a.txt").write_text("alpha")
        (self.root / "deep" / "b.txt").write_text("beta")
        (self.root / "deep" / "er" / "c.txt").write_text("gamma")
        (self.root / "out").symlink_to("../secret")
        (self.root / "up").symlink_to("..")
        (folder / "in").symlink_to("work/a.txt")
        (self.root / "hostile.py").write_text(HOSTILE)

    def options(self, *hosts: str) -> SandboxOptions:
        return SandboxOptions(
            root=str(self.root), store=str(self.store), hosts=hosts, modules=("hostile",), seconds=60.0
        )

    def workspace(self) -> Workspace:
        return Workspace(str(self.root), str(self.store))

    def audit_hook(self, *hosts: str, scratch: str = "", kernel_confined: bool = False) -> AuditHook:
        return AuditHook(self.workspace(), hosts, library_paths(), scratch=scratch, kernel_confined=kernel_confined)

    def snapshot(self) -> list[tuple[object, ...]]:
        """List every file with the attributes and bytes that a tool could change."""
        paths = sorted(self.root.parent.rglob("*"))
        states = ((path, path.lstat(), path.read_bytes() if path.is_file() else b"") for path in paths)
        return [(path, state.st_mode, state.st_mtime_ns, state.st_nlink, data) for path, state, data in states]


def run_tries(tools: ProcessTools, *tries: Try, unhooked: bool = False) -> list[tuple[str, str]]:
    """Run all tries in one process; each result is "done" and its value, or the error's name and message."""
    arguments = {"tries": tries, "unhooked": unhooked}
    output = tools.call("python", {"function": "hostile:attempt", "arguments": arguments})
    return msgspec.json.decode(output, type=list[tuple[str, str]])
