"""The composition root: settings in, ports with their adapters out. It has no behaviour of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from contextplane.adapters.files.entries import FileExecutionEntries
from contextplane.adapters.files.guard import guarded
from contextplane.adapters.files.home import FORMAT, Home, discover
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connect import BUSY_SECONDS, MEMORY
from contextplane.adapters.system import SystemClock
from contextplane.app.settings import Settings
from contextplane.ports.catalog import CatalogReadOnly
from contextplane.ports.objects import Objects
from contextplane.store.in_step import in_step

if TYPE_CHECKING:
    from contextplane.ports.clock import Clock
    from contextplane.ports.entries import ExecutionEntries

__all__ = ["Platform", "bring_in_step", "opened"]


class Platform:
    """Everything a verb may need, each behind its port. `adopted`: the store was another program's until now."""

    format = FORMAT

    def __init__(self, home: Home, store_id: str, catalog: SqliteCatalog, *, adopted: bool = False) -> None:
        self.home = home
        self.store_id = store_id
        self.catalog = catalog
        self.adopted = adopted
        self.clock: Clock = SystemClock()
        self.entries: ExecutionEntries = FileExecutionEntries(home.packs, home.staging, self.clock)

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
    store_id = home.config().store_id
    with guarded(home.guard, alone=False, patience=BUSY_SECONDS):
        platform = _platform(home, store_id)
        try:
            if following and not in_step(platform.catalog, platform.entries):
                bring_in_step(platform)
            yield platform
        finally:
            platform.catalog.close()


def bring_in_step(platform: Platform) -> None:
    """Index what came since last time, on disk or in memory."""
    from contextplane.store.follow import follow

    try:
        follow(platform.catalog, platform.entries, platform.objects)
    except CatalogReadOnly:
        # Packs came to a store that cannot be written: they are indexed in memory, for as long as it is open.
        on_disk, platform.catalog = platform.catalog, platform.catalog.copy()
        on_disk.close()
        follow(platform.catalog, platform.entries, platform.objects)


def _platform(home: Home, store_id: str) -> Platform:
    if store_id:
        return Platform(home, store_id, SqliteCatalog.open(home.catalog, store_id))
    if not os.access(home.path, os.W_OK):
        return Platform(home, "", SqliteCatalog.create(MEMORY, "")[0])
    from contextplane.app.init import adopt

    store_id = adopt(home)
    return Platform(home, store_id, SqliteCatalog.open(home.catalog, store_id), adopted=True)
