"""What refs point at: files are read once, lines are lines, and a bad file is a reason and nothing worse."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.workspace import FileSources
from contextplane.handoff.anchors import Standing, anchored, located
from contextplane.handoff.source import SourceReader, SourceRefused
from contextplane.model.handoff import Lines, Ref
from tests.unit.handoff.making import FixedSources, a_ref

MOST = 1000


def reader_of(data: bytes, path: str = "src/code.py") -> SourceReader:
    return SourceReader(FixedSources({path: data}), MOST)


@pytest.mark.parametrize(
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
    looked = reader_of(b"a\r\nb\r\nc\r\nd\r\n").look(ref)
    assert (looked.state, looked.code) == ("current", ("b", "c"))


def test_a_file_is_read_once_however_often_it_is_looked_at() -> None:
    sources = FixedSources({"src/code.py": b"a\nb\n"})
    reader = SourceReader(sources, MOST)
    for _ in range(3):
        assert reader.look(a_ref(start=1, end=2, lines=["a", "b"])).code == ("a", "b")
        assert reader.look(a_ref(path="not/there")).state == "unreadable"
        assert reader.lines("src/code.py") == ("a", "b")
    assert sources.asked == ["src/code.py", "not/there"]


texts = st.lists(st.sampled_from(["a", "b", "", "long enough to be telling by itself"]), max_size=14)


@given(texts, texts, st.sampled_from(["\n", "\r\n"]), st.data())
def test_a_look_finds_what_a_search_of_the_whole_file_finds(
    before: list[str], after: list[str], end_of_line: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(1, len(before) + 1))
    span = Lines(start=start, end=data.draw(st.integers(start, start + 3)))
    ref = Ref(key="ref", path="src/code.py", lines=span, anchor=anchored(before, span))
    text = end_of_line.join(after) + data.draw(st.sampled_from(["", end_of_line]))
    reader = reader_of(text.encode())
    looked, lines = reader.look(ref), reader.lines("src/code.py")
    wanted = located(lines, ref)
    assert (looked.state, looked.lines, looked.why) == (wanted.state, wanted.lines, wanted.why)
    assert looked.code == (lines[wanted.lines.start - 1 : wanted.lines.end] if wanted.lines else ())
    assert looked == reader.look(ref)


def test_the_last_line_of_a_file_counts_though_it_has_no_end() -> None:
    ref = a_ref(start=4, end=4, lines=["p", "q", "a", "}"])
    assert reader_of(b"p\nq\na\n}").look(ref).lines == Lines(start=4, end=4)
    assert reader_of(b"new\np\nq\na\n}").look(ref).lines == Lines(start=5, end=5)


def test_where_lines_stand_is_found_out_once_for_all_refs_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    by_mark = Standing._by_mark

    def counted(standing: Standing) -> dict[int, list[int]]:
        made.append(standing)
        return by_mark(standing)

    monkeypatch.setattr(Standing, "_by_mark", counted)
    lines = [f"line {number}" for number in range(100)]
    refs = [a_ref(f"ref-{start}", start=start, end=start + 1, lines=lines) for start in range(1, 90)]
    reader = reader_of("\n".join(line.upper() for line in lines).encode())
    assert {reader.look(ref).state for ref in refs} == {"gone"}
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
    looked = reader.look(a_ref(path="bad"))
    assert (looked.state, looked.why, looked.lines, looked.code) == ("unreadable", reason, None, ())
    assert looked.stale
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
    looked = SourceReader(FileSources(str(root)), MOST).look(a_ref(path=path))
    assert looked.state == "unreadable"
    assert looked.why
    assert looked.code == ()


def test_whether_a_file_outside_exists_cannot_be_found_out(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("secret\n", encoding="utf-8")
    root = tmp_path / "root"
    root.mkdir()
    reader = SourceReader(FileSources(str(root)), MOST)
    assert reader.look(a_ref(path="../there")) == reader.look(a_ref(path="../not-there"))


def test_a_file_of_just_the_most_bytes_is_read() -> None:
    assert reader_of(b"x" * MOST).lines("src/code.py") == ("x" * MOST,)


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "code.py").write_text("one\n", encoding="utf-8")
    (tmp_path / "linked").symlink_to("real")
    reader = SourceReader(FileSources(str(tmp_path)), MOST)
    assert reader.look(a_ref(path="linked/code.py", lines=["one"])).code == ("one",)


class FailingSources:
    """A disk that gives some bytes of each file and then fails."""

    def chunks(self, path: str) -> Iterator[bytes]:
        yield b"some"
        raise OSError(errno.EIO, "Input/output error", path)


def test_a_file_that_fails_half_way_is_a_reason_too() -> None:
    looked = SourceReader(FailingSources(), MOST).look(a_ref(path="bad"))
    assert (looked.state, looked.code) == ("unreadable", ())
    assert "Input/output error" in looked.why


@pytest.mark.parametrize("state", ["current", "moved", "unanchored", "changed", "gone"])
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
    looked = reader_of("\n".join(later).encode()).look(ref)
    assert (looked.state, looked.stale) == (state, state in ("changed", "gone"))
