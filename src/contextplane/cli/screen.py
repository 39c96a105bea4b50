"""Where a verb writes: text for people, JSON for machines, errors in one line. It decides nothing."""

import sys
from typing import TextIO

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value

__all__ = ["Screen", "clean", "counted", "human_size", "shortened"]

_COLORS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}
_UNIT = 1024
_LONGEST = 2000
_encoder = msgspec.json.Encoder(order="sorted", enc_hook=str)


class Screen(Value, frozen=True):
    """One command's output."""

    json: bool = False
    quiet: bool = False
    color: bool = False
    out: TextIO = msgspec.field(default_factory=lambda: sys.stdout)
    err: TextIO = msgspec.field(default_factory=lambda: sys.stderr)

    def say(self, text: str = "") -> None:
        """A line for people: not when a machine reads, not when silence was asked for."""
        if not self.json and not self.quiet:
            print(text, file=self.out)

    def note(self, text: str) -> None:
        """Something that people should know and that is not the answer, on standard error."""
        if not self.json and not self.quiet:
            print(f"ctx: {text}", file=self.err)

    def answer(self, value: object) -> None:
        """The answer for machines, as one JSON document."""
        if self.json:
            self.out.write(msgspec.json.format(_encoded(value), indent=2).decode() + "\n")

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
            self.err.write(_encoded({"error": told}).decode() + "\n")
            return
        line = shortened(clean(f"ctx: {error.code}: {error}"))
        self.err.write(self.paint("red", line) + "\n")

    def paint(self, color: str, text: str) -> str:
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.color else text


def clean(text: str) -> str:
    """Text that stays on its line and cannot speak to the terminal: control characters are shown, not sent."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shortened(line: str) -> str:
    """A line that is still one: the middle of a very long one is left out."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} [...] {line[-_LONGEST // 2 :]}"


def counted(number: int, noun: str) -> str:
    """1 object, 2 objects."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _encoded(value: object) -> bytes:
    """JSON, also of names that are not text: their bytes are shown escaped."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_escaped(msgspec.to_builtins(value, enc_hook=str)))


def _escaped(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(one) for key, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value


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
