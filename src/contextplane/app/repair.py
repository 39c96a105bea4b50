"""Opening a store whose catalog is gone or damaged, at the price of what cannot be read any more, which is named."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

from contextplane.adapters.files.disk import Disk, fresh_name, guarded
from contextplane.adapters.files.store_dir import IN_DATABASE, Home, discover
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import BUSY_SECONDS
from contextplane.adapters.sqlite.salvage import NEXT, install, saved_events, saved_pending, unfinished_install
from contextplane.adapters.system import SystemClock, SystemIds
from contextplane.app.catalog import open_catalog
from contextplane.app.execution.record import desk_of
from contextplane.app.init import adopt
from contextplane.app.platform import Platform, settle_waiting
from contextplane.app.registry.fsck import registry_indexing
from contextplane.app.settings import Settings
from contextplane.handoff.storage import ensure_page_key
from contextplane.model.catalog import Event
from contextplane.model.json.canonical import canonical
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, CatalogCorrupt, CatalogMissing
from contextplane.record.recorder import keep_unfinished
from contextplane.store.rebuild import Rebuilt, rebuild
from contextplane.store.status import LOST, STORE_STREAM

__all__ = ["Loss", "Repaired", "repaired"]


class Loss(Value, frozen=True):
    """What happened to a catalog that could not be used. Events not counted here are lost for ever."""

    why: str
    moved_to: str | None
    saved_events: int
    saved_streams: tuple[str, ...]
    truth: tuple[str, ...]


class Repaired(Value, frozen=True):
    """An opened store with a new index, and what was lost on the way, if anything."""

    platform: Platform
    rebuilt: Rebuilt
    loss: Loss | None


@contextmanager
def repaired(settings: Settings) -> Iterator[Repaired]:
    """Open a store with its index made anew; where the catalog itself cannot be used, begin a new one.

    Nobody else has the catalog open meanwhile: what another process wrote to the old one would be lost.
    """
    home = discover(settings.cwd, settings.ctx_dir)
    store_id = home.config().store_id or adopt(home, settings.database_url)
    with guarded(home.guard, alone=True, patience=BUSY_SECONDS):
        catalog, loss = _catalog(home, settings.database_url)
        platform = Platform(home, store_id, catalog)
        try:
            settle_waiting(platform)
            rebuilt = rebuild(
                platform.catalog,
                platform.entries,
                platform.objects,
                streams_lost=loss is not None,
                others=[registry_indexing(platform)],
            )
            if loss is not None and rebuilt.handoffs:
                _have_page_key(platform.catalog)
            keep_unfinished(desk_of(platform))
            yield Repaired(platform=platform, rebuilt=rebuilt, loss=loss)
        finally:
            catalog.close()


def _have_page_key(catalog: Catalog) -> None:
    """A store with packs has a key for page tokens; those that were signed with a lost one are refused."""
    with catalog.write() as tx:
        ensure_page_key(tx, SystemIds())


def _catalog(home: Home, database_url: str | None) -> tuple[Catalog, Loss | None]:
    config, disk = home.config(), Disk()
    if database_url is not None or config.catalog == IN_DATABASE:
        return _sound(open_catalog(home, config, database_url)), None
    store_id = config.store_id
    if unfinished_install(home.catalog):
        install(home.catalog, disk)
    why = _unusable(home, store_id)
    if why is None:
        return SqliteCatalog.open(home.catalog, store_id), None
    loss = _prepare(home, store_id, why)
    moved_to = install(home.catalog, disk)
    loss = Loss(
        why=why,
        moved_to=moved_to,
        saved_events=loss.saved_events,
        saved_streams=loss.saved_streams,
        truth=loss.truth,
    )
    return SqliteCatalog.open(home.catalog, store_id), loss


def _sound(catalog: Catalog) -> Catalog:
    """A database has backups of its own: what is wrong with it is refused here, never replaced."""
    for problem in catalog.problems():
        catalog.close()
        raise CatalogCorrupt(problem, hint="restore this database from a backup: only its index can be made anew here")
    return catalog


def _unusable(home: Home, store_id: str) -> str | None:
    """Why the catalog cannot be used, None when it can."""
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


def _prepare(home: Home, store_id: str, why: str) -> Loss:
    """Make a complete new catalog beside the old one, with all that could be saved and a word on the rest."""
    path = home.inside(f"catalog.db.{fresh_name()}")
    catalog, _ = SqliteCatalog.create(path, store_id)
    events = 0
    streams: list[str] = []
    with catalog.write() as tx:
        for stream, saved in groupby(saved_events(home.catalog, store_id), key=lambda event: event.stream):
            events += tx.streams.append(stream, 0, [Event(kind=event.kind, body=event.body) for event in saved])
            streams.append(stream)
        for digest, data in saved_pending(home.catalog, store_id):
            tx.pending.put(digest, data)
        body = {"at": f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}", "why": why, "saved_events": events}
        tx.streams.append(STORE_STREAM, tx.streams.head(STORE_STREAM), [Event(kind=LOST, body=canonical(body))])
    truth = tuple(f"{table.name}: {table.note}" for table in catalog.tables() if table.role == "truth")
    catalog.close()
    os.replace(path, home.catalog + NEXT)
    return Loss(why=why, moved_to=None, saved_events=events, saved_streams=tuple(sorted(streams)), truth=truth)
