"""Quotes text inside text, so that no content can end its own quotation."""

import re

import msgspec

from contextplane.compiler.digests import text_digest
from contextplane.model.invisible_characters import CONTROLS, FORMATTING, LINE_SEPARATORS
from contextplane.model.json.canonical import canonical

__all__ = ["fence", "quote", "quote_json", "quote_list"]

# The two joiners, which several scripts need, and the character that makes a sign an emoji stay as they are.
_HIDDEN = re.compile(f"[{CONTROLS}\t\n\r{FORMATTING}{LINE_SEPARATORS}]")
_START = len("sha256:")
_END = _START + 16


def quote(text: str) -> str:
    """The text as a JSON string on one line, with invisible characters escaped."""
    return _escape_hidden(msgspec.json.encode(text).decode())


def quote_json(value: object) -> str:
    """The canonical form of a value, on one line, with invisible characters escaped."""
    return _escape_hidden(canonical(value).decode())


def _escape_hidden(json: str) -> str:
    # JSON escapes the ASCII controls already, except the last. All other hidden characters are inside a string.
    if json.isascii() and "\x7f" not in json:
        return json
    return _HIDDEN.sub(_escape, json)


def _escape(hidden: re.Match[str]) -> str:
    units = hidden[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def quote_list(texts: tuple[str, ...]) -> str:
    """The texts, each quoted, separated by commas."""
    return ", ".join(map(quote, texts))


def fence(content: str, content_hash: str) -> str:
    """The mark that opens and closes a block: digits of the hash of its content that do not occur in it.

    No text can be written that contains its own hash. If the first digits occur by chance, others are taken.
    """
    code = content_hash[_START:_END]
    while code in content:
        content_hash = text_digest(content_hash)
        code = content_hash[_START:_END]
    return code
