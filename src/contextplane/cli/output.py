"""Where a verb writes: text for people, JSON for machines, errors in one line. It decides nothing.

When a run was, told to people.
"""

import sys
from collections.abc import Callable
from typing import TextIO

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value

__all__ = ["CommandOutput", "clean", "clean_lines", "quantity", "human_size", "format_second", "shorten", "has_time", "format_created"]

_COLORS = {"red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36", "bold": "1", "dim": "2"}
_UNIT = 1024
_LONGEST = 2000
_encoder = msgspec.json.Encoder(order="sorted", enc_hook=str)


class CommandOutput(Value, frozen=True):
    """One command's output."""

    json: bool = False
    quiet: bool = False
    color: bool = False
    out: TextIO = msgspec.field(default_factory=lambda: sys.stdout)
    err: TextIO = msgspec.field(default_factory=lambda: sys.stderr)

    def line(self, text: str = "") -> None:
        """A line for people: not when a machine reads, not when silence was asked for."""
        if not self.json and not self.quiet:
            print(text, file=self.out)

    def entry(self, identity: str, text: str, problem: str = "") -> None:
        """An entry of a list: a line for people, and nothing but what it is called when silence was asked for.

        `problem`: what is wrong with it, which the line tells. Silence does not hide that, and a list of names has no
        room for it, so that it is told on standard error.
        """
        if self.json:
            return
        print(identity if self.quiet else text, file=self.out)
        if self.quiet and problem:
            print(f"ctx: {identity}: {problem}", file=self.err)

    def failure_line(self, text: str) -> None:
        """A line for people about what is wrong with what was asked for: silence does not hide it."""
        if not self.json:
            print(_redact(text), file=self.out)

    def note(self, text: str) -> None:
        """Something that people should know and that is not the answer, on standard error."""
        if not self.json and not self.quiet:
            print(f"ctx: {_redact(text)}", file=self.err)

    def warn(self, text: str) -> None:
        """The same of what silence must not hide: that an answer is not the whole one."""
        if not self.json:
            print(f"ctx: {_redact(text)}", file=self.err)

    def answer(self, value: object) -> None:
        """The answer for machines, as one JSON document."""
        if self.json:
            self.json_text(msgspec.json.format(_encode(value), indent=2).decode())

    def json_text(self, text: str) -> None:
        """A JSON document. What could speak to a terminal stands in it as escapes, which mean the same."""
        self.out.write(_escape_controls(text) + "\n")

    def error(self, error: ContextPlaneError) -> None:
        """One line on standard error; one JSON document when a machine reads."""
        if self.json:
            told = {
                "code": error.code,
                "family": error.family,
                "message": error.message,
                "at": error.at,
                "hint": error.hint,
                "details": error.details,
            }
            plain = _map_strings(msgspec.json.decode(_encode(told)), _redact)
            self.err.write(_escape_controls(_encode({"error": plain}).decode()) + "\n")
            return
        line = shorten(clean(f"ctx: {error.code}: {_redact(str(error))}"))
        self.err.write(self.paint("red", line) + "\n")

    @property
    def interactive(self) -> bool:
        """Whether somebody sits at a terminal and did not ask for silence."""
        return self.err.isatty() and not self.quiet and not self.json

    def paint(self, color: str, text: str) -> str:
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.color else text


def _redact(text: str) -> str:
    """What is told of something may repeat what somebody wrote, and ends in logs, where no secret belongs."""
    # Only those need it who tell of something.
    from contextplane.policy.detect.secrets import redact_shapes

    return redact_shapes(text)


def _map_strings(value: object, change: Callable[[str], str]) -> object:
    """A JSON value with every text in it changed; names of members stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_strings(one, change) for one in value]
    if isinstance(value, dict):
        return {name: _map_strings(one, change) for name, one in value.items()}
    return value


def clean(text: str) -> str:
    """Text that stays on its line and cannot speak to the terminal: control characters are shown, not sent."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def clean_lines(text: str) -> str:
    """The same of text that has lines: their ends stay, and so do tabs, which do no harm."""
    return "\n".join("\t".join(map(clean, line.split("\t"))) for line in text.split("\n"))


def shorten(line: str) -> str:
    """A line that is still one: the middle of a very long one is left out."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} [...] {line[-_LONGEST // 2 :]}"


def quantity(number: int, noun: str) -> str:
    """1 object, 2 objects."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _escape_controls(text: str) -> str:
    """A JSON text without control characters and without those that turn around or hide what is beside them."""
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
    """JSON, also of names that are not text: their bytes are shown escaped."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_escape_surrogates(msgspec.to_builtins(value, enc_hook=str)))


def _escape_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_escape_surrogates(key): _escape_surrogates(one) for key, one in value.items()}
    return [_escape_surrogates(one) for one in value] if isinstance(value, list | tuple) else value


def human_size(size: int) -> str:
    """Bytes as people read them: 512 B, 1.5 KiB, 3.0 GiB."""
    if size < _UNIT:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= _UNIT
        if amount < _UNIT:
            return f"{amount:.1f} {unit}"
    return f"{amount / _UNIT:.1f} TiB"


_SECOND = len("2026-05-04 09:31:42")
_NONE = "no time"


def has_time(created: str) -> bool:
    """Whether a manifest says when its run was; the year 1 stands for that it does not."""
    return created != str(NO_TIME)


def format_created(created: str) -> str:
    """The time in a manifest, as it stands there."""
    return clean(created) if has_time(created) else _NONE


def format_second(moment: Timestamp) -> str:
    """A moment to the second, in UTC and marked so, always as wide as any other."""
    return str(moment)[:_SECOND].replace("T", " ") + "Z" if moment != NO_TIME else _NONE.ljust(_SECOND + 1)
