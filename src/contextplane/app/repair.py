"""Opening a store whose catalog is gone or damaged, at the price of what cannot be read any more, which is named."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

from contextplane.adapters.files.home import Home, discover
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.salvage import salvage, set_aside
from contextplane.adapters.system import SystemClock
from contextplane.app.platform import Platform
from contextplane.app.settings import Settings
from contextplane.model.canonical import canonical
from contextplane.model.value import Value
from contextplane.ports.catalog import CatalogCorrupt, CatalogMissing, Event, Transaction
from contextplane.store.rebuild import Rebuilt, rebuild

__all__ = ["Loss", "Repaired", "repaired"]

STORE_STREAM = "store"


class Loss(Value, frozen=True):
    """What happened to a catalog that could not be opened. Events not counted here are lost for ever."""

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
    """Open a store with its index made anew; where the catalog itself cannot be opened, begin a new one.

    A new catalog starts with an event that says so: whoever relies on "this never happened before" must look for it.
    """
    home = discover(settings.cwd, settings.ctx_dir)
    store_id = home.config().store_id
    catalog, loss = _catalog(home, store_id)
    platform = Platform(home, store_id, catalog)
    try:
        rebuilt = rebuild(platform.catalog, platform.entries, platform.objects)
        yield Repaired(platform=platform, rebuilt=rebuilt, loss=loss)
    finally:
        catalog.close()


def _catalog(home: Home, store_id: str) -> tuple[SqliteCatalog, Loss | None]:
    try:
        catalog = SqliteCatalog.open(home.catalog, store_id)
        problems = list(catalog.problems())
    except (CatalogMissing, CatalogCorrupt) as error:
        return _begun_anew(home, store_id, error.message)
    if not problems:
        return catalog, None
    catalog.close()
    return _begun_anew(home, store_id, problems[0])


def _begun_anew(home: Home, store_id: str, why: str) -> tuple[SqliteCatalog, Loss]:
    events = salvage(home.catalog)
    moved_to = set_aside(home.catalog)
    catalog, _ = SqliteCatalog.create(home.catalog, store_id)
    streams = tuple(sorted({event.stream for event in events}))
    truth = tuple(f"{table.name}: {table.note}" for table in catalog.tables() if table.role == "truth")
    loss = Loss(why=why, moved_to=moved_to, saved_events=len(events), saved_streams=streams, truth=truth)
    with catalog.write() as tx:
        for stream, saved in groupby(events, key=lambda event: event.stream):
            tx.streams.append(stream, 0, [Event(kind=event.kind, body=event.body) for event in saved])
        _note(tx, loss)
    return catalog, loss


def _note(tx: Transaction, loss: Loss) -> None:
    body = {
        "at": SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "why": loss.why,
        "saved_events": loss.saved_events,
        "saved_streams": len(loss.saved_streams),
    }
    tx.streams.append(STORE_STREAM, tx.streams.head(STORE_STREAM), [Event(kind="catalog_lost", body=canonical(body))])
