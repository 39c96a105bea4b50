"""A collector that runs between a put and the reference to it: it is refused, and takes nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.files.pack_entries import FileExecutionEntries
from contextplane.adapters.sqlite.catalog import SqliteCatalog, SqliteTransaction
from contextplane.app.execution.archive import export_packs, import_packs
from contextplane.app.execution.pack import pack_log
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, Durability, IndexedObject
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectsInUse
from contextplane.store.damage import DAMAGE, FsckFinding
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from tests.surfaces.archives import log, store_in
from tests.unit.handoff.repositories import document, place_in, section

FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)
MANY = 200  # enough to be synced as a whole


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Platform]:
    with store_in(tmp_path / "here") as platform:
        yield platform


class Collector:
    """Another process that collects all it can whenever it is called, without waiting."""

    def __init__(self, platform: Platform) -> None:
        self._settings = Settings(cwd=str(Path(platform.home.path).parent))
        self.refused = 0

    def __call__(self) -> None:
        with open_platform(self._settings) as platform:
            try:
                gc(
                    platform.catalog,
                    platform.entries,
                    platform.objects,
                    older_than=FAR_AHEAD,
                    dry_run=False,
                    patience=0,
                )
            except ObjectsInUse:
                self.refused += 1


class EntriesAfter(FileExecutionEntries):
    """Entries that call `act` before one is added."""

    def __init__(self, platform: Platform, act: Callable[[], None]) -> None:
        super().__init__(platform.home.packs, platform.home.staging, platform.clock)
        self._act = act

    def add(self, digest: Digest, copy: bytes) -> bool:
        self._act()
        return super().add(digest, copy)


class CatalogAfter(SqliteCatalog):
    """A catalog that calls `act` before an event is written."""

    act: Callable[[], None]

    @contextmanager
    def write(self, *, survives: Durability = "power_cut") -> Iterator[SqliteTransaction]:
        if survives == "power_cut":
            self.act()
        with super().write(survives=survives) as tx:
            yield tx


class DiskAfter(Disk):
    """A disk that calls `act` before a file moves into its place."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def replace(self, source: str, target: str) -> None:
        self._act()
        super().replace(source, target)


def damage(platform: Platform) -> list[FsckFinding]:
    findings = fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None)
    return [finding for finding in findings if finding.state in DAMAGE]


def test_what_was_just_packed_is_not_collected_before_it_is_registered(here: Platform) -> None:
    collector = Collector(here)
    here.entries = EntriesAfter(here, collector)
    assert pack_log(here, log("report"), root=".").new
    assert collector.refused == 1
    assert damage(here) == []
    collector()
    assert (collector.refused, damage(here)) == (1, [])


def test_what_was_just_imported_is_not_collected_before_it_is_registered(here: Platform, tmp_path: Path) -> None:
    file = str(tmp_path / "run.tar")
    parent = pack_log(here, log("first"), root=".").digest
    export_packs(here, [pack_log(here, log("second"), root=".", parent=parent).digest], file)
    with store_in(tmp_path / "there") as there:
        collector = Collector(there)
        there.entries = EntriesAfter(there, collector)
        assert len(import_packs(there, file).new_packs) == 2
        assert collector.refused == 2
        assert damage(there) == []


@pytest.mark.parametrize("count", [1, MANY])
def test_what_was_there_before_is_not_collected_while_it_is_packed_again(here: Platform, count: int) -> None:
    contents = [f"there before {n}" for n in range(count)]
    for content in contents:
        digest = here.objects.put(content.encode())
        with here.catalog.write(survives="crash") as tx:
            tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=len(content), traced=True))
    collector = Collector(here)
    here.objects = FileObjects(here.home.objects, DiskAfter(collector))
    steps = [{"type": "reasoning", "output": content} for content in contents]
    pack_log(here, log("report", steps=steps), root=".")
    assert collector.refused > 0
    assert damage(here) == []


def test_a_large_revision_is_not_collected_before_its_event_is_written(tmp_path: Path) -> None:
    with place_in(tmp_path) as place:
        collector = Collector(place.platform)
        catalog = CatalogAfter.open(place.platform.home.catalog, place.platform.store_id)
        assert isinstance(catalog, CatalogAfter)
        catalog.act = collector
        place.platform.catalog.close()
        place.platform.catalog = catalog
        # Longer than what waits in the catalog: it is an object before an event speaks of it.
        place.repository_during(lambda: None).write(document(section("scope", "x" * 100_000)))
        assert collector.refused == 1
        assert place.damage() == []


def test_collecting_goes_on_when_the_batch_is_left(here: Platform) -> None:
    with here.objects.batch() as batch:
        orphan = batch.put(b"orphan")
        with here.catalog.write(survives="crash") as tx:
            tx.objects.record(IndexedObject(digest=orphan, kind=BLOB, size=6, traced=True))
        batch.commit()
        Collector(here)()
        assert here.objects.has(orphan)
    Collector(here)()
    assert not here.objects.has(orphan)
