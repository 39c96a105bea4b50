"""Two contents side by side: a unified diff where both are text, and the reason where there is none.

Only bytes that match their digest are shown: damage is an answer of its own here, and never a difference of texts.
"""

import re
from difflib import unified_diff
from typing import Literal

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, Objects

__all__ = ["MOST_BYTES", "MOST_LINES", "TextDiff", "TextState", "text_diff"]

MOST_LINES = 200
"""No more lines of one diff are told."""

MOST_BYTES = 1 << 20
"""A larger content is not compared as text."""

_MOST_COMPARED = 2_000  # differing lines of one content: what difflib does with them grows faster than they do
_CONTEXT = 3
_HEADER = re.compile(r"@@ -([0-9]+)(.*) \+([0-9]+)(.*) @@")
_NO_NEWLINE = "\n\\ No newline at end of file"

TextState = Literal["text", "binary", "too_large", "missing", "damaged", "left_out"]


class TextDiff(Value, frozen=True):
    """How two contents differ. `lines`: those of a unified diff. `cut`: there are more. `why`: why there are none."""

    state: TextState
    lines: tuple[str, ...] = ()
    cut: bool = False
    why: str = ""


def text_diff(a: str, b: str, objects: Objects) -> TextDiff:
    """Compare the contents behind two references. An empty reference is an empty content."""
    # Both are looked at before anything is said: damage on either side outweighs the size or the kind of the other.
    contents = [_content("A", a, objects), _content("B", b, objects)]
    refused = [one for one in contents if isinstance(one, TextDiff)]
    if refused:
        return min(refused, key=lambda one: _WEIGHT.index(one.state))
    ours, theirs = (one for one in contents if isinstance(one, str))
    # That a text ends without a newline is told only where it is a difference.
    told = bool(ours and theirs) and ours.endswith("\n") != theirs.endswith("\n")
    return _unified(_lines(ours, told=told), _lines(theirs, told=told))


_WEIGHT: tuple[TextState, ...] = ("damaged", "missing", "too_large", "binary")


def _content(pack: str, ref: str, objects: Objects) -> str | TextDiff:
    """The text behind a reference, or why there is none."""
    where = f"{ref} of pack {pack}"
    if not ref:
        return ""
    try:
        digest = Digest.parse(ref.lower())  # upper case, as others may write it, names the same bytes
        if objects.size(digest) > MOST_BYTES:
            return _large(where, digest, objects)
        data = objects.get(digest)
    except ObjectCorrupt:
        return TextDiff(state="damaged", why=f"{where} is damaged")
    except ObjectNotFound:
        return TextDiff(state="missing", why=f"{where} is not in the store")
    except ContextPlaneError as error:
        return TextDiff(state="missing", why=f"{where} cannot be read: {error.message}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    return TextDiff(state="binary", why=f"{where} is not text") if "\0" in text else text


def _large(where: str, digest: Digest, objects: Objects) -> TextDiff:
    condition = objects.check(digest)
    if condition.state == "whole":
        return TextDiff(state="too_large", why=f"{where} is too large to compare as text: {condition.size:,} bytes")
    state: TextState = "damaged" if condition.state == "corrupt" else "missing"
    return TextDiff(state=state, why=f"{where} is {state}")


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
    return TextDiff(state="text", lines=tuple(lines[:MOST_LINES]), cut=cut or len(lines) > MOST_LINES)


def _moved(header: str, by: int) -> str:
    """A hunk's header, its line numbers counted from the beginning of the whole content."""
    return _HEADER.sub(lambda got: f"@@ -{int(got[1]) + by}{got[2]} +{int(got[3]) + by}{got[4]} @@", header)
