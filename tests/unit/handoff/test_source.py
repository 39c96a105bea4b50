"""What refs point at: files are read once, lines are lines, and a bad file is a reason and nothing worse."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.workspace import FileSources
from contextplane.handoff.anchors import LineIndex, locate_block, make_anchor
from contextplane.handoff.source import SourceReader, SourceRefused
from contextplane.model.handoff import LineRange, Ref
from tests.support.cases import cases
from tests.unit.handoff.builders import FixedSources, a_ref

MOST = 1000


def reader_of(data: bytes, path: str = "src/code.py") -> SourceReader:
    return SourceReader(FixedSources({path: data}), MOST)


@cases(
    ("data", "lines"),
    [
        (b"", ()),
        (b"\n", ("",)),
        (b"a", ("a",)),
        (b"a\n", ("a",)),
        (b"a\n\n", ("a", "")),
        (b"a\r\nb\r\n", ("a", "b")),
        (b"a\r\nb", ("a", "b")),
        (b"a\rb\n", ("a\rb",)),
        ("a\u2028b\x0cc\x85d\n".encode(), ("a\u2028b\x0cc\x85d",)),
        ("é\n".encode(), ("é",)),
    ],
)
def test_lines_end_with_a_line_feed_with_or_without_a_carriage_return(data: bytes, lines: tuple[str, ...]) -> None:
    assert reader_of(data).lines("src/code.py") == lines


def test_another_kind_of_line_end_is_no_change() -> None:
    ref = a_ref(start=2, end=3, lines=["a", "b", "c", "d"])
    located = reader_of(b"a\r\nb\r\nc\r\nd\r\n").locate(ref)
    assert (located.state, located.code) == ("current", ("b", "c"))


def test_a_file_is_read_once_however_often_it_is_looked_at() -> None:
    sources = FixedSources({"src/code.py": b"a\nb\n"})
    reader = SourceReader(sources, MOST)
    for _ in range(3):
        assert reader.locate(a_ref(start=1, end=2, lines=["a", "b"])).code == ("a", "b")
        assert reader.locate(a_ref(path="not/there")).state == "unreadable"
        assert reader.lines("src/code.py") == ("a", "b")
    assert sources.requests == ["src/code.py", "not/there"]


texts = st.lists(st.sampled_from(["a", "b", "", "long enough to be telling by itself"]), max_size=14)


@given(texts, texts, st.sampled_from(["\n", "\r\n"]), st.data())
def test_a_look_finds_what_a_search_of_the_whole_file_finds(
    before: list[str], after: list[str], end_of_line: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(1, len(before) + 1))
    span = LineRange(start=start, end=data.draw(st.integers(start, start + 3)))
    ref = Ref(key="ref", path="src/code.py", lines=span, anchor=make_anchor(before, span))
    text = end_of_line.join(after) + data.draw(st.sampled_from(["", end_of_line]))
    reader = reader_of(text.encode())
    located, lines = reader.locate(ref), reader.lines("src/code.py")
    expected = locate_block(lines, ref)
    assert (located.state, located.lines, located.why) == (expected.state, expected.lines, expected.why)
    assert located.code == (lines[expected.lines.start - 1 : expected.lines.end] if expected.lines else ())
    assert located == reader.locate(ref)


def test_the_last_line_of_a_file_counts_though_it_has_no_end() -> None:
    ref = a_ref(start=4, end=4, lines=["p", "q", "a", "}"])
    assert reader_of(b"p\nq\na\n}").locate(ref).lines == LineRange(start=4, end=4)
    assert reader_of(b"new\np\nq\na\n}").locate(ref).lines == LineRange(start=5, end=5)


def test_where_lines_stand_is_found_out_once_for_all_refs_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    by_mark = LineIndex._by_mark

    def counted(standing: LineIndex) -> dict[int, list[int]]:
        made.append(standing)
        return by_mark(standing)

    monkeypatch.setattr(LineIndex, "_by_mark", counted)
    lines = [f"line {number}" for number in range(100)]
    refs = [a_ref(f"ref-{start}", start=start, end=start + 1, lines=lines) for start in range(1, 90)]
    reader = reader_of("\n".join(line.upper() for line in lines).encode())
    assert {reader.locate(ref).state for ref in refs} == {"gone"}
    assert len(made) == 1


def a_folder(root: Path) -> None:
    (root / "bad").mkdir()


def a_pipe(root: Path) -> None:
    os.mkfifo(root / "bad")


def a_binary(root: Path) -> None:
    (root / "bad").write_bytes(b"\xff\xfe\x00")


def a_large_one(root: Path) -> None:
    (root / "bad").write_bytes(b"x" * (MOST + 1))


def a_link_out(root: Path) -> None:
    (root.parent / "secret").write_text("secret\n", encoding="utf-8")
    (root / "bad").symlink_to(root.parent / "secret")


def a_link_to_nothing(root: Path) -> None:
    (root / "bad").symlink_to(root / "nowhere")


def a_link_to_itself(root: Path) -> None:
    (root / "bad").symlink_to("bad")


def nothing(root: Path) -> None:
    assert root.is_dir()


BAD: list[tuple[Callable[[Path], None], str]] = [
    (a_folder, "not a regular file"),
    (a_pipe, "not a regular file"),
    (a_binary, "the file is not UTF-8 text"),
    (a_large_one, f"the file is larger than {MOST} bytes"),
    (a_link_out, "the path leads out of the source root"),
    (a_link_to_nothing, "the file is missing"),
    (a_link_to_itself, "cannot be read: Too many levels of symbolic links"),
    (nothing, "the file is missing"),
]


@pytest.mark.parametrize(("make", "reason"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_a_bad_file_is_a_state_with_its_reason(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    make(root)
    reader = SourceReader(FileSources(str(root)), MOST)
    located = reader.locate(a_ref(path="bad"))
    assert (located.state, located.why, located.lines, located.code) == ("unreadable", reason, None, ())
    assert located.stale
    with pytest.raises(SourceRefused) as caught:
        reader.lines("bad")
    assert (caught.value.code, caught.value.message, caught.value.at) == ("handoff_source_refused", reason, "bad")


@pytest.mark.parametrize(
    "path", ["../secret", "a/../../secret", "/etc/hostname", "nul\0byte", "\ud800", "x" * 5000, ""]
)
def test_a_path_that_leads_nowhere_good_is_a_reason_too(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret\n", encoding="utf-8")
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    located = SourceReader(FileSources(str(root)), MOST).locate(a_ref(path=path))
    assert located.state == "unreadable"
    assert located.why
    assert located.code == ()


def test_whether_a_file_outside_exists_cannot_be_found_out(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("secret\n", encoding="utf-8")
    root = tmp_path / "root"
    root.mkdir()
    reader = SourceReader(FileSources(str(root)), MOST)
    assert reader.locate(a_ref(path="../there")) == reader.locate(a_ref(path="../not-there"))


def test_a_file_of_just_the_most_bytes_is_read() -> None:
    assert reader_of(b"x" * MOST).lines("src/code.py") == ("x" * MOST,)


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "code.py").write_text("one\n", encoding="utf-8")
    (tmp_path / "linked").symlink_to("real")
    reader = SourceReader(FileSources(str(tmp_path)), MOST)
    assert reader.locate(a_ref(path="linked/code.py", lines=["one"])).code == ("one",)


class FailingSources:
    """A disk that gives some bytes of each file and then fails."""

    def chunks(self, path: str) -> Iterator[bytes]:
        yield b"some"
        raise OSError(errno.EIO, "Input/output error", path)


def test_a_file_that_fails_half_way_is_a_reason_too() -> None:
    located = SourceReader(FailingSources(), MOST).locate(a_ref(path="bad"))
    assert (located.state, located.code) == ("unreadable", ())
    assert "Input/output error" in located.why


@cases("state", ["current", "moved", "unanchored", "changed", "gone"])
def test_only_what_changed_or_is_gone_is_stale(state: str) -> None:
    lines = ["0", "1", "2", "3", "4", "5"]
    later = {
        "current": lines,
        "unanchored": lines,
        "moved": ["new", *lines],
        "changed": ["0", "1", "x", "3", "4", "5"],
        "gone": ["nothing", "of", "it"],
    }[state]
    ref = a_ref(start=3, end=3, lines=None if state == "unanchored" else lines)
    located = reader_of("\n".join(later).encode()).locate(ref)
    assert (located.state, located.stale) == (state, state in ("changed", "gone"))
