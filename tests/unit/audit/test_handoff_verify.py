"""A history that was tampered with, and objects that are not what its events say, on a real store."""

from pathlib import Path

import msgspec
import pytest

from contextplane.audit.handoff import HandoffVerdict, verify_handoff
from contextplane.handoff.errors import HandoffNotFound, HandoffUnreadable
from contextplane.model.catalog import Event
from contextplane.model.handoff import HandoffPack, pack_bytes, revision_event_body, root_name, stream_name
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.store.handoff_stream import history_of
from tests.surfaces.handoff_store import HandoffStore
from tests.unit.registry.tampering import Stolen

change = msgspec.structs.replace


@pytest.fixture
def place(tmp_path: Path) -> HandoffStore:
    return HandoffStore(tmp_path)


def verified(place: HandoffStore, pack: HandoffPack, revision: int | None = None) -> HandoffVerdict:
    with place.session() as session:
        session.pack_reader  # noqa: B018  it opens the store
        assert session.platform is not None
        platform = session.platform
        return verify_handoff(pack.handoff_id, revision, catalog=platform.catalog, objects=platform.objects)


def claim(place: HandoffStore, pack: HandoffPack, revision: int, data: bytes, at: str) -> None:
    """Write into the history of a pack that its next revision is this object."""
    with place.session() as session:
        session.pack_reader  # noqa: B018  it opens the store
        assert session.platform is not None
        digest = session.platform.objects.put(data)
        with session.platform.catalog.write() as tx:
            stream = stream_name(pack.handoff_id)
            body = revision_event_body(revision, digest, Timestamp.parse(at))
            tx.streams.append(stream, tx.streams.head(stream), [Event(kind="written", body=body)])
            tx.objects.keep(root_name(pack.handoff_id, revision), digest)


LATER, EARLIER = "2090-01-01T00:00:00Z", "1990-01-01T00:00:00Z"


def test_a_revision_whose_object_is_something_else_is_modified(place: HandoffStore) -> None:
    pack = place.write()
    following = change(pack, revision=2, updated_at=LATER)
    for n, data in enumerate(
        (
            b"{}",
            pack_bytes(pack),
            pack_bytes(change(following, id="pk_aaaaaaaa")),
            pack_bytes(change(following, updated_at=EARLIER)),
            pack_bytes(change(following, updated_at="now and then")),
            pack_bytes(following) + b"\n",
        )
    ):
        other = HandoffStore(place.folder / f"place-{n}")
        there = other.write()
        data = data.replace(pack.id.encode(), there.id.encode())  # noqa: PLW2901  each store gives its own id
        claim(other, there, 2, data, LATER)
        verdict = verified(other, there, 2)
        assert (verdict.answer, verdict.revisions) == ("modified", ()), n


def test_a_gap_and_a_step_back_in_time_are_modified(place: HandoffStore) -> None:
    pack = place.write()
    claim(place, pack, 3, pack_bytes(change(pack, revision=3, updated_at=EARLIER)), EARLIER)
    verdict = verified(place, pack, 1)
    assert verdict.answer == "modified"
    assert [problem.why for problem in verdict.problems][:2] == [
        "revision 3 was written after 1: the revisions between them are missing",
        "it is older than the one before",
    ]


def test_a_revision_whose_object_is_another_revision_is_not_read(place: HandoffStore) -> None:
    pack = place.write()
    claim(place, pack, 2, pack_bytes(pack), LATER)
    with place.session() as session, pytest.raises(HandoffUnreadable, match=f"the object is {pack.id}@1"):
        session.pack_reader.revision(pack.handoff_id, 2)


def test_bytes_that_wait_in_the_catalog_under_the_digest_of_others_are_not_read(place: HandoffStore) -> None:
    pack = place.write()
    forged = pack_bytes(change(pack, title="Forged"))
    digest = Digest.of(pack_bytes(pack)).hex
    Stolen(place.folder / ".ctx" / "catalog.db").run("INSERT INTO pending (digest, data) VALUES (?, ?)", digest, forged)
    with place.session() as session:
        assert session.pack_reader.get(pack.id).pack == pack


def two_revisions(place: HandoffStore) -> HandoffPack:
    pack = place.write()
    return place.write(pack.id, revision=pack.revision)


def test_an_event_that_is_missing_from_the_middle_of_a_history_is_modified(place: HandoffStore) -> None:
    pack = two_revisions(place)
    place.write(pack.id, revision=pack.revision)
    catalog, stream = Stolen(place.folder / ".ctx" / "catalog.db"), stream_name(pack.handoff_id)
    catalog.run("DELETE FROM event WHERE stream = ? AND seq = 2", stream)
    problems = [(problem.answer, problem.why) for problem in verified(place, pack).problems]
    assert problems[0] == ("modified", "events are missing from it")


def test_a_history_whose_last_event_is_cut_off_is_modified(place: HandoffStore) -> None:
    pack = two_revisions(place)
    Stolen(place.folder / ".ctx" / "catalog.db").cut(stream_name(pack.handoff_id))
    verdict = verified(place, pack)
    assert verdict.answer == "modified"
    assert "its last events are missing" in [problem.why for problem in verdict.problems]


def test_a_form_that_is_not_known_is_unchecked(place: HandoffStore) -> None:
    pack = place.write()
    claim(place, pack, 2, pack_bytes(change(pack, revision=2, updated_at=LATER, schema_version=3)), LATER)
    assert verified(place, pack).answer == "unchecked"


def test_a_revision_that_nothing_keeps_or_that_is_not_listed_is_unchecked(place: HandoffStore) -> None:
    pack = place.write()
    with place.session() as session:
        session.pack_reader  # noqa: B018  it opens the store
        assert session.platform is not None
        with session.platform.catalog.write() as tx:
            tx.objects.release(root_name(pack.handoff_id, 1))
            tx.handoffs.remove(pack.handoff_id)
            assert history_of(tx.streams, pack.handoff_id).alive
    verdict = verified(place, pack)
    assert (verdict.answer, len(verdict.problems), len(verdict.revisions)) == ("unchecked", 2, 1)


def test_a_pack_that_never_was_is_not_found(place: HandoffStore) -> None:
    pack = place.write()
    with pytest.raises(HandoffNotFound):
        verified(place, change(pack, id="pk_aaaaaaaa"))
