"""Archives as tar files: every tar program reads what we write, and we read nothing but that."""

import errno
import io
import os
import tarfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.archive import (
    ArchiveReader,
    ArchiveTargetExists,
    archive_header,
    reading_archive,
    writing_archive,
)
from contextplane.adapters.files.disk import Disk
from contextplane.errors import ContextPlaneError
from contextplane.model.archive import (
    HEADER_MOST,
    HEADER_NAME,
    MEMBER_MOST,
    ArchiveInvalid,
    ArchiveTooLarge,
    ArchiveTooNew,
    Carried,
    Header,
    entry_bytes,
    entry_name,
    header_bytes,
    object_name,
    read_header,
)
from contextplane.model.canonical import Json, canonical
from contextplane.model.handoff_events import Kept
from contextplane.model.ids import Digest, HandoffId
from contextplane.ports.objects import SourceUnreadable, StorageFailed, StorageFull, StorageReadOnly
from contextplane.testing.faults import Faults, FaultyDisk

PACK = Digest.of(b"pack")
FIRST = header_bytes(Header(roots=(PACK,)))
DATA = b"some bytes" * 100
END = bytes(1024)


def member(name: str, data: bytes) -> bytes:
    return archive_header(name, len(data)) + data + bytes(-len(data) % 512)


HEAD = member(HEADER_NAME, FIRST)
OBJECT = member(object_name(Digest.of(DATA)), DATA)
ENTRY = member(entry_name(PACK), entry_bytes(PACK))
WHOLE = HEAD + OBJECT + ENTRY + END


def read(data: bytes) -> list[tuple[str, Digest, bytes]]:
    archive = ArchiveReader(io.BufferedReader(io.BytesIO(data)))
    return [(one.kind, one.digest, b"".join(one.chunks)) for one in archive.members()]


def test_what_was_written_is_read_back() -> None:
    assert read(WHOLE) == [("object", Digest.of(DATA), DATA), ("entry", PACK, entry_bytes(PACK))]


def test_what_nobody_read_is_passed_over() -> None:
    archive = ArchiveReader(io.BufferedReader(io.BytesIO(WHOLE)))
    assert [one.kind for one in archive.members()] == ["object", "entry"]


# --- the header of a member -------------------------------------------------------------------------------------------


@given(st.integers(0, MEMBER_MOST))
def test_other_programs_read_the_same_name_and_size(size: int) -> None:
    name = object_name(PACK)
    info = tarfile.TarInfo.frombuf(archive_header(name, size), "ascii", "strict")
    assert (info.name, info.size, info.mode, info.mtime) == (name, size, 0o444, 0)
    assert (info.uid, info.gid, info.uname, info.gname, info.isreg()) == (0, 0, "", "", True)


@given(st.integers(0, 511), st.integers(1, 255))
def test_no_byte_of_a_header_can_be_another(at: int, change: int) -> None:
    place = len(HEAD) + at
    data = WHOLE[:place] + bytes([WHOLE[place] ^ change]) + WHOLE[place + 1 :]
    with pytest.raises(ArchiveInvalid):
        read(data)


def _other(change: Callable[[tarfile.TarInfo], None]) -> bytes:
    """The second member as another program may write it, with a right checksum."""
    info = tarfile.TarInfo.frombuf(OBJECT[:512], "ascii", "strict")
    change(info)
    return info.tobuf(tarfile.PAX_FORMAT)


def test_other_programs_write_the_same_header() -> None:
    assert _other(lambda _: None) == OBJECT[:512]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", tarfile.SYMTYPE),
        ("type", tarfile.LNKTYPE),
        ("type", tarfile.CHRTYPE),
        ("type", tarfile.BLKTYPE),
        ("type", tarfile.FIFOTYPE),
        ("type", tarfile.DIRTYPE),
        ("type", tarfile.GNUTYPE_SPARSE),
        ("type", tarfile.XHDTYPE),
        ("linkname", "/etc/passwd"),
        ("mode", 0o4755),
        ("uid", 1000),
        ("uname", "root"),
        ("mtime", 1),
        ("name", "/etc/passwd"),
        ("name", "../../etc/passwd"),
        ("name", "objects/../../x"),
        ("name", "./" + object_name(PACK)),
        ("name", "objects/" + PACK.hex),
        ("name", object_name(PACK).upper()),
        ("name", object_name(PACK) + "\n"),
        ("name", object_name(PACK) + "/x"),
        ("name", "packs/" + PACK.hex[:-1]),
        ("name", "packs/\xff"),
        ("name", "x" * 200),
        ("name", HEADER_NAME),
        ("size", MEMBER_MOST + 1),
    ],
)
def test_a_member_of_any_other_form_is_refused(field: str, value: object) -> None:
    header = _other(lambda info: setattr(info, field, value))
    with pytest.raises(ArchiveInvalid):
        read(HEAD + header + OBJECT[512:] + ENTRY + END)


