"""The file adapter obeys the laws of objects."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.model.ids import Digest
from contextplane.ports.objects import Objects
from contextplane.testing.laws.objects import ObjectsLaw


class TestFileObjects(ObjectsLaw):
    """Each store in a folder of its own, below one that goes away with the test."""

    @pytest.fixture(autouse=True)
    def _folder(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            self.folder = folder
            yield

    def make(self) -> Objects:
        self.root = tempfile.mkdtemp(dir=self.folder)
        return FileObjects(self.root)

    def damage(self, objects: Objects, digest: Digest, data: bytes) -> None:
        assert objects.has(digest)
        path = Path(self.root, digest.hex[:2], digest.hex[2:])
        path.chmod(0o644)
        path.write_bytes(data)
