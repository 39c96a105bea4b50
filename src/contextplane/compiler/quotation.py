"""Quotes text inside text, so that no content can end its own quotation."""

import re

import msgspec

from contextplane.model.invisible_characters import CONTROLS, FORMATTING, LINE_SEPARATORS
from contextplane.model.json.canonical import canonical

__all__ = ["CONTINUES", "inline", "inline_list", "quote", "quote_json", "quote_lines", "quote_word"]

CONTINUES = "| "
"""Begins every line of a quoted text but its first. No other line of a prompt begins so."""

# The two joiners, which several scripts need, and the character that makes a sign an emoji stay as they are.
_HIDDEN = re.compile(f"[{CONTROLS}\t\n\r{FORMATTING}{LINE_SEPARATORS}]")
_HIDDEN_IN_LINES = re.compile(f"[{CONTROLS}\r{FORMATTING}{LINE_SEPARATORS}]")
# A name of a piece may end in no colon: the colon ends the names.
_WORD = re.compile(r"(?!:)[A-Za-z0-9_./@#+:-]++(?<!:)")


def quote(text: str) -> str:
    """The text as a JSON string on one line, with invisible characters escaped."""
    return _escape_hidden(msgspec.json.encode(text).decode())


def quote_json(value: object) -> str:
    """The canonical form of a value, on one line, with invisible characters escaped."""
    return _escape_hidden(canonical(value).decode())


def inline(text: str) -> str:
    """The text on one line, without quotes: line breaks and invisible characters are escaped."""
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_escape, text)


def inline_list(texts: tuple[str, ...]) -> str:
    """The texts on one line, separated by semicolons."""
    return "; ".join(map(inline, texts))


def quote_lines(text: str) -> str:
    """The text in its own lines. Each but the first is marked, so none begins like a line of the prompt."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN_IN_LINES.sub(_escape, text.replace("\r\n", "\n")).replace("\n", f"\n{CONTINUES}")


def quote_word(text: str) -> str:
    """A name as it is if it can be nothing but a name, else as a JSON string."""
    return text if _WORD.fullmatch(text) else quote(text)


def _escape_hidden(json: str) -> str:
    # JSON escapes the ASCII controls already, except the last. All other hidden characters are inside a string.
    if json.isascii() and "\x7f" not in json:
        return json
    return _HIDDEN.sub(_escape, json)


_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(hidden: re.Match[str]) -> str:
    if hidden[0] in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[hidden[0]]
    units = hidden[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))
