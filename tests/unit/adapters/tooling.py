"""A workspace with everything in it that a tool could stumble over, and two ways to call tools on it."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from contextplane.adapters.tools.builtin import own_tools
from contextplane.adapters.tools.function_worker import functions
from contextplane.adapters.tools.process import Confines
from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import BUILT_IN, OURS, Request, read_answer, read_request, wire_bytes
from contextplane.adapters.tools.worker import answered
from contextplane.ports.tools import ToolFailed, ToolRefused, Tools, ToolUnknown

__all__ = ["SECRET", "InProcess", "Place", "python", "worker_of"]

SECRET = b"nobody may read this 881"
MODULE = """
import os
from os.path import join

def double(n): return {"twice": n * 2}
def text(): return "t\\u00ebxt"
def raw():
    print("noise")
    return b"\\x00\\xff"
def where(): return [os.getpid(), os.getcwd()]
def large(n): return b"x" * n
def odd(): return object()
def broken(): raise ValueError("no")
def leave(): raise SystemExit("bye")
def die(): os._exit(3)
def hang():
    while True:
        pass
def work_limit():
    import resource
    return resource.getrlimit(resource.RLIMIT_CPU)[1]
def _hidden(): return 1
"""


class Place:
    """A folder with everything in it that a tool could stumble over, and a secret beside it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        (self.root / "sub").mkdir(parents=True)
        (self.root / ".ctx").mkdir()
        (folder / "secret").write_bytes(SECRET)
        (self.root / "a.txt").write_bytes(b"alpha\nbeta 881\n")
        (self.root / "sub" / "b.txt").write_bytes(b"881 first\r\nsecond\n881")
        (self.root / "sub" / "binary").write_bytes(b"\0 881")
        (self.root / ".ctx" / "config.json").write_bytes(b"881")
        (self.root / "link_in").symlink_to("a.txt")
        (self.root / "link_out").symlink_to("../secret")
        (self.root / "link_folder").symlink_to("..")
        (self.root / "link_store").symlink_to(".ctx")
        (self.root / "link_device").symlink_to("/dev/zero")
        os.mkfifo(self.root / "pipe")
        (self.root / "workmodule.py").write_text(MODULE)

    def confines(self, seconds: float = 60.0, *, allowing: bool = True) -> Confines:
        allowed = ("workmodule",) if allowing else ()
        return Confines(root=str(self.root), hosts=("127.0.0.1",), modules=allowed, seconds=seconds)


class InProcess:
    """The tools of the worker without a process around them: what they do by themselves, and no more."""

    def __init__(self, confines: Confines) -> None:
        workspace = Workspace(confines.root, confines.store)
        self._ours = own_tools(workspace, confines.hosts)
        self._functions = functions(workspace, confines.hosts, confines.modules)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(BUILT_IN))

    def version(self, name: str) -> str:
        if name not in BUILT_IN:
            raise ToolUnknown("no such tool")
        return BUILT_IN[name]

    def call(self, name: str, parameters: Mapping[str, object]) -> bytes:
        request = read_request(wire_bytes(Request(tool=name, parameters=dict(parameters))))
        find = self._ours if name in OURS else self._functions
        answer = read_answer(wire_bytes(answered(request, find)))
        if answer.ended != "output":
            raise {"failed": ToolFailed, "refused": ToolRefused}[answer.ended](answer.message)
        return answer.output


def python(tools: Tools, function: str, **arguments: object) -> bytes:
    return tools.call("python", {"function": f"workmodule:{function}", "arguments": arguments})


def worker_of(tools: Tools) -> int:
    pid, _ = msgspec.json.decode(python(tools, "where"), type=tuple[int, str])
    return pid
