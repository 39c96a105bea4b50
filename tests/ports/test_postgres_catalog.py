"""The PostgreSQL adapter obeys the laws of the catalog, against a real server."""

from collections.abc import Iterator
from contextlib import closing
from functools import cache
from threading import current_thread, main_thread

import pytest

from contextplane.adapters.postgres.catalog import PostgresCatalog
from contextplane.adapters.postgres.connection import connect
from contextplane.ports.catalog import Catalog
from contextplane.testing.laws.catalog import CatalogLaw
from tests.postgres import a_store_id, shared_url

_KEPT = ("schema_version", "catalog_table", "identity")


@cache
def _made() -> tuple[str, str]:
    """One catalog for all laws of this process: making one takes longer than most laws."""
    catalog, store_id = PostgresCatalog.create(shared_url(), a_store_id())
    with closing(catalog):
        names = [table.name for table in catalog.tables() if table.name not in _KEPT]
    schema = store_id.replace("store_", "ctx_")
    # Only whoever runs the server may switch the triggers off that keep events for ever.
    emptied = "".join(f"DELETE FROM {schema}.{name};" for name in names)  # noqa: S608  names of our own tables
    return store_id, f"BEGIN; SET LOCAL session_replication_role = replica; {emptied} COMMIT"


class TestPostgresCatalog(CatalogLaw):
    """Each catalog is that of this process, emptied."""

    @pytest.fixture(autouse=True)
    def _connections(self) -> Iterator[None]:
        store_id, self.emptying = _made()
        self.opened: list[Catalog] = []
        with (
            closing(connect(shared_url())) as self.db,
            closing(PostgresCatalog.open(shared_url(), store_id)) as self.first,
        ):
            yield
        self._close_others()

    def make(self) -> Catalog:
        self._close_others()
        self.db.execute(self.emptying.encode())
        return self.first

    def again(self) -> Catalog:
        catalog = PostgresCatalog.open(shared_url(), _made()[0])
        if current_thread() is main_thread():  # a thread closes its own
            self.opened.append(catalog)
        return catalog

    def _close_others(self) -> None:
        while self.opened:
            self.opened.pop().close()
