"""Eight threads of one process use one store, on both databases: each has its own platform, and no write is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import contextplane
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import MEMORY
from contextplane.app import store_access
from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.app.store_access import Store
from contextplane.ports.catalog import CatalogFailed
from contextplane.testing.laws.streams import run_in_threads
from tests.postgres import shared_url

THREADS, ROUNDS = 8, 4


@pytest.fixture(params=["sqlite", "postgres"])
def store_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    settings = Settings(cwd=str(tmp_path), database_url=shared_url() if request.param == "postgres" else None)
    init(settings)
    return settings


def log_of(thread: int, number: int) -> bytes:
    log = {
        "model": {"identifier": "model-x"},
        "system_prompt": "You are careful.",
        "outputs": [{"name": "report.md", "content": f"thread {thread}, run {number}"}],
        "environment": {"os": "linux", "runtime": "python3"},
    }
    return msgspec.json.encode(log)


def test_eight_threads_write_and_read_one_store_and_lose_nothing(store_settings: Settings) -> None:
    refs: dict[tuple[int, int], str] = {}
    with Store(store_settings) as store:

        def work(thread: int) -> None:
            for number in range(ROUNDS):
                result = pack_log(store.platform, log_of(thread, number), root=store_settings.cwd)
                refs[thread, number] = f"ctx://{result.digest.hex}"
                assert contextplane.verify(store, refs[thread, number]).answer == "verified"
                assert contextplane.diff(store, refs[thread, 0], refs[thread, number]).a.hex in refs[thread, 0]

        run_in_threads(work, THREADS)
        assert len(set(refs.values())) == THREADS * ROUNDS
        with store.platform.catalog.read() as view:
            assert {f"ctx://{digest.hex}" for digest in view.packs.digests()} == set(refs.values())


def test_every_thread_has_its_own_platform_and_keeps_it(store_settings: Settings) -> None:
    platforms: dict[int, Platform] = {}
    with Store(store_settings) as store:

        def work(thread: int) -> None:
            platforms[thread] = store.platform
            assert platforms[thread] is store.platform

        run_in_threads(work, THREADS)
        assert len({*platforms.values(), store.platform}) == THREADS + 1


def test_the_platforms_of_threads_that_ended_are_closed(
    store_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Platform] = []

    @contextmanager
    def open_and_list(settings: Settings) -> Iterator[Platform]:
        with open_platform(settings) as platform:
            opened.append(platform)
            yield platform
        opened.remove(platform)

    monkeypatch.setattr(store_access, "open_platform", open_and_list)
    with Store(store_settings) as store:

        def work(_: int) -> None:
            assert store.store_id

        for _ in range(3):
            run_in_threads(work, 1)
        assert len(opened) == 2  # of this thread, and of the last one that ended
        with store.platform.catalog.read() as view:
            assert view.streams.head("s") == 0
    assert not opened


def test_a_closed_store_opens_no_platform(store_settings: Settings) -> None:
    with Store(store_settings) as store:
        assert store.store_id
    with pytest.raises(RuntimeError, match="the store is closed"):
        _ = store.platform


def test_a_catalog_in_memory_is_closed_by_another_thread_too() -> None:
    catalog, _ = SqliteCatalog.create(MEMORY, "store_0123456789abcdef")
    run_in_threads(lambda _: catalog.close(), 1)


def test_a_catalog_that_another_thread_closes_stays_open_until_its_transaction_ends(tmp_path: Path) -> None:
    catalog, _ = SqliteCatalog.create(str(tmp_path / "catalog.db"), "store_0123456789abcdef")
    with catalog.write() as tx:
        run_in_threads(lambda _: catalog.close(), 1)
        tx.marks.put("mark", "here")
    with pytest.raises(CatalogFailed, match="the catalog is closed"), catalog.read():
        pass
    reopened = SqliteCatalog.open(str(tmp_path / "catalog.db"), "store_0123456789abcdef")
    with reopened.read() as view:
        assert view.marks.get("mark") == "here"
    reopened.close()
