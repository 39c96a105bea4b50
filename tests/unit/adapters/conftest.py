"""Fixtures of the tests of tools."""

import sys
from collections.abc import Iterator

import pytest

from contextplane.adapters.tools.process import ProcessTools
from contextplane.ports.tools import Tools
from tests.unit.adapters.tool_workspace import InProcessTools, ToolWorkspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> ToolWorkspace:
    """One for all tests of a module: no test changes what another one reads."""
    return ToolWorkspace(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def worker(place: ToolWorkspace) -> Iterator[ProcessTools]:
    with ProcessTools(place.options()) as worker:
        yield worker


@pytest.fixture(scope="module", params=["in the worker", "by themselves"])
def tools(place: ToolWorkspace, worker: ProcessTools, request: pytest.FixtureRequest) -> Iterator[Tools]:
    """The tools with and without their process: they must stay in the workspace either way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))  # a function of the workspace adds to it
        patch.setattr(sys, "dont_write_bytecode", True)
        yield worker if request.param == "in the worker" else InProcessTools(place.options())
