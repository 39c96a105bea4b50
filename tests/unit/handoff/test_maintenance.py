"""The care of the store for handoff packs: check, rebuild and collect."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from contextplane.app.platform import open_platform
from contextplane.app.repair import open_repaired
from contextplane.app.settings import Settings
from contextplane.handoff.errors import HandoffNotFound, HandoffUnreadable
from contextplane.model.catalog import Event, IndexedObject
from contextplane.model.execution.references import EXECUTION_PACK
from contextplane.model.handoff import stream_name
from contextplane.model.ids import Digest
from contextplane.store.gc import GcBlocked, GcResult, gc
from contextplane.store.rebuild import rebuild
from tests.unit.handoff.repositories import Place, document, place_in, section


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_in(tmp_path) as place:
        yield place


def collect(place: Place, *, dry_run: bool = False, grace: timedelta = timedelta(0)) -> GcResult:
    platform = place.platform
    limit = place.clock.now() - grace
    return gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=dry_run)


def rebuilt(place: Place) -> None:
    rebuild(place.platform.catalog, place.platform.entries, place.platform.objects)


# --- check and rebuild ------------------------------------------------------------------------------------------------


def test_a_rebuild_gives_the_same_list_and_the_same_roots_again(place: Place) -> None:
    written = place.repository.write(document(section("scope"), name="one"))
    two = place.repository.write(document(title="two"), identity="one", expected_revision=1)
    gone = place.repository.write(document(name="gone"))
    place.repository.delete("gone")
    place.repository.flush_pending()
    with place.platform.catalog.read() as view:
        roots = list(view.objects.roots("handoff/"))
    before = place.repository.list()
    with place.platform.catalog.write() as tx:
        tx.handoffs.clear()
        for name, _ in roots:
            tx.objects.release(name)
        tx.objects.keep("handoff/pk_aaaaaaaa/1", written.digest)
        tx.objects.keep(f"handoff/{written.pack.id}/9", written.digest)
    assert {finding.state for finding in place.damage()} == {"index"}
    rebuilt(place)
    with place.platform.catalog.read() as view:
        assert list(view.objects.roots("handoff/")) == roots
    assert place.repository.list() == before
    assert place.repository.get("one").pack == two.pack
    assert {digest for _, digest in roots} == {written.digest, two.digest, gone.digest}
    assert place.findings() == []


def test_what_is_listed_and_should_not_be_is_found(place: Place) -> None:
    pack = place.repository.write(document()).pack
    with place.platform.catalog.read() as view:
        row = view.handoffs.row(pack.handoff_id)
    assert row is not None
    place.repository.delete(pack.id)
    with place.platform.catalog.write() as tx:
        tx.handoffs.put(row)
    assert [finding.what for finding in place.damage()] == [stream_name(pack.handoff_id)]


def test_a_lost_revision_is_missing_to_a_check_and_survives_a_rebuild_as_unreadable(place: Place) -> None:
    first = place.repository.write(document(name="plan"))
    newest = place.repository.write(document(title="t"), identity="plan", expected_revision=1)
    alone = place.repository.write(document(name="alone"))
    place.lose(newest.digest)
    place.lose(alone.digest)
    missing = {finding.what: finding.needed_by for finding in place.damage() if finding.state == "missing"}
    assert missing == {
        str(newest.digest): (f"handoff/{first.pack.id}/2",),
        str(alone.digest): (f"handoff/{alone.pack.id}/1",),
    }
    for _ in range(2):
        rebuilt(place)
        for identity in ("plan", first.pack.id, "alone", alone.pack.id):
            with pytest.raises(HandoffUnreadable):
                place.repository.get(identity)
        assert place.repository.revision(first.pack.handoff_id, 1) == first.pack
    with place.platform.catalog.write() as tx:
        tx.handoffs.clear()  # now nothing but the streams is known of both
    rebuilt(place)
    for identity in ("plan", first.pack.id, alone.pack.id):
        with pytest.raises(HandoffUnreadable):
            place.repository.get(identity)
    assert collect(place).objects == ()


def test_an_object_that_is_another_revision_is_corrupt(place: Place) -> None:
    pack, other = (place.repository.write(document()) for _ in range(2))
    place.repository.flush_pending()
    body = b'{"at":"2026-05-04T09:30:00Z","digest":"%s","revision":2}' % str(other.digest).encode()
    with place.platform.catalog.write() as tx:
        tx.streams.append(stream_name(pack.pack.handoff_id), 1, [Event(kind="written", body=body)])
    rebuilt(place)
    assert [(finding.state, finding.what) for finding in place.damage() if finding.state == "corrupt"] == [
        ("corrupt", f"handoff/{pack.pack.id}/2")
    ]


def test_a_stream_that_is_not_understood_is_corrupt_and_loses_nothing(place: Place) -> None:
    written = place.repository.write(document())
    place.age_objects()
    for kind, body in (("merged", b"{}"), ("written", b"{}"), ("deleted", b"\xff")):
        with place.platform.catalog.write() as tx:
            stream = stream_name(written.pack.handoff_id)
            tx.streams.append(stream, tx.streams.head(stream), [Event(kind=kind, body=body)])
        rebuilt(place)
        assert [finding.state for finding in place.damage()] == ["corrupt"]
        place.clock.pass_by(days=400)
        assert collect(place).objects == ()
        assert place.object_path(written.digest).exists()


# --- collecting -------------------------------------------------------------------------------------------------------


def test_only_what_is_deleted_or_past_its_grace_time_is_collected(place: Place) -> None:
    alive = place.repository.write(document(ttl=2_628_000, name="alive"))
    newer = place.repository.write(document(title="t"), identity="alive", expected_revision=1)
    deleted = place.repository.write(document(ttl=2_628_000, name="deleted"))
    expired = place.repository.write(document(ttl=1, name="expired"))
    place.repository.delete("deleted")
    place.age_objects()
    place.clock.pass_by(seconds=60 + 900)
    assert collect(place, dry_run=True).objects == (deleted.digest,)
    place.clock.pass_by(seconds=1)
    assert collect(place, grace=timedelta(days=14)).objects == ()
    both = tuple(sorted([deleted.digest, expired.digest]))
    assert collect(place, dry_run=True).objects == both
    assert place.repository.revision(expired.pack.handoff_id, 1) == expired.pack
    assert collect(place).objects == both
    assert collect(place).objects == ()
    for written in (deleted, expired):
        with pytest.raises(HandoffNotFound) as refused:
            place.repository.revision(written.pack.handoff_id, 1)
        assert "collected" in refused.value.message
        assert place.repository.history(written.pack.handoff_id).events[-1].kind == "collected"
    assert place.repository.get("alive").pack == newer.pack
    assert place.repository.revision(alive.pack.handoff_id, 1) == alive.pack
    assert place.findings() == []
    rebuilt(place)
    assert place.findings() == []


def test_while_nothing_may_be_collected_no_pack_is_let_go(place: Place) -> None:
    written = place.repository.write(document())
    place.repository.delete(written.pack.id)
    place.age_objects()
    place.clock.pass_by(seconds=1)
    unknown = Digest.of(b"a manifest that is not there")
    with place.platform.catalog.write() as tx:
        tx.objects.record(IndexedObject(digest=unknown, kind=EXECUTION_PACK, size=1, traced=False))
        tx.objects.keep(f"packs/{unknown.hex}", unknown)
    with pytest.raises(GcBlocked):
        collect(place)
    assert [event.kind for event in place.repository.history(written.pack.handoff_id).events] == ["written", "deleted"]
    assert place.repository.revision(written.pack.handoff_id, 1) == written.pack


def test_what_something_else_refers_to_outlives_its_pack(place: Place) -> None:
    written = place.repository.write(document())
    with place.platform.catalog.write() as tx:
        tx.objects.keep("evidence/1", written.digest)
    place.repository.delete(written.pack.id)
    place.age_objects()
    place.clock.pass_by(seconds=1)
    assert collect(place, dry_run=True).objects == collect(place).objects == ()
    assert place.platform.objects.has(written.digest)


# --- what waits in the catalog ----------------------------------------------------------------------------------------


def test_a_revision_that_is_no_file_yet_is_no_damage_and_becomes_one_when_the_store_is_opened(tmp_path: Path) -> None:
    with place_in(tmp_path) as place:
        written = place.repository.write(document())
        assert not place.object_path(written.digest).exists()
        assert place.findings() == []
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        assert platform.objects.check(written.digest).state == "whole"
        with platform.catalog.read() as view:
            assert view.pending.some(1) == ()


def test_many_writes_do_not_pile_up_in_the_catalog(place: Place) -> None:
    for _ in range(256):
        place.repository.write(document())
    with place.platform.catalog.read() as view:
        assert view.pending.some(1) == ()
    assert place.findings() == []


def test_what_waits_and_is_not_what_its_name_says_is_kept_and_found_missing(place: Place) -> None:
    written = place.repository.write(document())
    with place.platform.catalog.write() as tx:
        tx.pending.remove(written.digest)
        tx.pending.put(written.digest, b"something else")
    place.repository.flush_pending()
    with pytest.raises(HandoffUnreadable):
        place.repository.get(written.pack.id)
    assert [(finding.state, finding.what) for finding in place.damage()] == [("missing", str(written.digest))]
    with place.platform.catalog.read() as view:
        assert view.pending.get(written.digest) == b"something else"


def test_what_waits_in_a_damaged_catalog_is_saved_with_its_events(tmp_path: Path) -> None:
    with place_in(tmp_path) as place:
        written = place.repository.write(document(name="plan"))
    with closing(sqlite3.connect(tmp_path / ".ctx" / "catalog.db", isolation_level=None)) as db:
        db.execute("DROP TRIGGER event_is_never_changed")  # reason enough to begin a new one
    with open_repaired(Settings(cwd=str(tmp_path))) as done:
        assert done.loss is not None
        assert done.rebuilt.handoffs == 1
        assert done.platform.objects.get(written.digest)
        with done.platform.catalog.read() as view:
            assert [row.digest for row in view.handoffs.find_by_name("plan")] == [written.digest]
