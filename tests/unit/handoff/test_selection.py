"""Finding packs: by name and in lists, before and after their deadline, deleted or damaged."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import (
    HandoffAmbiguous,
    HandoffInvalid,
    HandoffNameTaken,
    HandoffNotFound,
    HandoffUnreadable,
)
from contextplane.handoff.reader import DeleteResult, WriteResult
from contextplane.model.catalog import Event, HandoffRow
from contextplane.model.handoff import HandoffDocument, Status, pack_bytes, stream_name
from contextplane.model.ids import Digest, HandoffId
from tests.unit.handoff.repositories import Place, document, place_in


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_in(tmp_path) as place:
        yield place


def update(place: Place, written: WriteResult, handoff_document: HandoffDocument) -> WriteResult:
    return place.repository.write(handoff_document, identity=written.pack.id, expected_revision=written.pack.revision)


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_name_that_nobody_has_is_told_with_the_nearest_one_that_can_be_had(place: Place) -> None:
    def refused(name: str) -> HandoffNotFound:
        with pytest.raises(HandoffNotFound) as error:
            place.repository.get(name)
        return error.value

    assert refused("login-bgu").details == {"requested": "login-bgu", "guidance": "action list shows what there is"}
    place.repository.write(document(name="login-bug", ttl=1))
    place.repository.write(document(name="payments"))
    place.repository.write(document())
    assert refused("login-bgu").details["nearest_name"] == "login-bug"
    assert "did you mean 'login-bug'?" in str(refused("login-bgu").details["guidance"])
    assert "nearest_name" not in refused("weather").details
    assert "nearest_name" not in refused("pk_abcd2345").details
    place.clock.pass_by(seconds=61)
    assert "nearest_name" not in refused("login-bgu").details


def test_a_taken_name_is_refused_until_its_holder_is_deleted_or_out_of_grace(place: Place) -> None:
    first = place.repository.write(document(name="plan", ttl=1))
    with pytest.raises(HandoffNameTaken) as refused:
        place.repository.write(document(name="plan"))
    assert refused.value.details["taken_by"] == [first.pack.id]
    place.clock.pass_by(seconds=60 + 900)
    with pytest.raises(HandoffNameTaken):
        place.repository.write(document(name="plan"))
    place.clock.pass_by(seconds=1)
    second = place.repository.write(document(name="plan"))
    assert place.repository.get("plan").pack == second.pack
    assert place.repository.delete("plan").deleted
    assert place.repository.write(document(name="plan")).pack.id != second.pack.id


def test_what_looks_like_an_id_is_never_a_name(place: Place) -> None:
    for identity in ("pk_aaaaaaaa", "pk_AAAAAAAA", "", "\0", "nobody"):
        with pytest.raises(HandoffNotFound):
            place.repository.get(identity)


@pytest.mark.parametrize(
    "name", ["a b c", "'; DROP TABLE handoff; --", "caf\u00e9 \U0001f600", "x\ny", "nul\0nul", "%_*\"'"]
)
def test_a_name_may_be_anything(place: Place, name: str) -> None:
    written = place.repository.write(document(name=name, title=name))
    assert place.repository.get(name).pack == written.pack
    assert place.list_ids(query=name.upper()) == [written.pack.id]


def test_of_several_packs_with_one_name_the_rule_decides_or_nobody_does(place: Place) -> None:
    packs = [place.repository.write(document(title=str(n))).pack for n in range(4)]

    def rename(n: int, status: Status, updated: int) -> None:
        """Only files on disk can make two packs of one name; here it is the index that is told so."""
        pack = msgspec.structs.replace(packs[n], name="same", status=status, updated_at=f"2026-05-04T09:30:0{updated}Z")
        with place.platform.catalog.write() as tx:
            tx.handoffs.put(HandoffRow.of(pack, Digest.of(pack_bytes(packs[n]))))

    rename(0, "draft", 9)
    rename(1, "draft", 9)
    with pytest.raises(HandoffAmbiguous) as refused:
        place.repository.get("same")
    assert refused.value.details["candidate_ids"] == sorted([packs[0].id, packs[1].id])
    rename(2, "finalized", 5)
    selected = place.repository.get("same")
    assert (selected.pack.id, selected.selected_by) == (packs[2].id, "name_latest_finalized_updated_at_then_revision")
    rename(3, "finalized", 6)
    assert place.repository.get("same").pack.id == packs[3].id


# --- deadlines --------------------------------------------------------------------------------------------------------


def test_a_deadline_is_set_from_now_or_moved_on_from_where_it_is(place: Place) -> None:
    pack = place.repository.write(document(ttl=10)).pack
    place.clock.pass_by(minutes=4)
    extended = place.repository.ttl(pack.id, expected_revision=1, extend_minutes=5).pack
    assert (extended.expires_at, extended.revision) == ("2026-05-04T09:45:00Z", 2)
    assert extended.updated_at == "2026-05-04T09:34:00Z"
    anew = place.repository.ttl(pack.id, expected_revision=2, ttl_minutes=5).pack
    assert anew.expires_at == "2026-05-04T09:39:00Z"
    place.clock.pass_by(minutes=10)
    late = place.repository.ttl(pack.id, expected_revision=3, extend_minutes=5).pack
    assert late.expires_at == "2026-05-04T09:49:00Z"
    assert late.sections == pack.sections


def test_a_deadline_beyond_all_bounds_is_refused_with_the_bounds(place: Place) -> None:
    pack = place.repository.write(document()).pack
    for minutes in (0, -1, 2_628_001, 10**30):
        with pytest.raises(HandoffInvalid) as refused:
            place.repository.ttl(pack.id, expected_revision=1, extend_minutes=minutes)
        assert refused.value.details["maximum"] == 2_628_000
    for both in ({}, {"ttl_minutes": 1, "extend_minutes": 1}):
        with pytest.raises(HandoffInvalid) as refused:
            place.repository.ttl(pack.id, expected_revision=1, **both)
        assert refused.value.details["required_mode"] == "exactly_one_of"
        assert refused.value.details["provided_fields"] == list(both)
    place.clock.moment = datetime(9999, 12, 31, 23, 0, tzinfo=UTC)
    with pytest.raises(HandoffInvalid) as refused:
        place.repository.write(document(ttl=60))
    assert refused.value.details["maximum"] == 59
    last = place.repository.write(document(ttl=59)).pack
    with pytest.raises(HandoffInvalid):
        place.repository.ttl(last.id, expected_revision=1, extend_minutes=2_628_000)


def test_an_expired_pack_is_hidden_readable_for_its_grace_time_and_then_not_found(place: Place) -> None:
    pack = place.repository.write(document(ttl=1, name="short")).pack
    place.clock.pass_by(seconds=59.5)
    assert place.list_ids() == []
    assert place.list_ids(freshness="expired") == [pack.id]
    place.clock.pass_by(seconds=0.5 + 900)
    assert place.repository.get("short").pack == pack
    assert place.list_ids(freshness="expired") == [pack.id]
    place.clock.pass_by(seconds=0.001)
    for identity in ("short", pack.id):
        with pytest.raises(HandoffNotFound):
            place.repository.get(identity)
        with pytest.raises(HandoffNotFound):
            place.repository.ttl(identity, expected_revision=1, ttl_minutes=5)
    assert place.list_ids(freshness="expired") == []
    assert not place.repository.delete(pack.id).deleted
    assert place.repository.revision(pack.handoff_id, 1) == pack


# --- deleting, and what is left ---------------------------------------------------------------------------------------


def test_a_deleted_pack_is_not_found_at_once_and_its_revisions_stay_readable(place: Place) -> None:
    first = place.repository.write(document(name="plan"))
    second = update(place, first, document(title="t"))
    assert place.repository.delete("plan") == DeleteResult(id=first.pack.handoff_id, deleted=True)
    assert not place.repository.delete(first.pack.id).deleted
    with pytest.raises(HandoffNotFound):
        place.repository.delete("plan")
    with pytest.raises(HandoffNotFound):
        place.repository.get(first.pack.id)
    assert place.list_ids() == []
    assert place.repository.revision(first.pack.handoff_id, 2) == second.pack
    history = place.repository.history(first.pack.handoff_id)
    assert [event.kind for event in history.events] == ["written", "written", "deleted"]
    assert not history.alive
    assert not place.repository.delete("pk_zzzzzzzz").deleted
    with pytest.raises(HandoffNotFound):
        place.repository.history(HandoffId("pk_zzzzzzzz"))
    with pytest.raises(HandoffNotFound):
        place.repository.revision(first.pack.handoff_id, 3)


def test_a_revision_whose_object_is_gone_or_damaged_is_unreadable_and_never_not_found(place: Place) -> None:
    lost, hurt, other = (place.repository.write(document(name=name)) for name in ("lost", "hurt", "other"))
    place.lose(lost.digest)
    path = place.object_path(hurt.digest)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-9])
    for name, written in (("lost", lost), ("hurt", hurt)):
        for identity in (name, written.pack.id):
            with pytest.raises(HandoffUnreadable) as refused:
                place.repository.get(identity)
            assert refused.value.details["digest"] == str(written.digest)
        with pytest.raises(HandoffUnreadable):
            place.repository.revision(written.pack.handoff_id, 1)
        assert place.repository.delete(name).deleted
    with place.platform.catalog.write() as tx:
        row = tx.handoffs.row(other.pack.handoff_id)
        assert row is not None
        tx.handoffs.remove(row.id)
    with pytest.raises(HandoffUnreadable):
        place.repository.get(other.pack.id)


def test_an_event_that_is_not_understood_is_told_and_nothing_is_guessed(place: Place) -> None:
    pack = place.repository.write(document()).pack
    with place.platform.catalog.write() as tx:
        tx.streams.append(stream_name(pack.handoff_id), 1, [Event(kind="merged", body=b"{}")])
    with pytest.raises(ContextPlaneError) as refused:
        place.repository.history(pack.handoff_id)
    assert refused.value.code == "handoff_history_unreadable"
    assert place.repository.get(pack.id).pack == pack


# --- lists ------------------------------------------------------------------------------------------------------------


def test_lists_are_newest_first_filtered_and_counted(place: Place) -> None:
    ids = []
    for n in range(5):
        ids.append(place.repository.write(document(title=f"Title {n}", ttl=10 if n < 2 else 100)).pack.id)
        place.clock.pass_by(seconds=1)
    assert place.list_ids() == ids[::-1]
    page = place.repository.list(limit=2, offset=1)
    assert ([row.id.text for row in page.rows], page.total) == (ids[3:1:-1], 5)
    assert place.list_ids(query="TITLE 3") == [ids[3]]
    assert place.list_ids(freshness="expiring_soon") == ids[1::-1]
    assert place.list_ids(freshness="fresh") == ids[:1:-1]
    assert place.list_ids(status="finalized") == []
    assert place.repository.list(limit=0).total == 5


def test_page_tokens_are_signed_with_a_key_that_the_store_keeps(place: Place) -> None:
    assert place.repository.page_key() != place.repository.page_key()
    place.repository.write(document())
    key = place.repository.page_key()
    assert len(key) >= 64  # 32 bytes in hexadecimal digits, within the JSON of their event
    place.repository.write(document())
    assert place.repository.page_key() == key
