"""Collecting takes what is recorded, unreachable and old: all of it, and never anything else."""

import errno
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.files.objects import FileObjects
from contextplane.model.catalog import ObjectCondition
from contextplane.model.ids import Digest
from contextplane.ports.objects import StorageFailed
from contextplane.store.damage import DAMAGE
from contextplane.store.gc import GcBlocked, GcResult
from contextplane.testing.faults import Faults, FaultyDisk
from tests.unit.store.world import FAR_AHEAD, LONG_AGO, World, passing_world


def everything(world: World) -> set[Digest]:
    return set(world.platform.objects.names())


def test_what_nothing_refers_to_is_collected_and_all_else_stays(world: World) -> None:
    parent = world.pack(b"first")
    world.pack(b"second", parent=parent.hex)
    world.unregister(parent)
    world.rebuild()
    before = everything(world)
    orphan = world.record_blob(b"orphan")
    assert world.gc() == GcResult(objects=(orphan,), freed=len(b"orphan"), leftovers=(), young=(), damaged=())
    assert everything(world) == before
    assert world.findings() == []


def test_a_pack_that_is_no_longer_registered_goes_with_what_only_it_had(world: World) -> None:
    kept, gone = world.pack(b"shared", b"kept"), world.pack(b"shared", b"gone")
    world.catch_up()
    world.unregister(gone)
    world.rebuild()
    done = world.gc()
    assert set(done.objects) == {gone, Digest.of(b"gone")}
    assert {kept, Digest.of(b"shared"), Digest.of(b"kept"), Digest.of(b"order 881")} <= everything(world)
    assert world.findings() == []
    with world.platform.catalog.read() as view:
        assert view.objects.lookup(gone) is None
        assert view.objects.targets(gone) == ()


def test_what_was_put_within_the_grace_time_stays_and_is_named(world: World) -> None:
    old = world.record_blob(b"old")
    young = world.record_blob(b"young", written=FAR_AHEAD)
    between = LONG_AGO.replace(year=2100)
    assert world.gc(older_than=between) == GcResult(objects=(old,), freed=3, leftovers=(), young=(young,), damaged=())
    assert everything(world) == {young}


def test_putting_it_again_makes_it_young(world: World) -> None:
    digest = world.record_blob(b"wanted again")
    limit = LONG_AGO.replace(year=2010)
    assert world.gc(older_than=limit, dry_run=True).objects == (digest,)
    world.platform.objects.put(b"wanted again")
    assert world.gc(older_than=limit) == GcResult(objects=(), freed=0, leftovers=(), young=(digest,), damaged=())


def test_an_object_of_unknown_kind_is_never_collected(world: World) -> None:
    unknown = world.platform.objects.put(b"unknown")
    world.age(unknown)
    assert world.gc() == GcResult(objects=(), freed=0, leftovers=(), young=(), damaged=())
    assert everything(world) == {unknown}


@pytest.mark.parametrize("year", [2010, 2200])
def test_a_dry_run_says_what_the_run_then_does_and_removes_nothing(world: World, year: int) -> None:
    limit = LONG_AGO.replace(year=year)
    world.pack(b"the report")
    gone = world.pack(b"gone")
    world.catch_up()
    world.unregister(gone)
    world.rebuild()
    world.record_blob(b"old")
    world.record_blob(b"young", written=None)
    leftover = world.path / "objects" / ".staging" / "12-0123456789abcdef"
    leftover.write_bytes(b"half")
    os.utime(leftover, (0, 0))
    before = everything(world)
    planned = world.gc(older_than=limit, dry_run=True)
    assert everything(world) == before
    assert leftover.exists()
    assert planned.objects
    assert world.gc(older_than=limit) == planned
    assert everything(world) == before - set(planned.objects)
    assert not leftover.exists()


def test_leftovers_are_swept_when_they_are_old_and_other_things_never(world: World) -> None:
    staging = world.path / "objects" / ".staging"
    staging.mkdir(exist_ok=True)
    for name, written in {"1-0123456789abcdef": 0, "2-0123456789abcdef": 4e9, "mine": 0, "1-0123": 0}.items():
        (staging / name).write_bytes(b"half")
        os.utime(staging / name, (written, written))
    done = world.gc(older_than=LONG_AGO)
    assert done.leftovers == (".staging/1-0123456789abcdef",)
    assert done.unfinished == (".staging/1-0123", ".staging/2-0123456789abcdef", ".staging/mine")
    assert sorted(path.name for path in staging.iterdir()) == ["1-0123", "2-0123456789abcdef", "mine"]


