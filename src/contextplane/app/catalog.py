"""Opening and creating the catalog of a store: an SQLite file, or a schema of a PostgreSQL database.

`CTX_DATABASE_URL` names the database. `config.json` says which of the two a store has. A store never changes it: its
history would stay behind.
"""

import os
from typing import TYPE_CHECKING, ClassVar

from contextplane.adapters.files.disk import hold_lock
from contextplane.adapters.files.store_dir import IN_DATABASE, StoreConfig, StoreDirectory
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import BUSY_SECONDS
from contextplane.adapters.system import SystemIds
from contextplane.errors import ContextPlaneError, Family
from contextplane.ports.catalog import Catalog

if TYPE_CHECKING:
    from contextplane.adapters.files.disk import Disk
    from contextplane.adapters.postgres.catalog import PostgresCatalog

__all__ = ["CatalogElsewhere", "DatabaseDriverMissing", "make_catalog", "open_catalog"]


class CatalogElsewhere(ContextPlaneError):
    """The store has its catalog in a database that is not named, or in its own folder while one is named."""

    code: ClassVar[str] = "catalog_elsewhere"
    family: ClassVar[Family] = "conflict"


class DatabaseDriverMissing(ContextPlaneError):
    """CTX_DATABASE_URL names a database, and its driver is not installed."""

    code: ClassVar[str] = "database_driver_missing"
    family: ClassVar[Family] = "failed"


def open_catalog(home: StoreDirectory, config: StoreConfig, database_url: str | None) -> Catalog:
    """Open the catalog of a store that has a store id."""
    if config.catalog != IN_DATABASE:
        _reject_database(home, database_url)
        return SqliteCatalog.open(home.catalog, config.store_id)
    if database_url is None:
        raise CatalogElsewhere(
            "this store has its catalog in a PostgreSQL database", at=home.path, hint="name it in CTX_DATABASE_URL"
        )
    return _postgres_catalog().open(database_url, config.store_id)


def make_catalog(home: StoreDirectory, database_url: str | None, disk: "Disk") -> str:
    """Create the catalog of a store without a store id, write the id to `config.json`, and return it.

    The store has exactly one id in the end, also if two processes do this at once, or one did it before and died.
    """
    new_id = f"store_{SystemIds().token()}"
    if database_url is None:
        catalog, store_id = SqliteCatalog.create(home.catalog, new_id)
        catalog.close()
        home.write_config(store_id, disk)
        return store_id
    if os.path.lexists(home.catalog):
        _reject_database(home, database_url)
    # Two processes that create the same file meet there. In a database each would create a schema of its own.
    with hold_lock(home.inside("catalog.making"), exclusive=True, timeout=BUSY_SECONDS):
        if home.has_config() and (known := home.config().store_id):
            return known
        catalog_in_database, store_id = _postgres_catalog().create(database_url, new_id)
        catalog_in_database.close()
        home.write_config(store_id, disk, catalog=IN_DATABASE)
        return store_id


def _reject_database(home: StoreDirectory, database_url: str | None) -> None:
    if database_url is not None:
        raise CatalogElsewhere(
            "this store has its catalog in its own folder, and CTX_DATABASE_URL names a database",
            at=home.catalog,
            hint="unset CTX_DATABASE_URL for this store",
        )


def _postgres_catalog() -> "type[PostgresCatalog]":
    try:
        from contextplane.adapters.postgres.catalog import PostgresCatalog
    except ImportError as error:
        raise DatabaseDriverMissing(
            f"CTX_DATABASE_URL names a database, and its driver cannot be loaded: {error.msg}",
            at="CTX_DATABASE_URL",
            hint="pip install 'contextplane[postgres]'",
        ) from error
    return PostgresCatalog
