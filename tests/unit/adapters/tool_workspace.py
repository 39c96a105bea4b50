"""A workspace with files that are difficult for tools, and two ways to call tools on it."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from contextplane.adapters.tools.builtin import builtin_lookup
from contextplane.adapters.tools.function_worker import function_lookup
from contextplane.adapters.tools.process import SandboxOptions
from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import (
    BUILTIN_VERSIONS,
    OWN_TOOLS,
    ToolRequest,
    decode_request,
    decode_response,
    encode_message,
)
from contextplane.adapters.tools.worker import run_tool
from contextplane.ports.tools import ToolFailed, ToolRefused, Tools, ToolUnknown

__all__ = ["SECRET", "InProcessTools", "ToolWorkspace", "python", "worker_pid"]

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


class ToolWorkspace:
    """A workspace with links, pipes, binary files and a store in it, and a secret next to it."""

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

    def options(self, seconds: float = 60.0, *, allowing: bool = True) -> SandboxOptions:
        allowed = ("workmodule",) if allowing else ()
        return SandboxOptions(root=str(self.root), hosts=("127.0.0.1",), modules=allowed, seconds=seconds)


class InProcessTools:
    """The tools of the workers without a process or a sandbox around them."""

    def __init__(self, options: SandboxOptions) -> None:
        workspace = Workspace(options.root, options.store)
        self._builtin = builtin_lookup(workspace, options.hosts)
        self._functions = function_lookup(workspace, options.hosts, options.modules)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(BUILTIN_VERSIONS))

    def version(self, name: str) -> str:
        if name not in BUILTIN_VERSIONS:
            raise ToolUnknown("no such tool")
        return BUILTIN_VERSIONS[name]

    def call(self, name: str, parameters: Mapping[str, object]) -> bytes:
        request = decode_request(encode_message(ToolRequest(tool=name, parameters=dict(parameters))))
        lookup = self._builtin if name in OWN_TOOLS else self._functions
        response = decode_response(encode_message(run_tool(request, lookup)))
        if response.ended != "output":
            raise {"failed": ToolFailed, "refused": ToolRefused}[response.ended](response.message)
        return response.output


def python(tools: Tools, function: str, **arguments: object) -> bytes:
    return tools.call("python", {"function": f"workmodule:{function}", "arguments": arguments})


def worker_pid(tools: Tools) -> int:
    pid, _ = msgspec.json.decode(python(tools, "where"), type=tuple[int, str])
    return pid
