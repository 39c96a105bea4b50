"""The PostgreSQL adapter beyond the laws: the schema protects itself, and foreign catalogs are refused."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.postgres.catalog import PostgresCatalog
from contextplane.adapters.postgres.connection import (
    DatabaseUrlInvalid,
    DriverConnection,
    _run_migrations,
    catalog_errors,
    connect,
    migrations,
)
from contextplane.adapters.postgres.text_search import words_in
from contextplane.adapters.sqlite import connection as sqlite_connection
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, PackRow, TextPart
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import (
    CatalogBusy,
    CatalogCorrupt,
    CatalogFailed,
    CatalogForeign,
    CatalogMissing,
    CatalogReadOnly,
    SchemaTooNew,
)
from contextplane.ports.objects import StorageFull
from contextplane.testing.laws.streams import a_digest, a_record
from tests.postgres import a_store_id, shared_url

EVENT = Event(kind="k", body=b"1")


class MadeCatalog:
    """A catalog of the test, and a connection of the server's owner to it."""

    def __init__(self, db: DriverConnection) -> None:
        self.db = db
        self.catalog, self.store_id = PostgresCatalog.create(shared_url(), a_store_id())
        self.schema = self.store_id.replace("store_", "ctx_")

    def sql(self, statement: str) -> None:
        self.db.execute(statement.replace("OURS", self.schema).encode())

    def open_refused(self, kind: type[ContextPlaneError]) -> ContextPlaneError:
        with pytest.raises(kind) as caught:
            PostgresCatalog.open(shared_url(), self.store_id)
        return caught.value


@pytest.fixture
def made() -> Iterator[MadeCatalog]:
    with closing(connect(shared_url())) as db:
        made = MadeCatalog(db)
        with closing(made.catalog):
            yield made


def test_making_it_again_keeps_what_is_there(made: MadeCatalog) -> None:
    with made.catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT])
    again, store_id = PostgresCatalog.create(shared_url(), made.store_id)
    with closing(again), again.read() as view:
        assert (store_id, view.streams.head("s")) == (made.store_id, 1)


def test_an_absent_foreign_or_newer_catalog_is_refused_and_never_made_anew(made: MadeCatalog) -> None:
    made.sql("UPDATE OURS.schema_version SET version = 99")
    assert "schema 99" in str(made.open_refused(SchemaTooNew))
    made.sql("UPDATE OURS.identity SET store_id = 'store_ffffffffffffffff'")
    made.open_refused(CatalogForeign)
    made.sql("DROP SCHEMA OURS CASCADE")
    for _ in range(2):
        assert made.schema in str(made.open_refused(CatalogMissing))
    with pytest.raises(CatalogFailed, match="not the id of a store"):
        PostgresCatalog.open(shared_url(), 'store_"; DROP SCHEMA public; --')


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE OURS.event SET body = 'other'",
        "DELETE FROM OURS.event",
        "TRUNCATE OURS.event",
        "INSERT INTO OURS.event VALUES ('s', 3, 'k', '')",
        "INSERT INTO OURS.event VALUES ('other', 2, 'k', '')",
        "INSERT INTO OURS.event VALUES ('s', 2, 'k', convert_to(repeat('x', 65537), 'UTF8'))",
    ],
)
def test_the_database_itself_refuses_to_change_remove_or_skip_an_event(made: MadeCatalog, statement: str) -> None:
    with made.catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT])
    with pytest.raises(psycopg.Error):
        made.sql(statement)
    with made.catalog.read() as view:
        assert [event.body for event in view.streams.read("s")] == [b"1"]


def test_a_schema_that_is_not_ours_and_a_gap_are_problems(made: MadeCatalog) -> None:
    with made.catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT, EVENT])
    assert list(made.catalog.problems()) == []
    made.sql("ALTER TABLE OURS.event DISABLE TRIGGER event_is_never_changed")
    made.sql("DELETE FROM OURS.event WHERE seq = 1")
    made.sql("DROP TRIGGER object_tallied ON OURS.object")
    made.sql("CREATE INDEX eavesdrop ON OURS.event (kind)")
    assert list(made.catalog.problems()) == [
        "schema: index eavesdrop is not ours",
        "schema: trigger event.event_is_never_changed was changed",
        "schema: trigger object.object_tallied is gone",
        "stream 's' has a gap",
    ]


def test_a_table_that_is_gone_is_a_corrupt_catalog(made: MadeCatalog) -> None:
    made.sql("DROP TABLE OURS.mark")
    with pytest.raises(CatalogCorrupt), made.catalog.read() as view:
        view.marks.get("m")


