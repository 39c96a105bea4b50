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
from tests.ports.event_stream_laws import EventStreamLaw
from tests.postgres import a_store_id, shared_url

_NEVER_EMPTIED = ("schema_version", "catalog_table", "identity")


@cache
def _shared_catalog() -> tuple[str, str]:
    """Create one catalog for all laws of this process; return its store id, and the SQL that empties it."""
    catalog, store_id = PostgresCatalog.create(shared_url(), a_store_id())
    with closing(catalog):
        names = [table.name for table in catalog.tables() if table.name not in _NEVER_EMPTIED]
    schema = store_id.replace("store_", "ctx_")
    # Only the owner of the server may disable the triggers that protect events.
    deletes = "".join(f"DELETE FROM {schema}.{name};" for name in names)  # noqa: S608  names of our own tables
    return store_id, f"BEGIN; SET LOCAL session_replication_role = replica; {deletes} COMMIT"


class TestPostgresCatalog(CatalogLaw, EventStreamLaw):
    """Each catalog is that of this process, emptied."""

    @pytest.fixture(autouse=True)
    def _connections(self) -> Iterator[None]:
        store_id, self.empty_sql = _shared_catalog()
        self.opened: list[Catalog] = []
        with (
            closing(connect(shared_url())) as self.db,
            closing(PostgresCatalog.open(shared_url(), store_id)) as self.first,
        ):
            yield
        self._close_others()

    def make(self) -> Catalog:
        self._close_others()
        self.db.execute(self.empty_sql.encode())
        return self.first

    def reopen(self) -> Catalog:
        catalog = PostgresCatalog.open(shared_url(), _shared_catalog()[0])
        if current_thread() is main_thread():  # a thread closes its own
            self.opened.append(catalog)
        return catalog

    def _close_others(self) -> None:
        while self.opened:
            self.opened.pop().close()
