"""Whatever the clock does and whoever writes: revisions rise, times never go back, and nothing is lost."""

import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.handoff.errors import HandoffNameTaken, HandoffNotFound
from contextplane.model.handoff import HandoffPack
from contextplane.store.rebuild import rebuild
from tests.unit.handoff.shelves import Place, document, place_in, section

YEAR = 365 * 86_400
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "write", "ttl", "delete", "settle"]),
        st.integers(0, 2),
        st.one_of(st.integers(-YEAR, YEAR), st.integers(-3, 3), st.just(0)),
    ),
    max_size=14,
)


class _Told:
    """What the shelf acknowledged: every revision of every pack, in order."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.revisions: dict[str, list[HandoffPack]] = {}

    def step(self, what: str, which: int) -> None:
        shelf, known = self.place.shelf, list(self.revisions.values())
        try:
            if what == "create":
                self.add(shelf.write(document(section("scope"), name=f"name {which}", ttl=30)).pack)
            elif what == "settle":
                shelf.settle()
            elif known:
                last = known[which % len(known)][-1]
                if what == "delete":
                    shelf.delete(last.id)
                elif what == "ttl":
                    self.add(shelf.ttl(last.id, expected_revision=last.revision, extend_minutes=9).pack)
                else:
                    handoff_document = document(section("findings", str(last.revision)))
                    self.add(shelf.write(handoff_document, identity=last.id, expected_revision=last.revision).pack)
        except (HandoffNotFound, HandoffNameTaken):
            pass  # its time is over, or the name is taken: both are as they should be

    def add(self, pack: HandoffPack) -> None:
        self.revisions.setdefault(pack.id, []).append(pack)

    def holds(self) -> None:
        for packs in self.revisions.values():
            assert [pack.revision for pack in packs] == list(range(1, len(packs) + 1))
            updated = [pack.updated for pack in packs]
            assert updated == sorted(updated)
            for pack in packs:
                assert self.place.shelf.revision(pack.handoff_id, pack.revision) == pack


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_a_clock_that_jumps_loses_nothing_and_turns_nothing_back(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, place_in(Path(folder)) as place:
        told = _Told(place)
        for what, which, jump in steps:
            place.clock.moment += timedelta(seconds=jump)
            told.step(what, which)
        told.holds()
        assert place.damage() == []
        before = place.shelf.list(), place.shelf.list(freshness="expired")
        place.shelf.settle()
        rebuild(place.platform.catalog, place.platform.entries, place.platform.objects)
        assert (place.shelf.list(), place.shelf.list(freshness="expired")) == before
        assert place.findings() == []
        told.holds()
