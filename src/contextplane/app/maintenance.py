"""Maintenance of a store: checks it with its registry and its recordings, and collects garbage."""

from collections.abc import Generator, Iterator
from datetime import timedelta
from itertools import chain

from contextplane.app.execution.record import recording_comparison
from contextplane.app.platform import Platform, objects_without_catalog, update_index
from contextplane.app.registry.fsck import registry_comparison, registry_retention
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import CatalogCorrupt, CatalogMissing
from contextplane.store.damage import DAMAGE, FsckFinding
from contextplane.store.fsck import Progress, fsck, fsck_objects
from contextplane.store.gc import GcResult, gc
from contextplane.store.status import store_contents

__all__ = [
    "CATALOG_ERRORS",
    "DAMAGE",
    "FsckFinding",
    "GcResult",
    "check_objects",
    "check_store",
    "collect_garbage",
    "expected_objects",
]


CATALOG_ERRORS = (CatalogMissing, CatalogCorrupt)
"""The errors of a store whose catalog cannot be used: only its objects can be checked."""


def expected_objects(platform: Platform) -> int:
    """Return the number of recorded objects. A store that was never indexed is indexed first."""
    with platform.catalog.read() as view:
        is_indexed = next(view.objects.roots(), None) is not None
    if not is_indexed:
        update_index(platform)  # adopted just now, or never used: there is nothing to compare
    return store_contents(platform.catalog).objects


def check_store(platform: Platform, seen: Progress) -> Generator[FsckFinding, None, None]:
    """Check a store. Close the generator while the catalog is open."""
    others = [registry_comparison(platform), recording_comparison(platform)]
    return fsck(platform.catalog, platform.entries, platform.objects, seen, others)


def check_objects(settings: Settings, error: ContextPlaneError, seen: Progress) -> Iterator[FsckFinding]:
    """Check the objects alone, because of this error of the catalog, which is the first finding."""
    first = FsckFinding(state="corrupt", what="catalog", why=f"{error.message}; {error.hint}")
    return chain([first], fsck_objects(objects_without_catalog(settings), seen))


def collect_garbage(platform: Platform, settings: Settings, *, grace: timedelta, dry_run: bool) -> GcResult:
    """Remove what is older than `grace` and not referred to; `dry_run`: only find it."""
    return gc(
        platform.catalog,
        platform.entries,
        platform.objects,
        older_than=platform.clock.now() - grace,
        dry_run=dry_run,
        handoff_grace_seconds=settings.handoff.grace_seconds,
        others=[recording_comparison(platform), registry_retention(platform)],
    )
