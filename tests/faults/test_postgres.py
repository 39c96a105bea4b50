"""The catalog in PostgreSQL with many writers at once, killed writers, lost connections and a server that restarts."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from contextplane.adapters.postgres.catalog import PostgresCatalog
from contextplane.adapters.postgres.connection import connect
from contextplane.model.catalog import Event
from contextplane.ports.catalog import CatalogBusy, CatalogFailed
from tests.faults.postgres_children import EACH, RACES, WRITERS, start
from tests.postgres import a_store_id, own_server, shared_url

EVENT = Event(kind="counted", body=b"1")


@pytest.fixture
def store_id() -> str:
    catalog, store_id = PostgresCatalog.create(shared_url(), a_store_id())
    catalog.close()
    return store_id


@pytest.fixture
def catalog(store_id: str) -> Iterator[PostgresCatalog]:
    with closing(PostgresCatalog.open(shared_url(), store_id)) as catalog:
        yield catalog


def cut(catalog: PostgresCatalog) -> None:
    """End the connection from the server's side."""
    with closing(connect(shared_url())) as db:
        assert db.execute("SELECT pg_terminate_backend(%s, 5000)", (catalog._db.info.backend_pid,)).fetchone() == (
            True,
        )


def head(catalog: PostgresCatalog, stream: str = "s") -> int:
    with catalog.read() as view:
        return view.streams.head(stream)


def bodies(catalog: PostgresCatalog, stream: str) -> list[int]:
    with catalog.read() as view:
        events = list(view.streams.read(stream))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [int(event.body) for event in events]


def test_sixteen_writers_at_once_lose_nothing_and_exactly_one_wins_each_place(
    catalog: PostgresCatalog, store_id: str
) -> None:
    with start("write_at_once", shared_url(), store_id) as child:
        out, err = child.communicate()
    assert (err.decode(), child.returncode) == ("", 0)
    won = sorted(tuple(map(int, line.split())) for line in out.splitlines())
    assert [race for race, _ in won] == list(range(RACES))
    assert bodies(catalog, "race") == [n for _, n in won]
    assert sorted(bodies(catalog, "shared")) == list(range(WRITERS * EACH))
    for n in range(WRITERS):
        assert bodies(catalog, f"own/{n}") == list(range(EACH))
    assert list(catalog.problems()) == []


def test_a_writer_that_is_killed_within_its_turn_did_nothing_and_the_next_one_goes_on(
    catalog: PostgresCatalog, store_id: str
) -> None:
    with start("hold_turn", shared_url(), store_id) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"inside\n"
        impatient = PostgresCatalog.open(shared_url(), store_id, busy_seconds=0.05)
        with closing(impatient), pytest.raises(CatalogBusy), impatient.write():
            pass
        assert head(catalog) == 0  # readers do not wait
        child.kill()
    with catalog.write() as tx:
        assert tx.streams.append("s", 0, [EVENT]) == 1


def test_two_stores_of_one_database_do_not_wait_for_each_other_and_see_nothing_of_each_other(
    catalog: PostgresCatalog,
) -> None:
    other, _ = PostgresCatalog.create(shared_url(), a_store_id(), busy_seconds=0.05)
    with closing(other), catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT])
        with other.write() as theirs:
            theirs.streams.append("s", 0, [EVENT, EVENT])
    assert head(catalog) == 1


def test_a_connection_lost_between_two_transactions_is_made_again(catalog: PostgresCatalog) -> None:
    cut(catalog)
    assert head(catalog) == 0
    cut(catalog)
    with catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT])
    assert head(catalog) == 1


def test_a_connection_lost_within_a_transaction_ends_it_and_nothing_of_it_happened(catalog: PostgresCatalog) -> None:
    with pytest.raises(CatalogFailed, match="did not happen"), catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT])
        cut(catalog)
        tx.streams.append("s", 1, [EVENT])
    with pytest.raises(CatalogFailed), catalog.read() as view:
        cut(catalog)
        view.streams.head("s")
    assert head(catalog) == 0
    with catalog.write() as tx:
        assert tx.streams.append("s", 0, [EVENT]) == 1


def test_a_connection_lost_while_committing_is_not_called_a_success_or_a_failure(catalog: PostgresCatalog) -> None:
    with pytest.raises(CatalogFailed, match="is not known"), catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT])
        cut(catalog)
    assert head(catalog) == 0


def test_a_server_that_restarts_or_is_gone_costs_no_event_that_was_acknowledged() -> None:
    with own_server() as server:
        catalog, store_id = PostgresCatalog.create(server.url, a_store_id())
        with closing(catalog):
            with catalog.write() as tx:
                tx.streams.append("s", 0, [EVENT])
            server.stop(mode="fast")
            with pytest.raises(CatalogFailed, match="out of reach"), catalog.write():
                pass
            with pytest.raises(CatalogFailed, match="out of reach"):
                PostgresCatalog.open(server.url, store_id)
            server.start()
            with catalog.write() as tx:
                assert tx.streams.append("s", 1, [EVENT]) == 2
            assert head(catalog) == 2
