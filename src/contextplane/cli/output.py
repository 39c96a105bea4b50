"""The output of a command: lines for people, JSON for machines, errors; and how values are formatted.

Text from outside is cleaned before it is printed: it stays on its line, and cannot send controls to the terminal.
"""

import sys
from collections.abc import Callable
from typing import TextIO

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value

__all__ = [
    "CommandOutput",
    "clean",
    "clean_lines",
    "clean_tabbed",
    "format_created",
    "format_second",
    "has_time",
    "human_size",
    "quantity",
    "shorten",
]

_COLORS = {"red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36", "bold": "1", "dim": "2"}
_UNIT = 1024
_LONGEST = 2000
_SECOND = len("2026-05-04 09:31:42")
_NONE = "no time"
_encoder = msgspec.json.Encoder(order="sorted", enc_hook=str)


class CommandOutput(Value, frozen=True):
    """The streams of one command, and the options of all verbs: `--json`, `--quiet`, `--no-color`."""

    json: bool = False
    quiet: bool = False
    color: bool = False
    out: TextIO = msgspec.field(default_factory=lambda: sys.stdout)
    err: TextIO = msgspec.field(default_factory=lambda: sys.stderr)

    def line(self, text: str = "") -> None:
        """Print a line for people: not with --json, not with --quiet."""
        if not self.json and not self.quiet:
            print(text, file=self.out)

    def entry(self, identity: str, text: str, problem: str = "") -> None:
        """Print an entry of a list: a line for people, and only its identity with --quiet.

        `problem` is what the line says to be wrong with it. --quiet does not hide that: it goes to standard error.
        """
        if self.json:
            return
        print(identity if self.quiet else text, file=self.out)
        if self.quiet and problem:
            print(f"ctx: {identity}: {problem}", file=self.err)

    def failure_line(self, text: str) -> None:
        """Print a line about a failure, which --quiet does not hide."""
        if not self.json:
            print(_redact(text), file=self.out)

    def note(self, text: str) -> None:
        """Print a note on standard error: something that is not the answer. --quiet hides it."""
        if not self.json and not self.quiet:
            print(f"ctx: {_redact(text)}", file=self.err)

    def warn(self, text: str) -> None:
        """Print a note on standard error that --quiet must not hide: the answer is not complete."""
        if not self.json:
            print(f"ctx: {_redact(text)}", file=self.err)

    def answer(self, value: object) -> None:
        """Print the answer for machines, one JSON document; nothing without --json."""
        if self.json:
            self.json_text(msgspec.json.format(_encode(value), indent=2).decode())

    def json_text(self, text: str) -> None:
        """Print a JSON document. Characters that control a terminal become escapes, which mean the same."""
        self.out.write(_escape_controls(text) + "\n")

    def error(self, error: ContextPlaneError) -> None:
        """Print an error on standard error: one line, or with --json one JSON document."""
        if self.json:
            fields = {
                "code": error.code,
                "family": error.family,
                "message": error.message,
                "at": error.at,
                "hint": error.hint,
                "details": error.details,
            }
            plain = _map_strings(msgspec.json.decode(_encode(fields)), _redact)
            self.err.write(_escape_controls(_encode({"error": plain}).decode()) + "\n")
            return
        line = shorten(clean(f"ctx: {error.code}: {_redact(str(error))}"))
        self.err.write(self.paint("red", line) + "\n")

    @property
    def interactive(self) -> bool:
        """Whether a person at a terminal sees standard error, and wants to."""
        return self.err.isatty() and not self.quiet and not self.json

    def paint(self, color: str, text: str) -> str:
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.color else text


def clean(text: str) -> str:
    """Return text that stays on its line: control characters are shown escaped, not sent to a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def clean_tabbed(line: str) -> str:
    """Clean a line of a text. Tabs stay: texts are made with them, and they do no harm."""
    return "\t".join(map(clean, line.split("\t")))


def clean_lines(text: str) -> str:
    """Clean a text of several lines: the ends of lines stay, and so do tabs."""
    return "\n".join(map(clean_tabbed, text.split("\n")))


def shorten(line: str) -> str:
    """Leave out the middle of a very long line."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} [...] {line[-_LONGEST // 2 :]}"


def quantity(number: int, noun: str) -> str:
    """Return a number with its noun: `1 object`, `2 objects`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def human_size(size: int) -> str:
    """Format a number of bytes: `512 B`, `1.5 KiB`, `3.0 GiB`."""
    if size < _UNIT:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= _UNIT
        if amount < _UNIT:
            return f"{amount:.1f} {unit}"
    return f"{amount / _UNIT:.1f} TiB"


def has_time(created: str) -> bool:
    """Whether a manifest has a time; the year 1 stands for none."""
    return created != str(NO_TIME)


def format_created(created: str) -> str:
    """Format the time in a manifest, which stays as it is written there."""
    return clean(created) if has_time(created) else _NONE


def format_second(moment: Timestamp) -> str:
    """Format a time to the second, in UTC, always equally wide: `2026-05-04 09:31:42Z`."""
    return str(moment)[:_SECOND].replace("T", " ") + "Z" if moment != NO_TIME else _NONE.ljust(_SECOND + 1)


def _redact(text: str) -> str:
    """Take out what looks like a secret: messages may repeat texts of others, and end in logs."""
    # Loaded for messages only: most commands print none.
    from contextplane.app.redaction import redact_shapes

    return redact_shapes(text)


def _map_strings(value: object, change: Callable[[str], str]) -> object:
    """Return a JSON value with every text in it changed; names of members stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {name: _map_strings(member, change) for name, member in value.items()}
    return value


def _escape_controls(text: str) -> str:
    """Escape the characters of a JSON text that control a terminal, or reorder or hide other ones."""
    if text.isascii() and "\x7f" not in text:
        return text
    import re

    from contextplane.model.invisible_characters import CONTROLS, FORMATTING, JOINERS, LINE_SEPARATORS

    unsafe = f"[{CONTROLS}{FORMATTING}{LINE_SEPARATORS}{JOINERS}]"
    return re.sub(unsafe, lambda match: "".join(f"\\u{unit:04x}" for unit in _utf16(match[0])), text)


def _utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


def _encode(value: object) -> bytes:
    """Encode a value as JSON. Bytes of a name that is not UTF-8 are shown escaped."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_escape_surrogates(msgspec.to_builtins(value, enc_hook=str)))


def _escape_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_escape_surrogates(key): _escape_surrogates(member) for key, member in value.items()}
    return [_escape_surrogates(item) for item in value] if isinstance(value, list | tuple) else value
