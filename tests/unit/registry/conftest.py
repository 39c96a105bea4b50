from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.registry.desk import Office, office


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Office]:
    """A registry in which nothing happened yet, and everybody who acts in it."""
    with office(tmp_path) as made:
        yield made
