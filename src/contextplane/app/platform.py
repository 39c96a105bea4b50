"""The composition root: settings in, ports with their adapters out. It has no behaviour of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from contextplane.adapters.files.entries import FilePackEntries
from contextplane.adapters.files.home import FORMAT, Home, discover
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.system import SystemClock, SystemIds
from contextplane.app.settings import Settings
from contextplane.ports.catalog import Catalog
from contextplane.ports.objects import Objects
from contextplane.store.follow import follow, in_step

if TYPE_CHECKING:
    from contextplane.ports.clock import Clock, Ids
    from contextplane.ports.entries import PackEntries

__all__ = ["Platform", "opened"]


class Platform:
    """Everything a verb may need, each behind its port."""

    format = FORMAT

    def __init__(self, home: Home, store_id: str, catalog: Catalog) -> None:
        self.home = home
        self.store_id = store_id
        self.catalog = catalog
        self.clock: Clock = SystemClock()
        self.entries: PackEntries = FilePackEntries(home.packs, self.clock)
        self.ids: Ids = SystemIds()

    @cached_property
    def objects(self) -> Objects:
        """Made when first asked for: verbs that only look at the catalog do not load it."""
        from contextplane.adapters.files.objects import FileObjects

        return FileObjects(self.home.objects)


@contextmanager
def opened(settings: Settings) -> Iterator[Platform]:
    """Open the store that the settings lead to, its index in step with its packs.

    A store that the reference program made has no catalog and says so by having no store id: it is adopted here.
    """
    home = discover(settings.cwd, settings.ctx_dir)
    store_id = home.config().store_id or _adopt(home)
    platform = Platform(home, store_id, SqliteCatalog.open(home.catalog, store_id))
    try:
        if not in_step(platform.catalog, platform.entries):
            follow(platform.catalog, platform.entries, platform.objects)
        yield platform
    finally:
        platform.catalog.close()


def _adopt(home: Home) -> str:
    from contextplane.app.init import adopt

    return adopt(home)
