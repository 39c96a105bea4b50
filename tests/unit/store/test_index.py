"""The index follows the registered packs, whoever registered them, and cannot be tripped by what they are."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.files.pack_entries import FileExecutionEntries
from contextplane.model.catalog import BLOB, IndexedObject
from contextplane.model.execution.references import EXECUTION_PACK
from contextplane.model.ids import Digest
from contextplane.store.find import index_is_current
from contextplane.store.status import store_contents
from tests.unit.store.world import World

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


class StandingClock:
    """A clock that shows what it is set to."""

    def __init__(self, now: datetime = NOON) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time


def changed_at(folder: Path, time: datetime) -> None:
    os.utime(folder, (time.timestamp(), time.timestamp()))


# --- when to look -----------------------------------------------------------------------------------------------------


def test_the_state_is_unknown_until_a_later_change_must_show(tmp_path: Path) -> None:
    clock = StandingClock()
    entries = FileExecutionEntries(str(tmp_path), str(tmp_path), clock)
    for age, known in ((-5, False), (0, False), (1, False), (2, False), (3, True), (3600, True)):
        changed_at(tmp_path, NOON - timedelta(seconds=age))
        assert (entries.state() is not None) == known


def test_the_state_changes_with_the_set_and_stays_with_it(tmp_path: Path) -> None:
    entries = FileExecutionEntries(str(tmp_path), str(tmp_path), StandingClock())
    changed_at(tmp_path, NOON - timedelta(hours=2))
    first = entries.state()
    assert first == entries.state()
    changed_at(tmp_path, NOON - timedelta(hours=1))
    assert entries.state() not in {first, None}


def test_a_folder_that_is_not_there_has_no_packs_and_a_state(tmp_path: Path) -> None:
    entries = FileExecutionEntries(str(tmp_path / "none"), str(tmp_path), StandingClock())
    assert entries.state() == "absent"
    assert (list(entries.names()), list(entries.strays())) == ([], [])


def settle(world: World, seconds: float) -> None:
    os.utime(world.path / "packs", (seconds, seconds))


def test_once_followed_it_is_in_step_until_a_pack_comes_or_goes(world: World) -> None:
    catalog, entries = world.platform.catalog, world.platform.entries
    pack = world.pack(b"the report")
    assert not index_is_current(catalog, entries)
    settle(world, 1000)
    assert not index_is_current(catalog, entries)
    world.catch_up()
    assert index_is_current(catalog, entries)
    world.unregister(pack)
    assert not index_is_current(catalog, entries)
    settle(world, 2000)
    assert not index_is_current(catalog, entries)
    world.catch_up()
    assert index_is_current(catalog, entries)


def test_just_after_a_change_it_is_never_in_step_for_more_may_come_within_the_tick(world: World) -> None:
    world.pack(b"the report")
    world.catch_up()
    assert not index_is_current(world.platform.catalog, world.platform.entries)
    world.catch_up()
    assert not index_is_current(world.platform.catalog, world.platform.entries)


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_a_pack_that_came_is_a_root_and_all_it_reaches_is_recorded(world: World) -> None:
    pack = world.pack(b"the report", b"the receipt")
    world.catch_up()
    assert world.roots() == [f"packs/{pack.hex}"]
    blobs = [b"You are careful.", b"Refund order 881", b"order 881", b"the report", b"the receipt"]
    with world.platform.catalog.read() as view:
        size = world.place(pack).stat().st_size
        assert view.objects.lookup(pack) == IndexedObject(digest=pack, kind=EXECUTION_PACK, size=size, traced=True)
        assert view.objects.targets(pack) == tuple(
            zip(["system_prompt", "prompts", "inputs", "outputs", "outputs"], map(Digest.of, blobs), strict=True)
        )
        for blob in blobs:
            expected = IndexedObject(digest=Digest.of(blob), kind=BLOB, size=len(blob), traced=True)
            assert view.objects.lookup(expected.digest) == expected
    contents = store_contents(world.platform.catalog)
    assert (contents.execution_packs, contents.objects) == (1, 6)
    assert contents.size == size + sum(map(len, blobs))


def test_a_pack_whose_entry_went_stays_until_a_rebuild_accepts_that(world: World) -> None:
    pack, other = world.pack(b"one"), world.pack(b"two")
    world.catch_up()
    world.unregister(pack)
    world.catch_up()
    assert world.roots() == sorted([f"packs/{pack.hex}", f"packs/{other.hex}"])
    assert [(finding.state, finding.what) for finding in world.findings()] == [("missing", f"packs/{pack.hex}")]
    assert not world.gc().objects
    world.rebuild()
    assert world.roots() == [f"packs/{other.hex}"]
    assert set(world.gc().objects) == {pack, Digest.of(b"one")}
    assert world.findings() == []


def test_following_twice_changes_nothing(world: World) -> None:
    world.pack(b"one", parent=world.pack(b"two").hex)
    world.catch_up()
    before = store_contents(world.platform.catalog)
    world.catch_up()
    assert store_contents(world.platform.catalog) == before


def test_a_line_of_parents_is_recorded_to_its_beginning(world: World) -> None:
    line = [world.pack(b"first")]
    for n in range(30):
        line.append(world.pack(b"%d" % n, parent=line[-1].hex))
    for pack in line[:-1]:
        world.unregister(pack)
    world.catch_up()
    assert world.roots() == [f"packs/{line[-1].hex}"]
    with world.platform.catalog.read() as view:
        assert set(line) <= set(view.objects.reachable())
        assert set(view.objects.of_kind(EXECUTION_PACK)) == set(line)
    assert world.findings() == []


def test_a_pack_that_is_also_an_output_of_another_stays_a_pack(world: World) -> None:
    inner = world.pack(b"inner")
    outer = world.pack(world.place(inner).read_bytes())
    world.catch_up()
    with world.platform.catalog.read() as view:
        assert set(view.objects.of_kind(EXECUTION_PACK)) == {inner, outer}
    world.unregister(inner)
    world.rebuild()
    world.gc()
    assert Digest.of(b"inner") in set(world.platform.objects.names())


def test_what_a_pack_misses_is_an_edge_and_no_object(world: World) -> None:
    pack = world.pack(b"the report")
    world.place(Digest.of(b"the report")).unlink()
    world.catch_up()
    with world.platform.catalog.read() as view:
        assert view.objects.lookup(Digest.of(b"the report")) is None
        assert ("outputs", Digest.of(b"the report")) in view.objects.targets(pack)
        assert view.objects.lookup(pack) is not None
        assert not list(view.objects.untraced_objects())


MALFORMED = [
    b"",
    b"not json",
    b"\xff\xfe",
    b"[]",
    b"7",
    b"{}",
    b"[" * 5000 + b"]" * 5000,
    b'{"version": 1, "steps": 2}',
    b'{"version": 1, "steps": [], "system_prompt": []}',
    b'{"version": 1, "steps": [], "system_prompt": {"a": []}}',
    b'{"version": 1, "steps": [{"output_ref": [1]}]}',
    b'{"version": 1, "steps": [], "inputs": [{"content_ref": 7}]}',
    b'{"version": 1, "steps": [], "parent": "sha256:x"}',
    b'{"version": 1, "steps": [], "parent": 1' + b"1" * 5000 + b"}",
    b'{"version": 1, "steps": [null, 7, "x", []], "outputs": "none"}',
]


@pytest.mark.parametrize("data", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_manifest_stops_nobody(world: World, data: bytes) -> None:
    bad = world.register(data)
    good = world.pack(b"the report")
    world.catch_up()
    assert world.roots() == sorted(f"packs/{digest.hex}" for digest in (bad, good))
    with world.platform.catalog.read() as view:
        assert view.objects.lookup(Digest.of(b"the report")) is not None
        recorded = view.objects.lookup(bad)
    assert recorded is not None
    assert recorded.kind == EXECUTION_PACK


def test_a_circle_of_parents_in_the_index_hangs_nobody(world: World) -> None:
    # No two objects can name each other, but an index may say so.
    digest, two = world.pack(b"one"), world.pack(b"two")
    world.catch_up()
    with world.platform.catalog.write() as tx:
        tx.objects.link(digest, "parent", two)
        tx.objects.link(two, "parent", digest)
    world.catch_up()
    with world.platform.catalog.read() as view:
        assert {digest, two} <= set(view.objects.reachable())


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_pack_that_can_be_read_again_is_traced_again(world: World, harm: str) -> None:
    pack = world.pack(b"the report")
    data = world.place(pack).read_bytes()
    world.place(pack).unlink()
    if harm == "damaged":
        world.other.blob(data)
        world.damage(pack, b"damaged")
    world.catch_up()
    with world.platform.catalog.read() as view:
        assert [recorded.digest for recorded in view.objects.untraced_objects()] == [pack]
    world.place(pack).unlink(missing_ok=True)
    world.other.blob(data)
    # Its size, its line in the list, what it refers to.
    assert [finding.state for finding in world.findings() if finding.state != "orphaned"] == ["index"] * 3
    world.gc()
    with world.platform.catalog.read() as view:
        assert not list(view.objects.untraced_objects())
        assert ("outputs", Digest.of(b"the report")) in view.objects.targets(pack)


def test_a_name_that_is_no_pack_is_not_followed(world: World) -> None:
    for name in ("README", "A" * 64, "a" * 63, "a" * 65, ".hidden"):
        (world.path / "packs" / name).write_bytes(b"")
    world.catch_up()
    assert world.roots() == []


def test_a_manifest_of_many_steps_is_followed_whole(world: World) -> None:
    refs = [world.other.blob(b"step %d" % n) for n in range(2000)]
    manifest = {"version": "0.1", "hash": "", "steps": [{"output_ref": ref} for ref in refs]}
    pack = world.register(msgspec.json.encode(manifest))
    world.catch_up()
    with world.platform.catalog.read() as view:
        assert [str(target) for _, target in view.objects.targets(pack)] == refs
    assert store_contents(world.platform.catalog).objects == 2001
