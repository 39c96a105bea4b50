"""Every call to a disk fails once, in every way a disk fails, or is the last thing the process does."""

import errno
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.files.syncfs import reports_write_errors
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Stray
from contextplane.model.ids import Digest
from contextplane.ports.objects import Batch, StorageFailed, StorageFull, StorageReadOnly
from contextplane.testing.faults import Faults, FaultyDisk
from tests.faults.children import ALONE, CHUNKS, PUTS, KilledChild, exercise_disk, start
from tests.patience import PATIENCE

CALLS = ("create", "write", "sync", "sync_folder", "make_folder", "replace", "touch", "remove")
ERRORS: dict[int, type[ContextPlaneError]] = {
    errno.ENOSPC: StorageFull,
    errno.EDQUOT: StorageFull,
    errno.EROFS: StorageReadOnly,
    errno.EIO: StorageFailed,
}
ALL = sorted(Digest.of(data) for data in {ALONE, *PUTS, b"".join(CHUNKS)})
FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


def count_calls(folder: Path) -> Faults:
    """Count the calls of each kind when nothing fails."""
    faults = Faults()
    exercise_disk(FileObjects(str(folder), FaultyDisk(faults)), lambda _: None)
    return faults


def assert_nothing_half(objects: FileObjects, acknowledged: list[str]) -> None:
    """Assert that everything acknowledged is whole, and so is every other visible object."""
    assert [objects.check(Digest(name)).state for name in acknowledged] == ["whole"] * len(acknowledged)
    assert {objects.check(name).state for name in objects.names()} <= {"whole"}


def assert_all_can_be_put(root: Path) -> None:
    objects = FileObjects(str(root))
    exercise_disk(objects, lambda _: None)
    assert list(objects.names()) == ALL
    assert {objects.check(name).state for name in ALL} == {"whole"}


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_is_told_by_its_code_and_leaves_nothing_half_done(
    folder: Path, call: str, number: int
) -> None:
    (folder / "sound").mkdir()
    count = count_calls(folder / "sound").calls(call)
    assert count > 0
    for nth in range(1, count + 1):
        root = folder / str(nth)
        root.mkdir()
        faults = Faults().at(call, nth, OSError(number, os.strerror(number)))
        objects = FileObjects(str(root), FaultyDisk(faults))
        acknowledged: list[str] = []
        with pytest.raises(ERRORS[number]) as failed:
            exercise_disk(objects, acknowledged.append)
        assert failed.value.at
        assert failed.value.hint
        assert_nothing_half(objects, acknowledged)
        assert call == "remove" or not list(objects.strays())
        assert_all_can_be_put(root)


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_what_a_failing_disk_will_not_remove_is_named_and_swept_later(folder: Path, number: int) -> None:
    error = OSError(number, os.strerror(number))
    faults = Faults().at("replace", 1, error).at("remove", 1, error).at("remove", 2, error)
    objects = FileObjects(str(folder), FaultyDisk(faults))
    with pytest.raises(ERRORS[number]), objects.batch() as batch:
        batch.put(b"one")
        batch.put(b"two")
    assert not list(objects.names())
    leftovers = list(objects.strays())
    assert [stray.what for stray in leftovers] == ["leftover", "leftover"]
    assert objects.sweep(older_than=FAR_AHEAD, dry_run=True) == [stray.name for stray in leftovers]
    assert objects.sweep(older_than=FAR_AHEAD) == [stray.name for stray in leftovers]
    assert not list(objects.strays())


@pytest.mark.parametrize("call", ["sync", "replace", "sync_folder"])
def test_a_batch_whose_commit_failed_is_not_committed_by_trying_again(folder: Path, call: str) -> None:
    """A system reports a failed write once, and may then treat the bytes as written."""
    faults = Faults().at(call, 2, OSError(errno.ENOSPC, "full"))
    objects = FileObjects(str(folder), FaultyDisk(faults))

    def fill() -> None:
        with objects.batch() as batch:
            for data in PUTS:
                batch.put(data)
            with pytest.raises(StorageFull):
                batch.commit()
            batch.commit()

    with pytest.raises(StorageFailed, match="an earlier commit"):
        fill()
    assert {objects.check(name).state for name in objects.names()} <= {"whole"}
    assert not list(objects.strays())
    with objects.batch() as batch:
        digests = [batch.put(data) for data in PUTS]
    assert [objects.check(digest).state for digest in digests] == ["whole"] * len(digests)