def test_who_may_only_read_reads_and_is_told_so_when_it_writes(made: MadeCatalog) -> None:
    role = made.schema.replace("ctx_", "reader_")
    made.sql(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA OURS TO {role}")
    made.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA OURS TO {role}")
    reader = PostgresCatalog.open(shared_url().replace("postgres@", f"{role}@"), made.store_id)
    with closing(reader):
        with reader.read() as view:
            assert view.streams.head("s") == 0
        with pytest.raises(CatalogReadOnly), reader.write() as tx:
            tx.streams.append("s", 0, [EVENT])


def test_a_statement_that_failed_unnoticed_is_not_called_a_commit(made: MadeCatalog) -> None:
    with pytest.raises(CatalogFailed, match="nothing of it happened"), made.catalog.write() as tx:
        tx.marks.put("m", "1")
        with pytest.raises(psycopg.Error):
            tx.marks.put("n", "x" * 2000)
    with made.catalog.read() as view:
        assert view.marks.get("m") is None


def test_a_transaction_within_another_is_refused_and_the_outer_one_goes_on(made: MadeCatalog) -> None:
    with made.catalog.write() as tx:
        tx.marks.put("m", "1")
        with pytest.raises(CatalogFailed, match="within another"), made.catalog.read():
            pass
        with pytest.raises(CatalogFailed, match="within another"):
            list(made.catalog.problems())
    with made.catalog.read() as view:
        assert view.marks.get("m") == "1"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.errors.DiskFull("no room"), StorageFull),
        (psycopg.errors.DeadlockDetected("two wait"), CatalogBusy),
        (psycopg.errors.DataCorrupted("a page"), CatalogCorrupt),
        (psycopg.errors.UniqueViolation("a row that is there"), CatalogCorrupt),
        (psycopg.errors.AdminShutdown("it ends"), CatalogFailed),
        (psycopg.errors.QueryCanceled("too long"), CatalogFailed),
    ],
)
def test_what_the_server_says_becomes_an_error_of_ours(error: psycopg.Error, expected: type[ContextPlaneError]) -> None:
    with pytest.raises(expected) as caught, catalog_errors("there"):
        raise error
    assert caught.value.at == "there"
    assert str(error) in caught.value.message or expected is CatalogBusy


def test_rows_without_their_pack_go_when_the_list_is_cleared(made: MadeCatalog) -> None:
    none = Timestamp(seconds=0, nanos=0)
    with made.catalog.write() as tx:
        tx.packs.add(PackRow(digest=a_digest(1), created=none, packed=none, tools=("t",)))
        tx.texts.add(a_digest(1), [TextPart(part="metadata", text="words")])
    made.sql("SET session_replication_role = replica; DELETE FROM OURS.pack")
    with made.catalog.write() as tx:
        tx.packs.clear()
    for table in ("pack_tool", "text_part"):
        query = f"SELECT count(*) FROM {made.schema}.{table}"  # noqa: S608  names of our own
        assert made.db.execute(query.encode()).fetchone() == (0,)


