"""One world for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.store.world import World, world_in


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as world:
        yield world
