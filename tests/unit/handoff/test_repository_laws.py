"""Whatever the clock does and whoever writes: revisions rise, times never go back, and nothing is lost."""

import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.handoff.errors import HandoffNameTaken, HandoffNotFound
from contextplane.model.handoff import HandoffPack
from contextplane.store.rebuild import rebuild
from tests.unit.handoff.repositories import Place, document, place_in, section

YEAR = 365 * 86_400
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "write", "ttl", "delete", "settle"]),
        st.integers(0, 2),
        st.one_of(st.integers(-YEAR, YEAR), st.integers(-3, 3), st.just(0)),
    ),
    max_size=14,
)


class _Acknowledged:
    """What the repository acknowledged: every revision of every pack, in order."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.revisions: dict[str, list[HandoffPack]] = {}

    def step(self, what: str, which: int) -> None:
        repository, known = self.place.repository, list(self.revisions.values())
        try:
            if what == "create":
                self.add(repository.write(document(section("scope"), name=f"name {which}", ttl=30)).pack)
            elif what == "settle":
                repository.flush_pending()
            elif known:
                last = known[which % len(known)][-1]
                if what == "delete":
                    repository.delete(last.id)
                elif what == "ttl":
                    self.add(repository.ttl(last.id, expected_revision=last.revision, extend_minutes=9).pack)
                else:
                    handoff_document = document(section("findings", str(last.revision)))
                    self.add(repository.write(handoff_document, identity=last.id, expected_revision=last.revision).pack)
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
                assert self.place.repository.revision(pack.handoff_id, pack.revision) == pack


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_a_clock_that_jumps_loses_nothing_and_turns_nothing_back(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, place_in(Path(folder)) as place:
        acknowledged = _Acknowledged(place)
        for what, which, jump in steps:
            place.clock.moment += timedelta(seconds=jump)
            acknowledged.step(what, which)
        acknowledged.holds()
        assert place.damage() == []
        before = place.repository.list(), place.repository.list(freshness="expired")
        place.repository.flush_pending()
        rebuild(place.platform.catalog, place.platform.entries, place.platform.objects)
        assert (place.repository.list(), place.repository.list(freshness="expired")) == before
        assert place.findings() == []
        acknowledged.holds()
