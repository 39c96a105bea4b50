"""An archive as a file: whole or not there, and nothing of others is replaced."""

import errno
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from contextplane.adapters.files.archive import (
    ArchiveTargetExists,
    archive_header,
    archive_writer,
)
from contextplane.adapters.files.disk import Disk
from contextplane.model.archive import (
    MAX_MEMBER_BYTES,
    ArchiveTooLarge,
    object_name,
)
from contextplane.model.ids import Digest
from contextplane.ports.objects import StorageFailed, StorageFull, StorageReadOnly
from contextplane.testing.faults import Faults, FaultyDisk

PACK = Digest.of(b"pack")
END = bytes(1024)


def member(name: str, data: bytes) -> bytes:
    return archive_header(name, len(data)) + data + bytes(-len(data) % 512)


def write(path: Path, *chunks: bytes, size: int | None = None) -> None:
    with archive_writer(str(path)) as archive:
        archive.add(object_name(PACK), sum(map(len, chunks)) if size is None else size, chunks)


def test_a_file_is_there_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "x.tar"
    write(target, b"one", b"two" * 500)
    assert target.read_bytes() == member(object_name(PACK), b"one" + b"two" * 500) + END
    assert list(tmp_path.iterdir()) == [target]


def test_the_very_same_file_is_left_as_it_is_and_told(tmp_path: Path) -> None:
    target = tmp_path / "x.tar"
    write(target, b"one")
    before = target.stat()
    with archive_writer(str(target)) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
    assert (archive.new, archive.written) == (False, before.st_size)
    assert (target.stat().st_ino, target.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


SAME = member(object_name(PACK), b"one") + END


@pytest.mark.parametrize("before", [b"", b"another", SAME[:-1], SAME + b"\0", SAME.replace(b"one", b"two")])
def test_any_other_file_is_a_conflict_and_stays(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "x.tar").write_bytes(before)
    with pytest.raises(ArchiveTargetExists):
        write(tmp_path / "x.tar", b"one")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.tar", before)]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "x.tar"
    with pytest.raises(ArchiveTargetExists), archive_writer(str(target)) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
        target.write_bytes(b"theirs")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.tar", b"theirs")]


class OneName(Disk):
    """A disk on which a file has one name, always, and only one."""

    def create_nameless(self, folder: str, mode: int) -> int | None:  # noqa: ARG002  it never can
        return None

    def rename_new(self, source: str, target: str) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted", source, None, target)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "link", refuse)
            super().rename_new(source, target)


def test_where_a_file_has_one_name_only_nothing_is_replaced_either(tmp_path: Path) -> None:
    target = tmp_path / "x.tar"
    with archive_writer(str(target), OneName()) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
    assert target.read_bytes() == SAME
    with pytest.raises(ArchiveTargetExists), archive_writer(str(tmp_path / "y.tar"), OneName()):
        (tmp_path / "y.tar").write_bytes(b"theirs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar", "y.tar"]
    assert (tmp_path / "y.tar").read_bytes() == b"theirs"


def test_before_it_is_whole_there_is_nothing_that_a_killed_process_could_leave(tmp_path: Path) -> None:
    fd = Disk().create_nameless(str(tmp_path), 0o666)
    if fd is None:
        pytest.skip("files without a name cannot be made here")
    os.close(fd)
    with archive_writer(str(tmp_path / "x.tar")) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
        assert list(tmp_path.iterdir()) == []
    assert (tmp_path / "x.tar").read_bytes() == SAME


@pytest.mark.parametrize("disk", [Disk, OneName], ids=["nameless", "one-name"])
@pytest.mark.parametrize("theirs", [SAME, SAME[:-1], SAME + b"\0", SAME.replace(b"one", b"two")])
def test_who_was_faster_with_the_very_same_bytes_is_no_conflict(
    tmp_path: Path, disk: type[Disk], theirs: bytes
) -> None:
    target = tmp_path / "x.tar"
    same = theirs == SAME
    with nullcontext() if same else pytest.raises(ArchiveTargetExists), archive_writer(str(target), disk()) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
        target.write_bytes(theirs)
    assert archive.new is not same
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.tar", theirs)]


@pytest.mark.parametrize(("call", "nth"), [("create", 1), ("write", 1), ("write", 3), ("sync", 1), ("rename_new", 1)])
def test_a_disk_that_fails_leaves_nothing_and_the_error_names_the_file_that_was_asked_for(
    tmp_path: Path, call: str, nth: int
) -> None:
    disk = FaultyDisk(Faults().at(call, nth, OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(StorageFull) as caught, archive_writer(str(tmp_path / "x.tar"), disk) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
    assert caught.value.at == str(tmp_path / "x.tar")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [2, 4])
def test_a_member_that_is_not_of_its_size_leaves_no_file(tmp_path: Path, size: int) -> None:
    with pytest.raises(StorageFailed, match="size changed"):
        write(tmp_path / "x.tar", b"one", size=size)
    assert list(tmp_path.iterdir()) == []


def test_a_member_beyond_the_limit_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ArchiveTooLarge):
        write(tmp_path / "x.tar", b"one", size=MAX_MEMBER_BYTES + 1)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "x.tar")
    write(tmp_path / "link", b"one")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "x.tar").is_file()


def test_nothing_but_a_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "absent/x.tar", "n" * 300):
        with pytest.raises((StorageFailed, StorageReadOnly)) as caught:
            write(tmp_path / name, b"one")
        assert caught.value.at == str(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]
