"""What tests of several adapters stand on."""

import sys
from collections.abc import Iterator

import pytest

from contextplane.adapters.tools.process import ProcessTools
from contextplane.ports.tools import Tools
from tests.unit.adapters.tooling import InProcess, Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """One for all tests of a module: none of them changes what another one looks at."""
    return Place(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def worker(place: Place) -> Iterator[ProcessTools]:
    with ProcessTools(place.confines()) as worker:
        yield worker


@pytest.fixture(scope="module", params=["in the worker", "by themselves"])
def tools(place: Place, worker: ProcessTools, request: pytest.FixtureRequest) -> Iterator[Tools]:
    """The tools, in their process and without one: they must keep to the workspace either way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))  # a function of the workspace adds to it
        patch.setattr(sys, "dont_write_bytecode", True)
        yield worker if request.param == "in the worker" else InProcess(place.confines())
