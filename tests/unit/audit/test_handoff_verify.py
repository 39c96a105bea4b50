"""A history that was tampered with, and objects that are not what its events say, on a real store."""

from pathlib import Path

import msgspec
import pytest

from contextplane.audit.handoff import HandoffVerdict, verify_handoff
from contextplane.handoff.errors import HandoffNotFound
from contextplane.handoff.storage import history_of
from contextplane.model.catalog import Event
from contextplane.model.handoff import HandoffPack, pack_bytes, revision_event_body, root_name, stream_name
from contextplane.model.timestamp import Timestamp
from tests.surfaces.handed_on import HandedOn

change = msgspec.structs.replace


@pytest.fixture
def place(tmp_path: Path) -> HandedOn:
    return HandedOn(tmp_path)


def verified(place: HandedOn, pack: HandoffPack, revision: int | None = None) -> HandoffVerdict:
    with place.desk() as desk:
        desk.pack_reader  # noqa: B018  it opens the store
        assert desk.platform is not None
        platform = desk.platform
        return verify_handoff(pack.handoff_id, revision, catalog=platform.catalog, objects=platform.objects)


def claim(place: HandedOn, pack: HandoffPack, revision: int, data: bytes, at: str) -> None:
    """Write into the history of a pack that its next revision is this object."""
    with place.desk() as desk:
        desk.pack_reader  # noqa: B018  it opens the store
        assert desk.platform is not None
        digest = desk.platform.objects.put(data)
        with desk.platform.catalog.write() as tx:
            stream = stream_name(pack.handoff_id)
            body = revision_event_body(revision, digest, Timestamp.parse(at))
            tx.streams.append(stream, tx.streams.head(stream), [Event(kind="written", body=body)])
            tx.objects.keep(root_name(pack.handoff_id, revision), digest)


LATER, EARLIER = "2090-01-01T00:00:00Z", "1990-01-01T00:00:00Z"


def test_a_revision_whose_object_is_something_else_is_modified(place: HandedOn) -> None:
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
        other = HandedOn(place.folder / f"place-{n}")
        there = other.write()
        data = data.replace(pack.id.encode(), there.id.encode())  # noqa: PLW2901  each store gives its own id
        claim(other, there, 2, data, LATER)
        verdict = verified(other, there, 2)
        assert (verdict.answer, verdict.revisions) == ("modified", ()), n


def test_a_gap_and_a_step_back_in_time_are_modified(place: HandedOn) -> None:
    pack = place.write()
    claim(place, pack, 3, pack_bytes(change(pack, revision=3, updated_at=EARLIER)), EARLIER)
    verdict = verified(place, pack, 1)
    assert verdict.answer == "modified"
    assert [problem.why for problem in verdict.problems][:2] == [
        "revision 3 was written after 1: what is between them is missing",
        "it is older than the one before",
    ]


def test_a_form_that_is_not_known_is_unchecked(place: HandedOn) -> None:
    pack = place.write()
    claim(place, pack, 2, pack_bytes(change(pack, revision=2, updated_at=LATER, schema_version=3)), LATER)
    assert verified(place, pack).answer == "unchecked"


def test_a_revision_that_nothing_keeps_or_that_is_not_listed_is_unchecked(place: HandedOn) -> None:
    pack = place.write()
    with place.desk() as desk:
        desk.pack_reader  # noqa: B018  it opens the store
        assert desk.platform is not None
        with desk.platform.catalog.write() as tx:
            tx.objects.release(root_name(pack.handoff_id, 1))
            tx.handoffs.remove(pack.handoff_id)
            assert history_of(tx.streams, pack.handoff_id).alive
    verdict = verified(place, pack)
    assert (verdict.answer, len(verdict.problems), len(verdict.revisions)) == ("unchecked", 2, 1)


def test_a_pack_that_never_was_is_not_found(place: HandedOn) -> None:
    pack = place.write()
    with pytest.raises(HandoffNotFound):
        verified(place, change(pack, id="pk_aaaaaaaa"))
