"""The SQLite adapter obeys the laws of the catalog."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import current_thread, main_thread

import pytest

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.ports.catalog import Catalog
from contextplane.testing.laws.catalog import CatalogLaw
from tests.ports.event_stream_laws import EventStreamLaw


class TestSqliteCatalog(CatalogLaw, EventStreamLaw):
    """Each catalog is a file of its own, below a folder that goes away with the test."""

    @pytest.fixture(autouse=True)
    def _folder(self) -> Iterator[None]:
        self.opened: list[Catalog] = []
        with tempfile.TemporaryDirectory() as folder:
            self.folder = folder
            yield
            for catalog in self.opened:
                catalog.close()

    def make(self) -> Catalog:
        self.path = str(Path(tempfile.mkdtemp(dir=self.folder), "catalog.db"))
        catalog, self.store_id = SqliteCatalog.create(self.path, "store_0123456789abcdef")
        self.opened.append(catalog)
        return catalog

    def reopen(self) -> Catalog:
        catalog = SqliteCatalog.open(self.path, self.store_id)
        if current_thread() is main_thread():  # a connection belongs to its thread, which closes it itself
            self.opened.append(catalog)
        return catalog
