"""Which catalog a store has: a file of its own, or a schema of the database that `CTX_DATABASE_URL` names.

`config.json` says which, and a store never changes it: its past would stay behind.
"""

import os
from typing import TYPE_CHECKING, ClassVar

from contextplane.adapters.files.disk import guarded
from contextplane.adapters.files.store_dir import IN_DATABASE, Home, StoreConfig
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
    """The store has its catalog in a database and none is named, or in its own folder and a database is named."""

    code: ClassVar[str] = "catalog_elsewhere"
    family: ClassVar[Family] = "conflict"


class DatabaseDriverMissing(ContextPlaneError):
    """A database is named, and what is needed to speak to it is not installed."""

    code: ClassVar[str] = "database_driver_missing"
    family: ClassVar[Family] = "failed"


def open_catalog(home: Home, config: StoreConfig, database_url: str | None) -> Catalog:
    """Open the catalog of a store that has an identity."""
    if config.catalog != IN_DATABASE:
        _refuse_a_database(home, database_url)
        return SqliteCatalog.open(home.catalog, config.store_id)
    if database_url is None:
        raise CatalogElsewhere(
            "this store has its catalog in a PostgreSQL database", at=home.path, hint="name it in CTX_DATABASE_URL"
        )
    return _postgres().open(database_url, config.store_id)


def make_catalog(home: Home, database_url: str | None, disk: "Disk") -> str:
    """Make the catalog of a store without an identity and then write that down; return it.

    When two processes do this at once, or one did it before and died, there is one identity in the end.
    """
    fresh = f"store_{SystemIds().token()}"
    if database_url is None:
        catalog, store_id = SqliteCatalog.create(home.catalog, fresh)
        catalog.close()
        home.write_config(store_id, disk)
        return store_id
    if os.path.lexists(home.catalog):
        _refuse_a_database(home, database_url)
    # A file is where two that make it meet; in a database each would make a schema of its own.
    with guarded(home.inside("catalog.making"), alone=True, patience=BUSY_SECONDS):
        if home.has_config() and (known := home.config().store_id):
            return known
        made, store_id = _postgres().create(database_url, fresh)
        made.close()
        home.write_config(store_id, disk, catalog=IN_DATABASE)
        return store_id


def _refuse_a_database(home: Home, database_url: str | None) -> None:
    if database_url is not None:
        raise CatalogElsewhere(
            "this store has its catalog in its own folder, and CTX_DATABASE_URL names a database",
            at=home.catalog,
            hint="unset CTX_DATABASE_URL for this store",
        )


def _postgres() -> "type[PostgresCatalog]":
    try:
        from contextplane.adapters.postgres.catalog import PostgresCatalog
    except ImportError as error:
        raise DatabaseDriverMissing(
            f"CTX_DATABASE_URL names a database, and its driver cannot be loaded: {error.msg}",
            at="CTX_DATABASE_URL",
            hint="pip install 'contextplane[postgres]'",
        ) from error
    return PostgresCatalog
