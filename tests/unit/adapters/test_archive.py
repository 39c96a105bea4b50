"""Archives as tar files: every tar program reads what we write, and we read nothing but that."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.archive import (
    ArchiveReader,
    archive_header,
    archive_reader,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.archive import (
    HEADER_NAME,
    MAX_HEADER_BYTES,
    MAX_MEMBER_BYTES,
    ArchiveInvalid,
    Header,
    entry_bytes,
    entry_name,
    header_bytes,
    object_name,
)
from contextplane.model.ids import Digest
from contextplane.ports.objects import SourceUnreadable
from tests.support.cases import cases

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
    return [(member.kind, member.digest, b"".join(member.chunks)) for member in archive.members()]


def test_what_was_written_is_read_back() -> None:
    assert read(WHOLE) == [("object", Digest.of(DATA), DATA), ("entry", PACK, entry_bytes(PACK))]


def test_what_nobody_read_is_passed_over() -> None:
    archive = ArchiveReader(io.BufferedReader(io.BytesIO(WHOLE)))
    assert [member.kind for member in archive.members()] == ["object", "entry"]


# --- the header of a member -------------------------------------------------------------------------------------------


@given(st.integers(0, MAX_MEMBER_BYTES))
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


@cases(
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
        ("size", MAX_MEMBER_BYTES + 1),
    ],
)
def test_a_member_of_any_other_form_is_refused(field: str, value: object) -> None:
    header = _other(lambda info: setattr(info, field, value))
    with pytest.raises(ArchiveInvalid):
        read(HEAD + header + OBJECT[512:] + ENTRY + END)


@pytest.mark.parametrize("size", [MAX_MEMBER_BYTES + 1, 2**87])
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


@cases(
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


@cases("magic", [b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"])
@cases("length", [0, 5000])
def test_a_compressed_file_is_refused_and_told_so(magic: bytes, length: int) -> None:
    with pytest.raises(ArchiveInvalid, match="compressed"):
        read(magic + bytes(length))


def test_more_members_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextplane.adapters.files.archive.MAX_MEMBERS", 3)
    assert len(read(WHOLE)) == 2
    monkeypatch.setattr("contextplane.adapters.files.archive.MAX_MEMBERS", 2)
    with pytest.raises(ArchiveInvalid, match="members"):
        read(WHOLE)


def test_a_first_member_beyond_its_limit_is_refused() -> None:
    with pytest.raises(ArchiveInvalid):
        read(member(HEADER_NAME, b" " * (MAX_HEADER_BYTES + 1)) + OBJECT + ENTRY + END)


@pytest.mark.parametrize("name", ["absent", "."])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceUnreadable), archive_reader(str(tmp_path / name)):
        raise AssertionError(name)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here that opens and cannot be read")
def test_a_file_that_stops_being_readable_is_told() -> None:
    with pytest.raises(SourceUnreadable), archive_reader("/proc/self/mem"):
        raise AssertionError


@given(st.binary(max_size=2000))
def test_any_bytes_at_all_are_refused_with_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(ContextPlaneError):
        read(HEAD + data)
