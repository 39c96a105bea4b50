"""Compares two contents: a unified diff if both are text, else the reason why there is none.

Only bytes that match their digest are compared: damage is a result of its own, never a difference of texts.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from difflib import unified_diff
from typing import Literal, assert_never

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import Objects
from contextplane.store.damage import Damage, damage_by, damage_in, damage_sentence

__all__ = [
    "MAX_BYTES",
    "MAX_LINES",
    "MAX_LINE_WIDTH",
    "TextDiff",
    "TextState",
    "diff_contents",
    "diff_texts",
    "diff_with_bytes",
]

MAX_LINES = 200
"""At most so many lines of a diff are shown."""

MAX_LINE_WIDTH = 1_000
"""At most so many characters of a line are shown: a whole document may be on one line."""

MAX_BYTES = 1 << 20
"""A larger content is not compared as text."""

_MAX_COMPARED_LINES = 2_000  # of the differing lines of a content: the work of difflib grows faster than their number
_CONTEXT = 3
_BEFORE = 100  # characters of a long line that are shown before the first difference
_HEADER = re.compile(r"@@ -([0-9]+)(.*) \+([0-9]+)(.*) @@")
_NO_NEWLINE = "\n\\ No newline at end of file"

TextState = Literal["text", "binary", "too_large", "missing", "damaged", "left_out"]


class TextDiff(Value, frozen=True):
    """How two contents differ. `lines`: a unified diff; `cut`: there are more; `why`: why there are none."""

    state: TextState
    lines: tuple[str, ...] = ()
    cut: bool = False
    why: str = ""


def diff_contents(a: str, b: str, objects: Objects, *, names: tuple[str, str]) -> TextDiff:
    """Compare the contents behind two references, called `names` in messages. No reference: no content."""
    # Both are loaded before either is reported: damage of one side outweighs the size or the kind of the other.
    return _diff_loaded([_content(name, ref, objects) for name, ref in zip(names, (a, b), strict=True)])


def diff_with_bytes(recorded: str, data: bytes, objects: Objects) -> TextDiff:
    """Compare the content behind a reference with bytes that are not in the store."""
    return _diff_loaded([_content("what was recorded", recorded, objects), _text("what came now", data)])


def _diff_loaded(contents: list[str | TextDiff]) -> TextDiff:
    """Compare two loaded contents. If either is no text, the gravest reason is the result."""
    refusals = [content for content in contents if isinstance(content, TextDiff)]
    if refusals:
        return min(refusals, key=lambda refusal: _rank(refusal.state))
    ours, theirs = (content for content in contents if isinstance(content, str))
    return diff_texts(ours, theirs)


def diff_texts(a: str, b: str) -> TextDiff:
    """Compare two texts."""
    # A missing newline at the end is shown only if it is a difference.
    mark_end = bool(a and b) and a.endswith("\n") != b.endswith("\n")
    return _unified_hunks(_lines(a, mark_end=mark_end), _lines(b, mark_end=mark_end))


def _rank(state: TextState) -> int:
    """The rank of a reason, the gravest first."""
    match state:
        case "damaged":
            return 0
        case "missing":
            return 1
        case "too_large":
            return 2
        case "binary":
            return 3
        case "left_out" | "text":  # no state of a single content
            return 4
        case unreachable:
            assert_never(unreachable)


def _content(where: str, ref: str, objects: Objects) -> str | TextDiff:
    """Load the text behind a reference, or say why there is none."""
    if not ref:
        return ""
    try:
        digest = Digest.parse(ref)
        if objects.size(digest) > MAX_BYTES:
            return _large(where, digest, objects)
        data = objects.get(digest)
    except ContextPlaneError as error:
        damage = damage_by(error)
        if damage is None:
            return TextDiff(state="missing", why=f"what {where} refers to is not understood: {error.message}")
        return _damage_result(where, damage, error.message)
    return _text(where, data)


def _damage_result(where: str, damage: Damage, why: str) -> TextDiff:
    sentence = damage_sentence(where, damage, why)
    match damage:
        case "tampered":
            return TextDiff(state="damaged", why=sentence)
        case "missing" | "unreadable":
            return TextDiff(state="missing", why=sentence)
        case unreachable:
            assert_never(unreachable)


def _text(where: str, data: bytes) -> str | TextDiff:
    if len(data) > MAX_BYTES:
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
        return _damage_result(where, damage, condition.why)
    return TextDiff(state="too_large", why=f"{where} is too large to compare as text: {condition.size:,} bytes")


def _lines(text: str, *, mark_end: bool) -> list[str]:
    """Split a text at newlines, and nothing else. `mark_end`: mark a last line that has no newline."""
    *lines, last = text.split("\n")
    return [*lines, last + _NO_NEWLINE if mark_end else last] if last else lines


def _unified_hunks(a: list[str], b: list[str]) -> TextDiff:
    """The hunks of a unified diff. Common prefix and suffix are cut first: long texts differ in little."""
    shortest = min(len(a), len(b))
    before = next((n for n in range(shortest) if a[n] != b[n]), shortest)
    behind = next((n for n in range(shortest - before) if a[-1 - n] != b[-1 - n]), shortest - before)
    skip, drop = max(0, before - _CONTEXT), max(0, behind - _CONTEXT)
    some_a, some_b = a[skip : len(a) - drop], b[skip : len(b) - drop]
    cut = max(len(some_a), len(some_b)) > _MAX_COMPARED_LINES
    hunks = unified_diff(some_a[:_MAX_COMPARED_LINES], some_b[:_MAX_COMPARED_LINES], n=_CONTEXT, lineterm="")
    lines: list[str] = []
    last = 0
    for number, line in enumerate(hunks):
        if line.startswith("@@"):
            last = len(lines)
        if number > 1:  # the first two name files
            lines += (_shift_header(line, skip) if line.startswith("@@") else line).split("\n")
        if len(lines) > MAX_LINES:
            break
    else:
        # At the end of the compared part, lines seem to be missing that are only after it.
        lines = lines[:last] if cut and last else lines
    wide = any(len(line) > MAX_LINE_WIDTH for line in lines[:MAX_LINES])
    shown = _shorten_lines(lines[:MAX_LINES]) if wide else lines[:MAX_LINES]
    return TextDiff(state="text", lines=tuple(shown), cut=cut or wide or len(lines) > MAX_LINES)


def _shift_header(header: str, by: int) -> str:
    """Shift the line numbers of a hunk's header, so that they count from the start of the whole content."""
    return _HEADER.sub(lambda match: f"@@ -{int(match[1]) + by}{match[2]} +{int(match[3]) + by}{match[4]} @@", header)


def _shorten_lines(lines: list[str]) -> Iterator[str]:
    """Shorten long lines to the part around the first difference to the replacing line, else to the start."""
    for before, line, behind in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if len(line) <= MAX_LINE_WIDTH:
            yield line
            continue
        other = behind if line[0] == "-" else before
        start = max(_first_difference(line, other) - _BEFORE, 1) if {line[0], other[:1]} == {"-", "+"} else 1
        end = start + MAX_LINE_WIDTH
        left = f"[{start - 1:,} characters] " if start > 1 else ""
        right = f" [{len(line) - end:,} characters]" if len(line) > end else ""
        yield f"{line[0]}{left}{line[start:end]}{right}"


def _first_difference(a: str, b: str) -> int:
    """The first position after their marks where two lines differ."""
    ends = range(1, min(len(a), len(b)))
    return 1 + bisect_left(ends, 1, key=lambda end: a[1 : end + 1] != b[1 : end + 1])