class BusyDisk(Disk):
    """A disk on which somebody else removes the last leftover while we remove the first one."""

    def remove(self, path: str) -> None:
        super().remove(path)
        for other in sorted(Path(path).parent.iterdir())[-1:]:
            other.unlink()


def test_a_leftover_that_goes_away_meanwhile_is_no_failure(world: World) -> None:
    staging = world.path / "objects" / ".staging"
    staging.mkdir(exist_ok=True)
    for n in range(4):
        (staging / f"{n}-0123456789abcdef").write_bytes(b"half")
    world.gc(objects=FileObjects(str(world.path / "objects"), BusyDisk()))
    assert list(staging.iterdir()) == []


# --- what cannot be read ----------------------------------------------------------------------------------------------


def blocked(world: World) -> tuple[Digest, bytes]:
    """A store in which one registered pack could not be read when it was indexed, and an orphan waits."""
    pack = world.pack(b"precious")
    data = world.place(pack).read_bytes()
    world.damage(pack, b"damaged")
    world.catch_up()
    world.record_blob(b"orphan")
    with pytest.raises(GcBlocked) as refused:
        world.gc()
    assert refused.value.details == {"untraced": [str(pack)]}
    return pack, data


def test_while_a_registered_pack_cannot_be_read_nothing_is_collected(world: World) -> None:
    blocked(world)
    before = everything(world)
    for dry_run in (True, False):
        with pytest.raises(GcBlocked) as refused:
            world.gc(dry_run=dry_run)
        assert refused.value.hint
    assert everything(world) == before


def test_a_pack_that_was_read_before_it_was_damaged_blocks_nothing(world: World) -> None:
    pack = world.pack(b"precious")
    world.catch_up()
    world.damage(pack, b"damaged")
    orphan = world.record_blob(b"orphan")
    assert world.gc().objects == (orphan,)
    assert Digest.of(b"precious") in everything(world)


def test_when_the_pack_is_restored_collecting_goes_on_and_what_it_refers_to_stays(world: World) -> None:
    pack, data = blocked(world)
    world.damage(pack, data)
    assert world.gc().objects == (Digest.of(b"orphan"),)
    assert Digest.of(b"precious") in everything(world)
    assert world.findings() == []


def test_when_its_entry_is_moved_out_collecting_goes_on(world: World) -> None:
    pack, _ = blocked(world)
    world.unregister(pack)
    world.rebuild()
    assert Digest.of(b"orphan") in world.gc().objects
    # What it referred to was never recorded: of unknown kind, so it stays.
    assert Digest.of(b"precious") in everything(world)


def test_a_damaged_object_is_never_collected_and_named(world: World) -> None:
    digest = world.record_blob(b"all that is left")
    world.damage(digest, b"all that is le")
    world.age(digest)
    for dry_run in (True, False):
        assert world.gc(dry_run=dry_run) == GcResult(objects=(), freed=0, leftovers=(), young=(), damaged=(digest,))
    assert everything(world) == {digest}


def test_a_manifest_that_we_do_not_understand_blocks_collecting(world: World) -> None:
    blob = world.record_blob(b"precious")
    newer = {"version": "0.2", "steps": [], "artifacts": [{"content_ref": str(blob)}]}
    odd = {"version": "0.1", "steps": [], "outputs": {"content_ref": str(blob)}}
    for manifest in (newer, odd):
        world.register(msgspec.json.encode(manifest))
        with pytest.raises(GcBlocked):
            world.gc()
    assert blob in everything(world)


def test_any_digest_in_a_manifest_keeps_the_object_it_names(world: World) -> None:
    blob = world.record_blob(b"precious")
    step = {"tool": "t", "output_ref": "", "parameters": {"deep": [{"image": str(blob)}]}}
    world.register(msgspec.json.encode({"version": "0.1", "steps": [step]}))
    world.catch_up()
    assert not world.gc().objects
    assert world.findings() == []


