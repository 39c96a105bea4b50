"""The composition root: settings in, ports with their adapters out. It has no behaviour of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from contextplane.adapters.files.disk import guarded
from contextplane.adapters.files.store_dir import FORMAT, Home, StoreConfig, discover
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import BUSY_SECONDS, MEMORY
from contextplane.adapters.system import SystemClock
from contextplane.app.catalog import open_catalog
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import Catalog, CatalogReadOnly
from contextplane.ports.objects import Objects

if TYPE_CHECKING:
    from contextplane.ports.pack_entries import ExecutionEntries
    from contextplane.ports.world import Clock

__all__ = ["Platform", "blind_objects", "bring_in_step", "opened", "settle_waiting"]


class Platform:
    """Everything a verb may need, each behind its port. `adopted`: the store was another program's until now."""

    format = FORMAT

    def __init__(self, home: Home, store_id: str, catalog: Catalog, *, adopted: bool = False) -> None:
        self.home = home
        self.store_id = store_id
        self.catalog = catalog
        self.adopted = adopted
        self.clock: Clock = SystemClock()

    @cached_property
    def entries(self) -> "ExecutionEntries":
        """Made when first asked for, like the objects."""
        from contextplane.adapters.files.pack_entries import FileExecutionEntries

        return FileExecutionEntries(self.home.packs, self.home.staging, self.clock)

    @cached_property
    def objects(self) -> Objects:
        """Made when first asked for: verbs that only look at the catalog do not load it."""
        from contextplane.adapters.files.objects import FileObjects

        return FileObjects(self.home.objects)


@contextmanager
def opened(settings: Settings, *, following: bool = True) -> Iterator[Platform]:
    """Open the store that the settings lead to; `following`: its index brought in step with its packs.

    A store that the reference program made has no catalog and says so by having no store id: it is adopted here, or
    where nothing can be written, indexed in memory for as long as it is open.
    """
    home = discover(settings.cwd, settings.ctx_dir)
    config = home.config()
    with guarded(home.guard, alone=False, patience=BUSY_SECONDS):
        platform = _platform(home, config, settings.database_url)
        try:
            settle_waiting(platform)
            if following:
                _follow(platform)
            yield platform
        finally:
            platform.catalog.close()


def settle_waiting(platform: Platform) -> None:
    """Make files of the small objects that wait in the catalog. Where that fails, they wait on: nothing is lost."""
    with suppress(ContextPlaneError):
        with platform.catalog.read() as view:
            waiting = view.pending.count()
        if waiting:
            from contextplane.handoff.storage import settle

            settle(platform.catalog, platform.objects)


def _follow(platform: Platform) -> None:
    from contextplane.store.find import in_step

    if not in_step(platform.catalog, platform.entries):
        bring_in_step(platform)


def bring_in_step(platform: Platform) -> None:
    """Index what came since last time, on disk or in memory."""
    from contextplane.store.index import follow

    try:
        follow(platform.catalog, platform.entries, platform.objects)
    except CatalogReadOnly:
        if not isinstance(platform.catalog, SqliteCatalog):
            raise  # a database is not copied into memory
        # Packs came to a store that cannot be written: they are indexed in memory, for as long as it is open.
        on_disk, platform.catalog = platform.catalog, platform.catalog.copy()
        on_disk.close()
        follow(platform.catalog, platform.entries, platform.objects)


def _platform(home: Home, config: StoreConfig, database_url: str | None) -> Platform:
    if config.store_id:
        return Platform(home, config.store_id, open_catalog(home, config, database_url))
    if not os.access(home.path, os.W_OK):
        return Platform(home, "", SqliteCatalog.create(MEMORY, "")[0])
    from contextplane.app.init import adopt

    store_id = adopt(home, database_url)
    return Platform(home, store_id, open_catalog(home, home.config(), database_url), adopted=True)


def blind_objects(settings: Settings) -> Objects:
    """The objects of a store by themselves, when its catalog cannot be used."""
    from contextplane.adapters.files.objects import FileObjects

    return FileObjects(discover(settings.cwd, settings.ctx_dir).objects)