@pytest.mark.parametrize("size", [MEMBER_MOST + 1, 2**87])
def test_a_size_beyond_the_limit_is_refused_before_it_is_read(size: int) -> None:
    with pytest.raises(ArchiveInvalid, match="larger than"):
        read(HEAD + archive_header(object_name(PACK), size) + END)


def test_a_size_has_one_form() -> None:
    header = bytearray(OBJECT[:512])
    header[124:136] = b"\x80" + len(DATA).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert tarfile.TarInfo.frombuf(bytes(header), "ascii", "strict").size == len(DATA)
    with pytest.raises(ArchiveInvalid):
        read(HEAD + bytes(header) + OBJECT[512:] + ENTRY + END)


# --- the file as a whole ----------------------------------------------------------------------------------------------


@given(st.integers(0, len(WHOLE) - 1))
def test_a_truncated_archive_is_refused(length: int) -> None:
    with pytest.raises(ArchiveInvalid):
        read(WHOLE[:length])


@pytest.mark.parametrize(
    "data",
    [
        HEAD + OBJECT + OBJECT + ENTRY + END,
        HEAD + ENTRY + OBJECT + END,
        HEAD + ENTRY + ENTRY + END,
        HEAD + HEAD + OBJECT + ENTRY + END,
        OBJECT + ENTRY + END,
        HEAD + OBJECT[:-1] + b"x" + ENTRY + END,
        HEAD + bytes(512) + OBJECT + ENTRY + END,
        WHOLE + b"\0",
        WHOLE + bytes(512),
        WHOLE + WHOLE,
        END,
        b"",
        b"x",
        b"x" * 5000,
    ],
)
def test_an_archive_in_any_other_order_is_refused(data: bytes) -> None:
    with pytest.raises(ArchiveInvalid):
        read(data)


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"])
@pytest.mark.parametrize("length", [0, 5000])
def test_a_compressed_file_is_refused_and_told_so(magic: bytes, length: int) -> None:
    with pytest.raises(ArchiveInvalid, match="compressed"):
        read(magic + bytes(length))


def test_more_members_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextplane.adapters.files.archive.MEMBERS_MOST", 3)
    assert len(read(WHOLE)) == 2
    monkeypatch.setattr("contextplane.adapters.files.archive.MEMBERS_MOST", 2)
    with pytest.raises(ArchiveInvalid, match="members"):
        read(WHOLE)


def test_a_first_member_beyond_its_limit_is_refused() -> None:
    with pytest.raises(ArchiveInvalid):
        read(member(HEADER_NAME, b" " * (HEADER_MOST + 1)) + OBJECT + ENTRY + END)


# --- the first member -------------------------------------------------------------------------------------------------


@given(st.sets(st.binary(max_size=2), min_size=1), st.sets(st.binary(max_size=2)))
def test_a_header_is_read_as_it_was_written(roots: set[bytes], parents: set[bytes]) -> None:
    header = Header(roots=tuple(sorted(map(Digest.of, roots))), parents=tuple(sorted(map(Digest.of, parents - roots))))
    assert read_header(header_bytes(header)) == header


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        FIRST + b"\n",
        FIRST.replace(b":1,", b": 1,"),
        FIRST.replace(b":1,", b":0,"),
        FIRST.replace(b":1,", b":true,"),
        FIRST.replace(b"{", b'{"also":1,'),
        FIRST.replace(b"{", b'{"format":1,'),
        FIRST.replace(b"ctx://", b"sha256:"),
        FIRST.replace(PACK.hex.encode(), PACK.hex.upper().encode()),
        b'{"format":1,"parents":[],"roots":[]}',
        b'{"format":1,"roots":["ctx://%b"]}' % PACK.hex.encode(),
        b'{"format":1,"parents":["ctx://%b"],"roots":["ctx://%b"]}' % (PACK.hex.encode(), PACK.hex.encode()),
        b'{"format":1,"parents":[],"roots":["ctx://%b","ctx://%b"]}' % (b"2" * 64, b"1" * 64),
        b'{"format":1,"parents":[],"roots":["ctx://%b","ctx://%b"]}' % (b"1" * 64, b"1" * 64),
    ],
)
def test_any_other_header_is_refused(data: bytes) -> None:
    with pytest.raises(ArchiveInvalid):
        read_header(data)