class OldDisk(FaultyDisk):
    """A file system that cannot be synced as a whole."""

    def can_sync_all(self, fd: int) -> bool:  # noqa: ARG002  always
        return False


@pytest.mark.parametrize(
    ("disk", "call", "nth"),
    [(OldDisk, "sync", 77), (OldDisk, "sync_folder", 33), (FaultyDisk, "sync_all", 1), (FaultyDisk, "sync_all", 2)],
)
def test_one_failing_sync_among_very_many_fails_the_whole_batch(
    folder: Path, disk: type[FaultyDisk], call: str, nth: int
) -> None:
    faults = Faults().at(call, nth, OSError(errno.EIO, "broken"))
    objects = FileObjects(str(folder), disk(faults))
    with pytest.raises(StorageFailed), objects.batch() as batch:
        for n in range(300):
            batch.put(b"%d" % n)
    # Before the names are synced everything is in place and whole, though not acknowledged.
    assert {objects.check(name).state for name in objects.names()} <= {"whole"}
    assert bool(list(objects.names())) == (call == "sync_folder" or nth == 2)
    assert not list(objects.strays())


@pytest.mark.parametrize("disk", [OldDisk, FaultyDisk])
def test_a_process_that_syncs_all_at_once_syncs_before_it_moves_and_after(folder: Path, disk: type[FaultyDisk]) -> None:
    faults = Faults()
    with FileObjects(str(folder), disk(faults)).batch() as batch:
        for n in range(300):
            batch.put(b"%d" % n)
    counts = (faults.calls("sync_all"), faults.calls("sync"))
    assert counts == ((2, 0) if disk is FaultyDisk else (0, 300))


