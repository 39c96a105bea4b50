"""Where the fault tests write."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surfaces.running import in_public

_MEMORY = "/dev/shm"  # noqa: S108  a folder of our own is made in it


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one: these tests sync thousands of times, and none can cut the power."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as path:
        yield Path(path)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that nobody can reach, in both senses."""
    with in_public() as path:
        yield path
