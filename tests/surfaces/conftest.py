"""Fixtures that several tests of the surfaces share."""

import shutil
from pathlib import Path

import pytest

from tests.surfaces.archives import Pair
from tests.surfaces.commands import ctx
from tests.surfaces.keyrings import keyring_in
from tests.surfaces.registries import prepared
from tests.surfaces.sample import Store


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Shared by all tests of a module: none of them changes it."""
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def pair_once(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Shared by all tests of a module: none of them changes it."""
    return Pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def pair(pair_once: Pair, tmp_path: Path) -> Pair:
    return pair_once.copied(tmp_path)


@pytest.fixture(scope="module")
def keyring_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by all tests of a module: none of them changes it."""
    return keyring_in(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def keyring_store(keyring_once: Path, tmp_path: Path) -> Path:
    shutil.copytree(keyring_once / ".ctx", tmp_path / ".ctx")
    return tmp_path


@pytest.fixture(scope="module")
def registry_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with versions at every stage. Shared by all tests of a module: none of them changes it."""
    folder = tmp_path_factory.mktemp("registry")
    assert ctx("init", cwd=folder).status == 0
    prepared(folder)
    return folder


@pytest.fixture
def registry_store(registry_once: Path, tmp_path: Path) -> Path:
    shutil.copytree(registry_once, tmp_path, dirs_exist_ok=True)
    return tmp_path
