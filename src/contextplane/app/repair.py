"""Opening a store whose catalog is gone or damaged, at the price of what cannot be read any more, which is named."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

from contextplane.adapters.files.disk import Disk, fresh_name
from contextplane.adapters.files.guard import guarded
from contextplane.adapters.files.home import Home, discover
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connect import BUSY_SECONDS
from contextplane.adapters.sqlite.salvage import NEXT, install, saved_events, unfinished_install
from contextplane.adapters.system import SystemClock
from contextplane.app.init import adopt
from contextplane.app.platform import Platform
from contextplane.app.settings import Settings
from contextplane.model.canonical import canonical
from contextplane.model.value import Value
from contextplane.ports.catalog import CatalogCorrupt, CatalogMissing, Event
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
    store_id = home.config().store_id or adopt(home)
    with guarded(home.guard, alone=True, patience=BUSY_SECONDS):
        catalog, loss = _catalog(home, store_id)
        platform = Platform(home, store_id, catalog)
        try:
            rebuilt = rebuild(platform.catalog, platform.entries, platform.objects)
            yield Repaired(platform=platform, rebuilt=rebuilt, loss=loss)
        finally:
            catalog.close()


def _catalog(home: Home, store_id: str) -> tuple[SqliteCatalog, Loss | None]:
    disk = Disk()
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
        body = {"at": f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}", "why": why, "saved_events": events}
        tx.streams.append(STORE_STREAM, tx.streams.head(STORE_STREAM), [Event(kind=LOST, body=canonical(body))])
    truth = tuple(f"{table.name}: {table.note}" for table in catalog.tables() if table.role == "truth")
    catalog.close()
    os.replace(path, home.catalog + NEXT)
    return Loss(why=why, moved_to=None, saved_events=events, saved_streams=tuple(sorted(streams)), truth=truth)
