"""Two contents side by side: a unified diff where both are text, and the reason where there is none.

Only bytes that match their digest are shown: damage is an answer of its own here, and never a difference of texts.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from difflib import unified_diff
from typing import Literal

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import Objects
from contextplane.store.damage import Damage, damage_by, damage_in, said

__all__ = ["MOST_BYTES", "MOST_LINES", "MOST_WIDE", "TextDiff", "TextState", "compared", "diff_from", "text_diff"]

MOST_LINES = 200
"""No more lines of one diff are told."""

MOST_WIDE = 1_000
"""No more characters of one line are told: a whole document may be on one line."""

MOST_BYTES = 1 << 20
"""A larger content is not compared as text."""

_MOST_COMPARED = 2_000  # differing lines of one content: what difflib does with them grows faster than they do
_CONTEXT = 3
_BEFORE = 100  # characters of a long line that are told before the first that differs
_HEADER = re.compile(r"@@ -([0-9]+)(.*) \+([0-9]+)(.*) @@")
_NO_NEWLINE = "\n\\ No newline at end of file"

TextState = Literal["text", "binary", "too_large", "missing", "damaged", "left_out"]


class TextDiff(Value, frozen=True):
    """How two contents differ. `lines`: those of a unified diff. `cut`: there are more. `why`: why there are none."""

    state: TextState
    lines: tuple[str, ...] = ()
    cut: bool = False
    why: str = ""


def text_diff(a: str, b: str, objects: Objects, *, names: tuple[str, str]) -> TextDiff:
    """Compare the contents behind two references, which people know by `names`. An empty one is an empty content."""
    # Both are looked at before anything is said: damage on either side outweighs the size or the kind of the other.
    return _told([_content(name, ref, objects) for name, ref in zip(names, (a, b), strict=True)])


def diff_from(recorded: str, data: bytes, objects: Objects) -> TextDiff:
    """Compare the content behind a reference with bytes that are not in the store."""
    return _told([_content("what was recorded", recorded, objects), _text("what came now", data)])


def _told(contents: list[str | TextDiff]) -> TextDiff:
    refused = [content for content in contents if isinstance(content, TextDiff)]
    if refused:
        return min(refused, key=lambda text_diff: _WEIGHT.index(text_diff.state))
    ours, theirs = (content for content in contents if isinstance(content, str))
    return compared(ours, theirs)


def compared(a: str, b: str) -> TextDiff:
    """Compare two texts."""
    # That a text ends without a newline is told only where it is a difference.
    told = bool(a and b) and a.endswith("\n") != b.endswith("\n")
    return _unified(_lines(a, told=told), _lines(b, told=told))


_WEIGHT: tuple[TextState, ...] = ("damaged", "missing", "too_large", "binary")


def _content(where: str, ref: str, objects: Objects) -> str | TextDiff:
    """The text behind a reference, or why there is none."""
    if not ref:
        return ""
    try:
        digest = Digest.parse(ref)
        if objects.size(digest) > MOST_BYTES:
            return _large(where, digest, objects)
        data = objects.get(digest)
    except ContextPlaneError as error:
        damage = damage_by(error)
        if damage is None:
            return TextDiff(state="missing", why=f"what {where} refers to is not understood: {error.message}")
        return _damaged(where, damage, error.message)
    return _text(where, data)


def _damaged(where: str, damage: Damage, why: str) -> TextDiff:
    return TextDiff(state="damaged" if damage == "tampered" else "missing", why=said(where, damage, why))


def _text(where: str, data: bytes) -> str | TextDiff:
    if len(data) > MOST_BYTES:
        return TextDiff(state="too_large", why=f"{where} is too large to compare as text: {len(data):,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    return TextDiff(state="binary", why=f"{where} is not text") if "\0" in text else text


def _large(where: str, digest: Digest, objects: Objects) -> TextDiff:
    condition = objects.check(digest)
    damage = damage_in(condition)
    if damage is not None:
        return _damaged(where, damage, condition.why)
    return TextDiff(state="too_large", why=f"{where} is too large to compare as text: {condition.size:,} bytes")


def _lines(text: str, *, told: bool) -> list[str]:
    """Lines end with a newline and nothing else. `told`: a last one without it is another line than one with it."""
    *lines, last = text.split("\n")
    return [*lines, last + _NO_NEWLINE if told else last] if last else lines


def _unified(a: list[str], b: list[str]) -> TextDiff:
    """The hunks. What both begin and end with is left aside first: long texts differ mostly in little."""
    shortest = min(len(a), len(b))
    before = next((n for n in range(shortest) if a[n] != b[n]), shortest)
    behind = next((n for n in range(shortest - before) if a[-1 - n] != b[-1 - n]), shortest - before)
    skip, drop = max(0, before - _CONTEXT), max(0, behind - _CONTEXT)
    some_a, some_b = a[skip : len(a) - drop], b[skip : len(b) - drop]
    cut = max(len(some_a), len(some_b)) > _MOST_COMPARED
    hunks = unified_diff(some_a[:_MOST_COMPARED], some_b[:_MOST_COMPARED], n=_CONTEXT, lineterm="")
    lines: list[str] = []
    last = 0
    for number, line in enumerate(hunks):
        if line.startswith("@@"):
            last = len(lines)
        if number > 1:  # the first two name files
            lines += (_moved(line, skip) if line.startswith("@@") else line).split("\n")
        if len(lines) > MOST_LINES:
            break
    else:
        # Where the compared part ends, lines seem to be missing that only lie behind it.
        lines = lines[:last] if cut and last else lines
    wide = any(len(line) > MOST_WIDE for line in lines[:MOST_LINES])
    told = _narrowed(lines[:MOST_LINES]) if wide else lines[:MOST_LINES]
    return TextDiff(state="text", lines=tuple(told), cut=cut or wide or len(lines) > MOST_LINES)


def _moved(header: str, by: int) -> str:
    """A hunk's header, its line numbers counted from the beginning of the whole content."""
    return _HEADER.sub(lambda got: f"@@ -{int(got[1]) + by}{got[2]} +{int(got[3]) + by}{got[4]} @@", header)


def _narrowed(lines: list[str]) -> Iterator[str]:
    """Of long lines a part: where one and the line that took its place part, else the beginning."""
    for before, line, behind in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if len(line) <= MOST_WIDE:
            yield line
            continue
        other = behind if line[0] == "-" else before
        start = max(_parts_at(line, other) - _BEFORE, 1) if {line[0], other[:1]} == {"-", "+"} else 1
        end = start + MOST_WIDE
        left = f"[{start - 1:,} characters] " if start > 1 else ""
        right = f" [{len(line) - end:,} characters]" if len(line) > end else ""
        yield f"{line[0]}{left}{line[start:end]}{right}"


def _parts_at(a: str, b: str) -> int:
    """The first place behind their marks where two lines are different."""
    ends = range(1, min(len(a), len(b)))
    return 1 + bisect_left(ends, 1, key=lambda end: a[1 : end + 1] != b[1 : end + 1])