class ObservedDisk(FaultyDisk):
    """A disk that reports background syncs through an event."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(faults)
        self.synced_early = threading.Event()

    def sync_early(self, fd: int) -> None:
        try:
            super().sync_early(fd)
        finally:
            self.synced_early.set()


def test_a_very_large_batch_is_written_out_while_it_is_staged_and_synced_all_the_same(folder: Path) -> None:
    faults = Faults()
    disk = ObservedDisk(faults)
    with FileObjects(str(folder), disk).batch() as batch:
        digests = {batch.put(b"%d" % n) for n in range(1_200)}
        assert disk.synced_early.wait(PATIENCE)
        assert faults.calls("sync_all") == 0
    assert faults.calls("sync_all") == 2
    assert set(FileObjects(str(folder)).names()) == digests


def test_writing_out_early_may_fail_as_long_as_the_sync_of_the_commit_does_not(folder: Path) -> None:
    disk = ObservedDisk(Faults().at("sync_early", 1, OSError(errno.EIO, "broken")))
    objects = FileObjects(str(folder), disk)
    with objects.batch() as batch:
        digests = [batch.put(b"%d" % n) for n in range(600)]
        assert disk.synced_early.wait(PATIENCE)
    assert {objects.check(digest).state for digest in digests} == {"whole"}


def test_an_interrupt_while_writing_out_begins_ends_the_batch_and_does_not_hang(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("_thread.start_new_thread", interrupt)
    objects = FileObjects(str(folder))
    with pytest.raises(KeyboardInterrupt), objects.batch() as batch:
        for n in range(600):
            batch.put(b"%d" % n)
    assert not list(objects.names())
    assert not list(objects.strays())


def test_without_a_thread_or_a_descriptor_a_very_large_batch_is_written_out_at_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", none_left)
    faults = Faults()
    with FileObjects(str(folder), FaultyDisk(faults)).batch() as batch:
        for n in range(1_200):
            batch.put(b"%d" % n)
    assert (faults.calls("sync_early"), faults.calls("sync_all")) == (0, 2)


@pytest.mark.parametrize("size", [(256 << 10) - 1, 256 << 10, (1 << 20) + 1, (2 << 20) + 4096])
def test_large_bytes_are_written_whole_however_the_system_takes_them(folder: Path, on_disk: Path, size: int) -> None:
    data = os.urandom(size)
    disks = [(place, disk) for place in (folder, on_disk) for disk in (Disk(), FaultyDisk(Faults()))]
    for number, (place, disk) in enumerate(disks):
        root = place / str(number)
        root.mkdir()
        objects = FileObjects(str(root), disk)
        assert objects.get(objects.put(data)) == data


def test_threads_that_put_the_same_bytes_at_once_make_one_object(folder: Path) -> None:
    objects = FileObjects(str(folder))
    data = os.urandom(300 << 10)
    barrier = threading.Barrier(4)

    def put(batch: Batch) -> None:
        barrier.wait()
        for n in range(20):
            batch.put(b"%d" % n + data)

    with objects.batch() as batch:
        threads = [threading.Thread(target=put, args=(batch,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(objects.names()) == {Digest.of(b"%d" % n + data) for n in range(20)}
    assert not list(objects.strays())


def test_a_file_system_that_is_not_known_is_not_synced_as_a_whole() -> None:
    for place, can in (("/proc", False), ("/dev/shm", True)):  # noqa: S108  nothing is written there
        fd = os.open(place, os.O_RDONLY)
        assert Disk().can_sync_all(fd) == can
        os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        Disk().sync_all(-1)


@pytest.mark.parametrize(
    ("release", "reports"),
    [("4.19.0-1", False), ("5.7.19", False), ("5.8.0-63-generic", True), ("6.1", True), ("?", False)],
)
def test_a_system_that_does_not_tell_of_failed_write_outs_is_not_relied_on(release: str, reports: bool) -> None:  # noqa: FBT001
    assert reports_write_errors(release) == reports


def test_a_process_killed_at_any_call_leaves_everything_acknowledged_and_nothing_half(folder: Path) -> None:
    with start("kill_at_every_call", folder) as child:
        out, err = child.communicate()
    assert (child.returncode, err) == (0, b"")
    children = [msgspec.json.decode(line, type=KilledChild) for line in out.splitlines()]
    assert [killed.nth for killed in children] == list(range(1, len(children) + 1))
    (folder / "sound").mkdir()
    # One child was killed at each call, and the last one finished.
    assert [killed.killed for killed in children] == [True] * count_calls(folder / "sound").calls() + [False]
    assert {Digest(name) for name in children[-1].acknowledged} == set(ALL)
    for killed in children:
        root = folder / str(killed.nth)
        objects = FileObjects(str(root))
        assert_nothing_half(objects, list(killed.acknowledged))
        assert {stray.what for stray in objects.strays()} <= {"leftover"}
        assert_all_can_be_put(root)
        objects.sweep(older_than=FAR_AHEAD)
        assert not list(objects.strays())


@pytest.mark.parametrize(
    ("call", "nth", "visible"),
    [("write", 200, 0), ("sync_all", 1, 0), ("replace", 1, 0), ("replace", 200, 199), ("sync_all", 2, 300)],
)
def test_a_process_killed_in_a_large_batch_leaves_whole_objects_and_leftovers_only(
    folder: Path, call: str, nth: int, visible: int
) -> None:
    for shard in range(256):
        (folder / f"{shard:02x}").mkdir()
    with start("kill_in_a_large_batch", folder, call, str(nth)) as child:
        _, err = child.communicate()
    assert (child.returncode, err) == (-9, b"")
    objects = FileObjects(str(folder))
    assert [objects.check(name).state for name in objects.names()] == ["whole"] * visible
    assert {stray.what for stray in objects.strays()} <= {"leftover"}
    objects.sweep(older_than=FAR_AHEAD)
    assert not list(objects.strays())


def test_a_leftover_is_no_object_and_hides_none(folder: Path) -> None:
    objects = FileObjects(str(folder))
    digest = objects.put(ALONE)
    leftover = folder / ".staging" / "1234-0123456789abcdef"
    leftover.write_bytes(b"alo")
    assert list(objects.names()) == [digest]
    assert list(objects.strays()) == [Stray(name=".staging/1234-0123456789abcdef", what="leftover")]
