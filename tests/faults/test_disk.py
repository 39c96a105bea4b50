"""Every call to a disk fails once, in every way a disk fails, or is the last thing the process does."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.ports.objects import StorageFailed, StorageFull, StorageReadOnly, Stray
from contextplane.testing.faults import Faults, FaultyDisk
from tests.faults.children import CHUNKS, PUTS, Ended, everything_a_disk_does, start

CALLS = ("create", "write", "sync", "sync_folder", "make_folder", "replace", "touch", "remove")
ERRORS: dict[int, type[ContextPlaneError]] = {
    errno.ENOSPC: StorageFull,
    errno.EDQUOT: StorageFull,
    errno.EROFS: StorageReadOnly,
    errno.EIO: StorageFailed,
}
ALL = sorted(Digest.of(data) for data in {b"alone", *PUTS, b"".join(CHUNKS)})
FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


def calls_in_all(folder: Path) -> Faults:
    """How often a disk is asked for what when nothing fails."""
    faults = Faults()
    everything_a_disk_does(FileObjects(str(folder), FaultyDisk(faults)), lambda _: None)
    return faults


def assert_nothing_half(objects: FileObjects, acknowledged: list[str]) -> None:
    """What was acknowledged is whole, and so is whatever else can be seen."""
    assert [objects.check(Digest(name)).state for name in acknowledged] == ["whole"] * len(acknowledged)
    assert {objects.check(name).state for name in objects.names()} <= {"whole"}


def assert_all_can_be_put(root: Path) -> None:
    objects = FileObjects(str(root))
    everything_a_disk_does(objects, lambda _: None)
    assert list(objects.names()) == ALL
    assert {objects.check(name).state for name in ALL} == {"whole"}


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_is_told_by_its_code_and_leaves_nothing_half_done(
    folder: Path, call: str, number: int
) -> None:
    (folder / "sound").mkdir()
    count = calls_in_all(folder / "sound").calls(call)
    assert count > 0
    for nth in range(1, count + 1):
        root = folder / str(nth)
        root.mkdir()
        faults = Faults().at(call, nth, OSError(number, os.strerror(number)))
        objects = FileObjects(str(root), FaultyDisk(faults))
        acknowledged: list[str] = []
        with pytest.raises(ERRORS[number]) as failed:
            everything_a_disk_does(objects, acknowledged.append)
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


def test_a_failing_commit_of_a_batch_may_be_tried_again(folder: Path) -> None:
    faults = Faults().at("sync", 2, OSError(errno.ENOSPC, "full"))
    objects = FileObjects(str(folder), FaultyDisk(faults))
    with objects.batch() as batch:
        digests = [batch.put(data) for data in PUTS]
        with pytest.raises(StorageFull):
            batch.commit()
        assert not list(objects.names())
        batch.commit()
        assert [objects.check(digest).state for digest in digests] == ["whole"] * len(digests)
    assert not list(objects.strays())


def test_one_failing_sync_among_very_many_fails_the_whole_batch(folder: Path) -> None:
    faults = Faults().at("sync", 77, OSError(errno.EIO, "broken"))
    objects = FileObjects(str(folder), FaultyDisk(faults))
    with pytest.raises(StorageFailed), objects.batch() as batch:
        for n in range(100):
            batch.put(b"%d" % n)
    assert not list(objects.names())
    assert not list(objects.strays())


def test_a_process_killed_at_any_call_leaves_everything_acknowledged_and_nothing_half(folder: Path) -> None:
    with start("kill_at_every_call", folder) as child:
        out, err = child.communicate()
    assert (child.returncode, err) == (0, b"")
    ended = [msgspec.json.decode(line, type=Ended) for line in out.splitlines()]
    assert [one.nth for one in ended] == list(range(1, len(ended) + 1))
    (folder / "sound").mkdir()
    # One was killed at each of the calls there are, and the last one came through.
    assert [one.killed for one in ended] == [True] * calls_in_all(folder / "sound").calls() + [False]
    assert {Digest(name) for name in ended[-1].acknowledged} == set(ALL)
    for one in ended:
        root = folder / str(one.nth)
        objects = FileObjects(str(root))
        assert_nothing_half(objects, list(one.acknowledged))
        assert {stray.what for stray in objects.strays()} <= {"leftover"}
        assert_all_can_be_put(root)
        objects.sweep(older_than=FAR_AHEAD)
        assert not list(objects.strays())


def test_a_leftover_is_no_object_and_hides_none(folder: Path) -> None:
    objects = FileObjects(str(folder))
    digest = objects.put(b"alone")
    leftover = folder / ".staging" / "1234-0123456789abcdef"
    leftover.write_bytes(b"alo")
    assert list(objects.names()) == [digest]
    assert list(objects.strays()) == [Stray(name=".staging/1234-0123456789abcdef", what="leftover")]