def test_a_database_that_keeps_no_unicode_is_refused(made: MadeCatalog) -> None:
    name = made.schema.replace("ctx_", "ascii_")
    made.sql(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(CatalogFailed, match="SQL_ASCII"):
        PostgresCatalog.create(shared_url().replace("/postgres?", f"/{name}?"), made.store_id)


def test_names_with_every_character_come_back_and_sort_by_code_point(made: MadeCatalog) -> None:
    names = ["\0", "\0\1", "\1", "\1\2", "\2", "\1\3", "a", "a\0b", "a\1b", "\ue000", "\U0001f600", "ä", "Z", "z"]
    with made.catalog.write() as tx:
        for name in names:
            tx.streams.append(name, 0, [EVENT])
    with made.catalog.read() as view:
        assert list(view.streams.names()) == sorted(names)
        assert list(view.streams.names("\1")) == ["\1", "\1\2", "\1\3"]


def test_a_long_answer_is_read_piece_by_piece_while_other_things_are_asked(made: MadeCatalog) -> None:
    with made.catalog.write() as tx:
        tx.streams.append("s", 0, [EVENT] * 1000)
    with made.catalog.read() as view:
        for n, event in enumerate(view.streams.read("s"), 1):
            assert event.seq == n
            if n % 100 == 0:
                assert view.streams.head("s") == 1000
        rows = view.streams.read("s")
        next(rows)
    with pytest.raises(CatalogFailed):
        list(rows)


def test_phrases_are_found_behind_hundreds_of_the_same_words_and_shown_in_some_words(made: MadeCatalog) -> None:
    long = "x" * 5000
    text = "order " * 400 + f"the order {long} was REFUNDED_twice, " + "more " * 400
    moment = Timestamp(seconds=0, nanos=0)
    with made.catalog.write() as tx:
        tx.packs.add(PackRow(digest=a_digest(1), created=moment, packed=moment))
        tx.texts.add(a_digest(1), [TextPart(part="a", text=text)])
    with made.catalog.read() as view:
        (hit,) = view.texts.search('"the order"', 5)
        assert hit.snippet.startswith("...order order order order \x02the order\x03 xxx")
        assert hit.snippet.endswith("more...")
        assert [bool(view.texts.search(words, 5)) for words in (long, long + "x", long[:-1], long[:-1] + "*")] == [
            True,
            False,
            False,
            True,
        ]
        assert view.texts.search("refunded_twice", 5)
        assert not view.texts.search("refunded", 5)


@given(st.text())
def test_words_lie_in_their_text_in_order_and_do_not_depend_on_case_or_accents(text: str) -> None:
    words = list(words_in(text))
    bounds = [at for word in words for at in (word.start, word.end)]
    assert bounds == sorted(bounds)
    assert all(word.text and word.start < word.end for word in words)
    for word in words:
        assert [word.text for word in words_in(text[word.start : word.end])] == [word.text]


@pytest.mark.parametrize(
    "url",
    ["mysql://user:secret@host/db", "catalog.db", "postgresql://user:secret%zz@host/db", "postgresql://h?secret=1"],
)
def test_an_address_that_is_none_is_refused_and_never_repeated(url: str) -> None:
    with pytest.raises(DatabaseUrlInvalid) as caught:
        PostgresCatalog.open(url, a_store_id())
    assert "secret" not in f"{caught.value} {caught.value.__cause__}"


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(CatalogFailed) as caught:
        PostgresCatalog.open("postgresql://user:secret@/db?host=/nowhere&port=5", a_store_id())
    assert caught.value.at == "postgresql:///nowhere:5/db"
    assert "secret" not in str(caught.value)


def test_edges_of_an_earlier_schema_are_there_after_it_was_opened() -> None:
    store_id, digest, other = a_store_id(), a_digest(1), a_digest(2)
    schema = store_id.replace("store_", "ctx_")
    with closing(connect(shared_url())) as db:
        db.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}, pg_temp".encode())
        _run_migrations(db, 0, 4)
        db.execute("INSERT INTO identity VALUES (%s)", (store_id,))
        for n, (source, target) in enumerate([(digest, other), (other, digest), (other, other)]):
            db.execute("INSERT INTO edge VALUES (%s, %s, 'r', %s)", (source.hex, n + 1, target.hex))
    with closing(PostgresCatalog.open(shared_url(), store_id)) as catalog:
        with catalog.write() as tx:
            tx.objects.link(digest, "r", other)
            tx.objects.link(digest, "r", digest)
        with catalog.read() as view:
            assert view.objects.targets(digest) == (("r", other), ("r", digest))
            assert view.objects.targets(other) == (("r", digest), ("r", other))
            assert set(view.objects.referrers(other)) == {str(digest), str(other)}
        assert not list(catalog.problems())


def test_both_adapters_have_the_same_migrations() -> None:
    assert [(step.number, step.name) for step in migrations()] == [
        (step.number, step.name) for step in sqlite_connection.migrations()
    ]


def test_many_blobs_at_once_are_tallied_whatever_was_known_of_them(made: MadeCatalog) -> None:
    with made.catalog.write() as tx:
        tx.objects.record(a_record(1, kind="execution_pack", size=3))
        tx.objects.record(a_record(2, size=3))
        tx.objects.record_blobs((a_digest(n % 5000), n) for n in range(10_000))
        assert tx.objects.tallies() == tx.objects.recount()
        assert tx.objects.lookup(a_digest(1)) == a_record(1, kind="execution_pack", size=3)
        assert tx.objects.lookup(a_digest(2)) == a_record(2, size=5002)
        tx.objects.forget(a_digest(3))
        assert tx.objects.tallies() == tx.objects.recount()
        tx.objects.unlink_all("packs/")
        assert tx.objects.tallies() == tx.objects.recount()