@given(
    st.dictionaries(
        st.from_regex(r"pk_[a-z2-7]{8}", fullmatch=True).map(HandoffId),
        st.sets(st.integers(1, 2**53 - 1), min_size=1, max_size=5),
        min_size=1,
        max_size=4,
    )
)
def test_a_header_with_handoff_packs_is_read_as_it_was_written(packs: dict[HandoffId, set[int]]) -> None:
    carried = tuple(
        Carried(
            id=one,
            revisions=tuple(Kept(revision=n, digest=Digest.of(f"{one}@{n}".encode())) for n in sorted(packs[one])),
        )
        for one in sorted(packs)
    )
    for roots in ((), (PACK,)):
        header = Header(roots=roots, handoffs=carried)
        assert read_header(header_bytes(header)) == header


ONE = {"digest": str(PACK), "revision": 1}


@pytest.mark.parametrize(
    "handoffs",
    [
        [],
        [{"id": "pk_nope", "revisions": [ONE]}],
        [{"id": "pk_abcd2345", "revisions": []}],
        [{"id": "pk_abcd2345", "revisions": [{**ONE, "revision": 0}]}],
        [{"id": "pk_abcd2345", "revisions": [{**ONE, "digest": "sha256:ab"}]}],
        [{"id": "pk_abcd2345", "revisions": [ONE, ONE]}],
        [{"id": "pk_abcd2345", "revisions": [ONE, {**ONE, "revision": 2}]}],
        [{"id": "pk_abcd2345", "revisions": [ONE]}, {"id": "pk_aaaaaaaa", "revisions": [ONE]}],
        [{"id": "pk_abcd2345", "revisions": [ONE], "more": 1}],
    ],
    ids=str,
)
def test_handoff_packs_out_of_order_twice_or_of_another_form_are_refused(handoffs: list[Json]) -> None:
    with pytest.raises(ArchiveInvalid):
        read_header(canonical({"format": 2, "handoffs": handoffs, "parents": [], "roots": []}))


def test_a_later_format_is_refused_as_such() -> None:
    with pytest.raises(ArchiveTooNew):
        read_header(b'{"format":3,"something":"else"}')


def test_more_packs_than_a_header_holds_are_refused() -> None:
    with pytest.raises(ArchiveTooLarge):
        header_bytes(Header(roots=tuple(Digest(f"{n:064x}") for n in range(15_000))))


# --- files ------------------------------------------------------------------------------------------------------------


def write(path: Path, *chunks: bytes, size: int | None = None) -> None:
    with writing_archive(str(path)) as archive:
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
    with writing_archive(str(target)) as archive:
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
    with pytest.raises(ArchiveTargetExists), writing_archive(str(target)) as archive:
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
    with writing_archive(str(target), OneName()) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
    assert target.read_bytes() == SAME
    with pytest.raises(ArchiveTargetExists), writing_archive(str(tmp_path / "y.tar"), OneName()):
        (tmp_path / "y.tar").write_bytes(b"theirs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar", "y.tar"]
    assert (tmp_path / "y.tar").read_bytes() == b"theirs"


def test_before_it_is_whole_there_is_nothing_that_a_killed_process_could_leave(tmp_path: Path) -> None:
    fd = Disk().create_nameless(str(tmp_path), 0o666)
    if fd is None:
        pytest.skip("files without a name cannot be made here")
    os.close(fd)
    with writing_archive(str(tmp_path / "x.tar")) as archive:
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
    with nullcontext() if same else pytest.raises(ArchiveTargetExists), writing_archive(str(target), disk()) as archive:
        archive.add(object_name(PACK), 3, [b"one"])
        target.write_bytes(theirs)
    assert archive.new is not same
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.tar", theirs)]


@pytest.mark.parametrize(("call", "nth"), [("create", 1), ("write", 1), ("write", 3), ("sync", 1), ("rename_new", 1)])
def test_a_disk_that_fails_leaves_nothing_and_the_error_names_the_file_that_was_asked_for(
    tmp_path: Path, call: str, nth: int
) -> None:
    disk = FaultyDisk(Faults().at(call, nth, OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(StorageFull) as caught, writing_archive(str(tmp_path / "x.tar"), disk) as archive:
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
        write(tmp_path / "x.tar", b"one", size=MEMBER_MOST + 1)
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


@pytest.mark.parametrize("name", ["absent", "."])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceUnreadable), reading_archive(str(tmp_path / name)):
        raise AssertionError(name)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here that opens and cannot be read")
def test_a_file_that_stops_being_readable_is_told() -> None:
    with pytest.raises(SourceUnreadable), reading_archive("/proc/self/mem"):
        raise AssertionError


@given(st.binary(max_size=2000))
def test_any_bytes_at_all_are_refused_with_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(ContextPlaneError):
        read(HEAD + data)