def test_a_parent_that_comes_back_is_known_again_before_anything_is_collected(world: World) -> None:
    parent = world.pack(b"only the parent has this")
    world.pack(b"child", parent=parent.hex)
    world.unregister(parent)
    data = world.place(parent).read_bytes()
    world.place(parent).unlink()
    world.catch_up()
    world.record_blob(b"only the parent has this")
    world.other.blob(data)
    assert not world.gc().objects
    assert Digest.of(b"only the parent has this") in everything(world)


def test_a_parent_that_was_never_here_blocks_nothing(world: World) -> None:
    world.pack(b"child", parent="0" * 64)
    world.catch_up()
    orphan = world.record_blob(b"orphan")
    assert world.gc().objects == (orphan,)


def test_packs_that_vanish_all_at_once_take_nothing_with_them(world: World) -> None:
    world.pack(b"precious")
    world.catch_up()
    before = everything(world)
    (world.path / "packs").rename(world.path / "aside")
    assert not world.gc().objects
    assert everything(world) == before
    assert [finding.state for finding in world.findings()] == ["missing"]


# --- what fails in between --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_disk_that_fails_in_between_leaves_a_sound_store_and_the_next_run_does_the_rest(
    world: World, nth: int
) -> None:
    world.pack(b"the report")
    world.catch_up()
    alive = everything(world)
    orphans = {world.record_blob(b"orphan %d" % n) for n in range(3)}
    faults = Faults().at("remove", nth, OSError(errno.EIO, "broken"))
    with pytest.raises(StorageFailed):
        world.gc(objects=FileObjects(str(world.path / "objects"), FaultyDisk(faults)))
    assert len(everything(world)) == len(alive) + 3 - (nth - 1)
    assert [finding for finding in world.findings() if finding.state in DAMAGE] == []
    world.gc()
    assert everything(world) == alive
    with world.platform.catalog.read() as view:
        assert [orphan for orphan in orphans if view.objects.lookup(orphan)] == []
        assert not list(view.objects.unreachable())


def test_what_is_gone_already_is_forgotten_and_not_called_kept(world: World) -> None:
    gone = world.record_blob(b"gone already")
    world.place(gone).unlink()
    for dry_run in (True, False):
        assert world.gc(dry_run=dry_run) == GcResult(objects=(), freed=0, leftovers=(), young=(), damaged=())
    with world.platform.catalog.read() as view:
        assert view.objects.lookup(gone) is None


class PutSince(FileObjects):
    """Objects of which one that is found missing is put a moment later."""

    def check(self, digest: Digest) -> ObjectCondition:
        condition = super().check(digest)
        if condition.state == "missing":
            self.put(b"back again")
        return condition


def test_what_was_missing_and_is_put_meanwhile_stays_known(world: World) -> None:
    back = world.record_blob(b"back again")
    world.place(back).unlink()
    assert world.gc(objects=PutSince(str(world.path / "objects"))).young == (back,)
    with world.platform.catalog.read() as view:
        assert view.objects.lookup(back) is not None


# --- all of it --------------------------------------------------------------------------------------------------------

BLOBS = st.sets(st.integers(0, 6), min_size=1, max_size=3)


@given(st.lists(BLOBS, max_size=4), st.sets(st.integers(0, 3)), st.sets(st.integers(0, 9)))
def test_what_stays_is_exactly_what_a_registered_pack_reaches(
    packs: list[set[int]], dropped: set[int], loose: set[int]
) -> None:
    with passing_world() as world:
        for n in loose:
            world.record_blob(b"%d" % n)
        made = [world.pack(*(b"%d" % n for n in sorted(blobs)), prompt=b"p%d" % k) for k, blobs in enumerate(packs)]
        world.catch_up()
        for k in dropped & set(range(len(made))):
            world.unregister(made[k])
        world.rebuild()
        alive = {k: blobs for k, blobs in enumerate(packs) if k not in dropped}
        digests = {Digest.of(b"%d" % n) for blobs in alive.values() for n in blobs}
        digests |= {made[k] for k in alive} | {Digest.of(b"p%d" % k) for k in alive}
        digests |= {Digest.of(data) for data in (b"order 881", b"Refund order 881") if alive}
        world.gc()
        assert everything(world) == digests
        assert world.findings() == []
