"""The platform: the ports of an opened store, each with its adapter. It has no behaviour of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from contextplane.adapters.files.disk import hold_lock, hold_turn
from contextplane.adapters.files.store_dir import FORMAT, StoreConfig, StoreDirectory, discover_store
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import BUSY_SECONDS, MEMORY
from contextplane.adapters.system import SystemClock
from contextplane.app.catalog import open_catalog
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import Catalog, CatalogReadOnly
from contextplane.ports.objects import Objects

if TYPE_CHECKING:
    from contextplane.adapters.files.client_state import ClientState
    from contextplane.ports.pack_entries import ExecutionEntries
    from contextplane.ports.world import Clock
    from contextplane.trust.trust_root import TrustRoot

__all__ = [
    "Platform",
    "ensure_index_current",
    "flush_pending_objects",
    "objects_without_catalog",
    "open_platform",
    "update_index",
]

_TURN_SECONDS = 20.0


class Platform:
    """All that a verb may need of a store, each behind its port.

    `adopted`: the store belonged to another program until this process opened it.
    """

    format = FORMAT

    def __init__(
        self,
        home: StoreDirectory,
        store_id: str,
        catalog: Catalog,
        *,
        adopted: bool = False,
        settings: Settings | None = None,
    ) -> None:
        self.home = home
        self._settings = settings
        self.store_id = store_id
        self.catalog = catalog
        self.adopted = adopted
        self.clock: Clock = SystemClock()
        self.takes_turns = True
        """Whether acts wait for each other; not if a signer may wait for a person or a device meanwhile."""

    @cached_property
    def client_state(self) -> "ClientState":
        """What this client remembers of the store, outside of it."""
        from contextplane.adapters.files.client_state import ClientState

        return ClientState(None if self._settings is None else self._settings.state_dir, self.home.path)

    @cached_property
    def trust_root(self) -> "TrustRoot | None":
        """What the user of this client trusts without having seen it here; None if they named nothing."""
        from contextplane.app.trust_root import load_trust_root

        return None if self._settings is None else load_trust_root(self._settings, self.home.path)

    @cached_property
    def entries(self) -> "ExecutionEntries":
        """The registered packs. Created on first use, like the objects."""
        from contextplane.adapters.files.pack_entries import FileExecutionEntries

        return FileExecutionEntries(self.home.packs, self.home.staging, self.clock)

    @contextmanager
    def take_turn(self) -> Iterator[None]:
        """Act while other processes on this machine that take turns wait, for a limited time."""
        if not self.takes_turns:
            yield
            return
        self.takes_turns = False  # within the block it is ours
        try:
            with hold_turn(self.home.path, timeout=_TURN_SECONDS):
                yield
        finally:
            self.takes_turns = True

    @cached_property
    def objects(self) -> Objects:
        """The object store. Created on first use: verbs that only read the catalog do not load it."""
        from contextplane.adapters.files.objects import FileObjects

        return FileObjects(self.home.objects)


@contextmanager
def open_platform(settings: Settings, *, following: bool = True) -> Iterator[Platform]:
    """Open the store that the settings lead to; `following`: bring its index up to date with its packs.

    A store that the reference program made has no store id, and so no catalog. It is adopted here, or indexed in
    memory for as long as it is open if nothing can be written.
    """
    home = discover_store(settings.cwd, settings.ctx_dir, sudo_uid=settings.sudo_uid)
    config = home.config()
    with hold_lock(home.catalog_lock, exclusive=False, timeout=BUSY_SECONDS):
        platform = _make_platform(home, config, settings)
        try:
            flush_pending_objects(platform)
            if following:
                ensure_index_current(platform)
            yield platform
        finally:
            platform.catalog.close()


def flush_pending_objects(platform: Platform) -> None:
    """Write the small objects that are pending in the catalog to files. On failure they stay pending."""
    with suppress(ContextPlaneError):
        with platform.catalog.read() as view:
            pending = view.pending.count()
        if pending:
            from contextplane.store.event_stream import flush_pending

            flush_pending(platform.catalog, platform.objects)


def ensure_index_current(platform: Platform) -> None:
    """Index the packs that were added since last time. It costs one stat if there are none."""
    from contextplane.store.find import index_is_current

    if not index_is_current(platform.catalog, platform.entries):
        update_index(platform)


def update_index(platform: Platform) -> None:
    """Index the packs that were added since last time: on disk, or in memory if the catalog is read-only."""
    from contextplane.store.index import catch_up

    try:
        catch_up(platform.catalog, platform.entries, platform.objects)
    except CatalogReadOnly:
        if not isinstance(platform.catalog, SqliteCatalog):
            raise  # a database is not copied into memory
        # New packs in a store that cannot be written are indexed in memory, for as long as it is open.
        on_disk, platform.catalog = platform.catalog, platform.catalog.copy()
        on_disk.close()
        catch_up(platform.catalog, platform.entries, platform.objects)


def _make_platform(home: StoreDirectory, config: StoreConfig, settings: Settings) -> Platform:
    database_url = settings.database_url
    if config.store_id:
        return Platform(home, config.store_id, open_catalog(home, config, database_url), settings=settings)
    if not os.access(home.path, os.W_OK):
        return Platform(home, "", SqliteCatalog.create(MEMORY, "")[0], settings=settings)
    from contextplane.app.init import adopt

    store_id = adopt(home, database_url)
    catalog = open_catalog(home, home.config(), database_url)
    return Platform(home, store_id, catalog, adopted=True, settings=settings)


def objects_without_catalog(settings: Settings) -> Objects:
    """Open only the objects of a store, for when its catalog cannot be used."""
    from contextplane.adapters.files.objects import FileObjects

    return FileObjects(discover_store(settings.cwd, settings.ctx_dir, sudo_uid=settings.sudo_uid).objects)
