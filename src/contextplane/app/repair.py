"""Opens a store with a rebuilt index, also if its catalog is missing or damaged.

A catalog that cannot be used is replaced by a new one with all that can be read of it. What is lost is reported.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

from contextplane.adapters.files.disk import Disk, hold_lock, staging_name
from contextplane.adapters.files.store_dir import IN_DATABASE, StoreDirectory, discover_store
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import BUSY_SECONDS
from contextplane.adapters.sqlite.salvage import NEXT, has_unfinished_install, install, salvage_events, salvage_pending
from contextplane.adapters.system import SystemClock, SystemIds
from contextplane.app.catalog import open_catalog
from contextplane.app.execution.record import recording_context
from contextplane.app.init import adopt
from contextplane.app.platform import Platform, flush_pending_objects
from contextplane.app.registry.fsck import registry_indexing
from contextplane.app.settings import Settings
from contextplane.handoff.storage import ensure_page_key
from contextplane.model.catalog import Event
from contextplane.model.json.canonical import canonical
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, CatalogCorrupt, CatalogMissing
from contextplane.record.recorder import restore_recording_roots
from contextplane.store.rebuild import RebuildResult, rebuild
from contextplane.store.status import LOST, STORE_STREAM

__all__ = ["CatalogLoss", "RepairedStore", "open_repaired"]


class CatalogLoss(Value, frozen=True):
    """What became of a catalog that could not be used. Events not counted here are lost for ever."""

    why: str
    moved_to: str | None
    saved_events: int
    saved_streams: tuple[str, ...]
    truth: tuple[str, ...]


class RepairedStore(Value, frozen=True):
    """An opened store with a rebuilt index, and what was lost, if anything."""

    platform: Platform
    rebuilt: RebuildResult
    loss: CatalogLoss | None


@contextmanager
def open_repaired(settings: Settings) -> Iterator[RepairedStore]:
    """Open a store and rebuild its index; if the catalog itself cannot be used, replace it.

    The store is locked exclusively: what another process wrote to the old catalog meanwhile would be lost.
    """
    home = discover_store(settings.cwd, settings.ctx_dir, sudo_uid=settings.sudo_uid)
    store_id = home.config().store_id or adopt(home, settings.database_url)
    with hold_lock(home.catalog_lock, exclusive=True, timeout=BUSY_SECONDS):
        catalog, loss = _open_or_replace_catalog(home, settings.database_url)
        platform = Platform(home, store_id, catalog)
        try:
            flush_pending_objects(platform)
            rebuilt = rebuild(
                platform.catalog,
                platform.entries,
                platform.objects,
                streams_lost=loss is not None,
                others=[registry_indexing(platform)],
            )
            if loss is not None and rebuilt.handoffs:
                _ensure_page_key(platform.catalog)
            restore_recording_roots(recording_context(platform))
            yield RepairedStore(platform=platform, rebuilt=rebuilt, loss=loss)
        finally:
            catalog.close()


def _ensure_page_key(catalog: Catalog) -> None:
    """Give the store a key for page tokens. Tokens that were signed with a lost key are refused."""
    with catalog.write() as tx:
        ensure_page_key(tx, SystemIds())


def _open_or_replace_catalog(home: StoreDirectory, database_url: str | None) -> tuple[Catalog, CatalogLoss | None]:
    config, disk = home.config(), Disk()
    if database_url is not None or config.catalog == IN_DATABASE:
        return _require_sound(open_catalog(home, config, database_url)), None
    store_id = config.store_id
    if has_unfinished_install(home.catalog):
        install(home.catalog, disk)
    why = _unusable_reason(home, store_id)
    if why is None:
        return SqliteCatalog.open(home.catalog, store_id), None
    loss = _prepare_replacement(home, store_id, why)
    moved_to = install(home.catalog, disk)
    loss = CatalogLoss(
        why=why,
        moved_to=moved_to,
        saved_events=loss.saved_events,
        saved_streams=loss.saved_streams,
        truth=loss.truth,
    )
    return SqliteCatalog.open(home.catalog, store_id), loss


def _require_sound(catalog: Catalog) -> Catalog:
    """Refuse a damaged database catalog. It is never replaced: a database has backups of its own."""
    for problem in catalog.problems():
        catalog.close()
        raise CatalogCorrupt(problem, hint="restore this database from a backup: only its index can be made again here")
    return catalog


def _unusable_reason(home: StoreDirectory, store_id: str) -> str | None:
    """Return why the catalog cannot be used; None if it can."""
    try:
        catalog = SqliteCatalog.open(home.catalog, store_id)
    except (CatalogMissing, CatalogCorrupt) as error:
        return error.message
    try:
        return next(catalog.problems(), None)
    except CatalogCorrupt as error:
        return error.message
    finally:
        catalog.close()


def _prepare_replacement(home: StoreDirectory, store_id: str, why: str) -> CatalogLoss:
    """Make a complete new catalog beside the old one, with all that was saved and a record of the loss."""
    path = home.inside(f"catalog.db.{staging_name()}")
    catalog, _ = SqliteCatalog.create(path, store_id)
    events = 0
    streams: list[str] = []
    with catalog.write() as tx:
        for stream, saved in groupby(salvage_events(home.catalog, store_id), key=lambda event: event.stream):
            events += tx.streams.append(stream, 0, [Event(kind=event.kind, body=event.body) for event in saved])
            streams.append(stream)
        for digest, data in salvage_pending(home.catalog, store_id):
            tx.pending.put(digest, data)
        body = {"at": f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}", "why": why, "saved_events": events}
        tx.streams.append(STORE_STREAM, tx.streams.head(STORE_STREAM), [Event(kind=LOST, body=canonical(body))])
    truth = tuple(f"{table.name}: {table.note}" for table in catalog.tables() if table.role == "truth")
    catalog.close()
    os.replace(path, home.catalog + NEXT)
    return CatalogLoss(why=why, moved_to=None, saved_events=events, saved_streams=tuple(sorted(streams)), truth=truth)
