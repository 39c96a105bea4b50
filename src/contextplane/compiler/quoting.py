"""Text inside text: quoted so that no content can end its own quotation."""

import re

import msgspec

from contextplane.compiler.hashing import text_digest
from contextplane.model.json.canonical import canonical

__all__ = ["fence", "listed", "quoted", "quoted_json"]

# Ranges written down, and not asked of Python, whose versions know different versions of Unicode: the same text must
# always be quoted alike. Controls, breaks of lines, changes of direction, fillers and marks without width (but the two
# joiners, which several scripts need, and the one that makes a sign an emoji), and tags.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_START = len("sha256:")
_END = _START + 16


def quoted(text: str) -> str:
    """The text as a JSON string on one line. What does not show is written out, so that nothing hides in it."""
    return _printable(msgspec.json.encode(text).decode())


def quoted_json(value: object) -> str:
    """A value in its canonical form, on one line, with nothing hidden in its texts."""
    return _printable(canonical(value).decode())


def _printable(json: str) -> str:
    # JSON has the controls of ASCII written out already, but for the last. Each of the rest stands inside a string.
    if json.isascii() and "\x7f" not in json:
        return json
    return _HIDDEN.sub(_written_out, json)


def _written_out(hidden: re.Match[str]) -> str:
    units = hidden[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def listed(texts: tuple[str, ...]) -> str:
    """Several texts, each quoted."""
    return ", ".join(map(quoted, texts))


def fence(content: str, content_hash: str) -> str:
    """The mark that opens and closes a block: digits of the hash of its content, which do not occur in the content.

    Nobody can write a text that contains its own hash; should the first digits occur by chance, others are taken.
    """
    code = content_hash[_START:_END]
    while code in content:
        content_hash = text_digest(content_hash)
        code = content_hash[_START:_END]
    return code
