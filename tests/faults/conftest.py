"""Folders and stores for the fault tests."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.stores import with_one_pack
from tests.surfaces.commands import public_folder

_MEMORY = "/dev/shm"  # noqa: S108  a folder of our own is made in it


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory if possible: these tests sync thousands of times, and none cuts the power."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as path:
        yield Path(path)


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder on disk for large data, removed with the test; pytest would keep its own for a while."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that the user `nobody` can access as well."""
    with public_folder() as path:
        yield path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The path of a store with one pack in it."""
    return with_one_pack(tmp_path)
