"""Two contents side by side: a diff that is true where both are text, and never one of bytes that are not whole."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.objects import FileObjects
from contextplane.audit.text_diff import MAX_BYTES, MAX_LINE_WIDTH, MAX_LINES, TextDiff, diff_contents
from contextplane.model.ids import Digest

NO_NEWLINE = "\\ No newline at end of file"
NAMES = ("ours", "theirs")


@pytest.fixture
def objects(tmp_path: Path) -> FileObjects:
    return FileObjects(str(tmp_path))


def place(folder: Path, digest: Digest) -> Path:
    return folder / digest.hex[:2] / digest.hex[2:]


def of_bytes(objects: FileObjects, a: bytes, b: bytes) -> TextDiff:
    return diff_contents(str(objects.put(a)), str(objects.put(b)), objects, names=NAMES)


def patched(lines: Sequence[str], hunks: Sequence[str]) -> list[str]:
    """What `patch` makes of it: every kept and removed line must stand where the hunk says."""
    done: list[str] = []
    at = 0
    for line in hunks:
        if line.startswith("@@"):
            match = re.fullmatch(r"@@ -([0-9]+)(,0)?.*@@", line)
            assert match is not None
            start = int(match[1]) - (0 if match[2] else 1)
            done += lines[at:start]
            at = start
        elif line[0] == "+":
            done.append(line[1:])
        else:
            assert lines[at] == line[1:]
            at += 1
            done += [line[1:]] if line[0] == " " else []
    return [*done, *lines[at:]]


TEXT = st.lists(st.sampled_from(["a", "b", "c", "", "\u2028", "é\r", "-", "@@ -1 +1 @@"]), max_size=30)


@given(TEXT, TEXT)
def test_the_diff_leads_from_the_one_text_to_the_other(a: list[str], b: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text_diff = of_bytes(
            FileObjects(folder), "".join(f"{x}\n" for x in a).encode(), "".join(f"{x}\n" for x in b).encode()
        )
    assert (text_diff.state, text_diff.cut, text_diff.why) == ("text", False, "")
    assert patched(a, text_diff.lines) == b
    assert bool(text_diff.lines) == (a != b)


def test_lines_are_counted_from_the_beginning_of_the_content(objects: FileObjects) -> None:
    lines = [f"line {n}" for n in range(20_000)]
    changed = [*lines[:9000], "new", *lines[9001:]]
    text_diff = of_bytes(objects, "\n".join(lines).encode(), "\n".join(changed).encode())
    assert text_diff.lines[0] == "@@ -8998,7 +8998,7 @@"
    assert [line for line in text_diff.lines if line[0] in "+-"] == ["-line 9000", "+new"]
    assert not text_diff.cut


def test_a_newline_at_the_end_is_told_where_it_is_the_difference(objects: FileObjects) -> None:
    assert of_bytes(objects, b"a\nb", b"a\nb\n").lines == ("@@ -1,2 +1,2 @@", " a", "-b", NO_NEWLINE, "+b")
    assert of_bytes(objects, b"a", b"b").lines == ("@@ -1 +1 @@", "-a", "+b")


def test_no_content_is_an_empty_text(objects: FileObjects) -> None:
    assert diff_contents("", str(objects.put(b"a\n")), objects, names=NAMES).lines == ("@@ -0,0 +1 @@", "+a")
    assert diff_contents(str(objects.put(b"a")), "", objects, names=NAMES).lines == ("@@ -1 +0,0 @@", "-a")


def test_a_long_diff_is_cut_and_says_so(objects: FileObjects) -> None:
    text_diff = of_bytes(objects, b"".join(b"a%d\n" % n for n in range(300)), b"b\n")
    assert (text_diff.state, len(text_diff.lines), text_diff.cut) == ("text", MAX_LINES, True)
    text_diff = of_bytes(objects, b"x\n" * 6000, b"y\n" * 6000)
    assert (len(text_diff.lines), text_diff.cut) == (MAX_LINES, True)


LONG = st.text("ab", min_size=990, max_size=1010)


@given(LONG, LONG)
def test_of_long_lines_a_part_is_told_that_has_the_difference_in_it(a: str, b: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text_diff = of_bytes(FileObjects(folder), f"same\n{a}\nsame\n".encode(), f"same\n{b}\nsame\n".encode())
    assert all(len(line) < MAX_LINE_WIDTH + 50 for line in text_diff.lines)
    assert text_diff.cut == (a != b and max(len(a), len(b)) >= MAX_LINE_WIDTH)
    assert (text_diff.lines == ()) == (a == b)
    if a != b:
        assert len({line[1:] for line in text_diff.lines[2:4]}) == 2


@pytest.mark.parametrize("at", [0, 1, 99, 100, 101, 5000, 9999])
def test_a_long_line_is_told_from_where_it_parts(objects: FileObjects, at: int) -> None:
    a = "x" * 10_000
    b = a[:at] + "y" + a[at + 1 :]
    _, ours, theirs = of_bytes(objects, a.encode(), b.encode()).lines
    skipped = max(at - 100, 0)
    assert ours.startswith("-" + (f"[{skipped:,} characters] x" if skipped else "x"))
    assert "x" * min(at, 100) + "y" in theirs


def test_what_lies_behind_the_part_that_is_compared_is_not_called_a_difference(objects: FileObjects) -> None:
    lines = [f"line {n}" for n in range(3000)]
    text_diff = of_bytes(objects, "\n".join(lines).encode(), "\n".join(["new", *lines[:-1], "end"]).encode())
    assert [line for line in text_diff.lines if line[0] in "+-"] == ["+new"]
    assert text_diff.cut


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b", b"text\x80"], ids=["no-utf-8", "nul", "half"])
def test_what_is_not_text_is_called_binary(objects: FileObjects, data: bytes) -> None:
    assert of_bytes(objects, b"text", data) == TextDiff(state="binary", why="theirs is not text")


def test_a_large_content_is_not_compared_as_text(objects: FileObjects) -> None:
    assert of_bytes(objects, b"a" * MAX_BYTES, b"b").state == "text"
    text_diff = of_bytes(objects, b"a" * (MAX_BYTES + 1), b"b")
    assert text_diff.state == "too_large"
    assert text_diff.why == "ours is too large to compare as text: 1,048,577 bytes"


@pytest.mark.parametrize("size", [10, MAX_BYTES + 10], ids=["small", "large"])
@pytest.mark.parametrize("bad", [0, 1], ids=["a", "b"])
def test_a_damaged_content_is_damaged_and_never_another_text(
    tmp_path: Path, objects: FileObjects, size: int, bad: int
) -> None:
    digests = [objects.put(b"a" * size), objects.put(b"\0 binary" * size)]
    damaged = place(tmp_path, digests[bad])
    damaged.chmod(0o644)
    damaged.write_bytes(b"b" * size)
    result = diff_contents(str(digests[0]), str(digests[1]), objects, names=NAMES)
    assert result == TextDiff(state="damaged", why=f"{NAMES[bad]} was tampered with")


def test_a_content_that_is_not_there_is_missing(tmp_path: Path, objects: FileObjects) -> None:
    here, gone = objects.put(b"here"), objects.put(b"gone")
    place(tmp_path, gone).unlink()
    result = diff_contents(str(here), str(gone), objects, names=NAMES)
    assert result == TextDiff(state="missing", why="theirs is missing")


def test_what_is_no_reference_names_nothing(objects: FileObjects) -> None:
    result = diff_contents("sha256:short", str(objects.put(b"here")), objects, names=NAMES)
    assert result.state == "missing"
    assert result.why.startswith("what ours refers to is not understood: not a digest")
