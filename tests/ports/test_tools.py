"""Every adapter of tools obeys their laws: the worker's own tools, plug-ins in it, and the ones that tests use."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextplane.adapters.tools.process import ProcessTools, SandboxOptions
from contextplane.ports.tools import ToolFailed, ToolRefused, Tools, ToolTimedOut
from contextplane.testing.laws.tools import Call, ToolsLaw
from tests.support.known_tools import KnownTools

FUNCTIONS = """
def echo(text): return text
def fail(): raise ValueError("no")
def leave(): return open("/etc/passwd").read()
def hang():
    while True: pass
def flood(): return b"x" * (16 << 20) + b"x"
"""
PLUGIN = """
import lawful
def tool(name):
    return lambda parameters, workspace: getattr(lawful, name)(**parameters)
echo, fail, leave, hang, flood = map(tool, ("echo", "fail", "leave", "hang", "flood"))
"""
NAMES = ("echo", "fail", "leave", "hang", "flood")


class TestBuiltInTools(ToolsLaw):
    """Those of the worker process, by the functions of one module."""

    gives = Call(tool="read_file", parameters={"path": "a.txt"}), b"alpha\n"
    fails = Call(tool="python", parameters={"function": "lawful:fail"})
    refused = Call(tool="python", parameters={"function": "lawful:leave"})
    hangs = Call(tool="python", parameters={"function": "lawful:hang"})
    floods = Call(tool="python", parameters={"function": "lawful:flood"})

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _tools(cls) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.txt").write_bytes(b"alpha\n")
            Path(folder, "lawful.py").write_text(FUNCTIONS)
            with ProcessTools(SandboxOptions(root=folder, modules=("lawful",), seconds=2.0)) as tools:
                cls.tools = tools
                yield

    tools: ProcessTools

    def make(self) -> Tools:
        return self.tools


class TestPlugIns(ToolsLaw):
    """Those of a package that is really installed: its metadata lies on the path of the interpreter."""

    gives = Call(tool="law_echo", parameters={"text": "hey"}), b"hey"
    fails = Call(tool="law_fail", parameters={})
    refused = Call(tool="law_leave", parameters={})
    hangs = Call(tool="law_hang", parameters={})
    floods = Call(tool="law_flood", parameters={})

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _tools(cls) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            site, work = Path(folder, "site"), Path(folder, "work")
            work.mkdir()
            installed = site / "lawful-1.5.dist-info"
            installed.mkdir(parents=True)
            (site / "lawful.py").write_text(FUNCTIONS)
            (site / "lawful_tools.py").write_text(PLUGIN)
            (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: lawful\nVersion: 1.5\n")
            points = "".join(f"law_{name} = lawful_tools:{name}\n" for name in NAMES)
            (installed / "entry_points.txt").write_text(f"[contextplane.tools]\n{points}")
            patch.syspath_prepend(str(site))
            environment = {"PYTHONPATH": str(site)}
            with ProcessTools(SandboxOptions(root=str(work), seconds=2.0, environment=environment)) as tools:
                cls.tools = tools
                yield

    tools: ProcessTools

    def make(self) -> Tools:
        return self.tools

    def test_its_version_is_that_of_its_package(self) -> None:
        assert self.tools.version("law_echo") == "1.5"


class TestKnownTools(ToolsLaw):
    """The ones whose answers are known beforehand."""

    gives = Call(tool="echo", parameters={}), b"hey"
    fails = floods = Call(tool="fail", parameters={})
    refused = Call(tool="leave", parameters={})
    hangs = Call(tool="hang", parameters={})

    def make(self) -> Tools:
        bad = {"fail": ToolFailed("no"), "leave": ToolRefused("no"), "hang": ToolTimedOut("no")}
        return KnownTools({"echo": b"hey", **bad})
