"""The contents of a pack, told to people: how large they are, what they say, what is wrong with them."""

from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from contextplane.cli.screen import clean, human_size
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.store.damage import MARK, damage_by, damage_in

if TYPE_CHECKING:
    from contextplane.ports.objects import Objects

__all__ = ["Contents"]

_LONGEST = 4000
_HEAD = _LONGEST * 4  # so many characters have no more bytes
_CHECKED_EACH, _CHECKED_ALL = 8 << 20, 64 << 20
_SHOWN = 80


class Contents:
    """Tells of one content after another. What is not whole is named as such, and its bytes are not shown."""

    def __init__(self, objects: "Objects") -> None:
        self._objects = objects
        self._left = _CHECKED_ALL
        self._sizes: dict[str, str] = {}
        self._wrong: dict[str, str] = {}
        self.unchecked = 0

    def size(self, ref: str) -> str:
        """How large it is, or what is wrong with it. It is hashed for that, unless it is large or many were before."""
        if ref not in self._sizes:
            self._sizes[ref] = self._size(ref)
        return self._sizes[ref]

    def wrong(self, ref: str) -> str:
        """What is wrong with it, as far as it was looked at."""
        self.size(ref)
        return self._wrong.get(ref, "")

    def _size(self, ref: str) -> str:
        try:
            digest = Digest.parse(ref)
            size = self._objects.size(digest)
            if size > min(_CHECKED_EACH, self._left):
                self.unchecked += 1
                return human_size(size)
            self._left -= size
            damage = damage_in(self._objects.check(digest))
        except ContextPlaneError as error:
            return self._wrong.setdefault(ref, _wrong(ref, error))
        return human_size(size) if damage is None else self._wrong.setdefault(ref, MARK[damage])

    def lines(self, ref: str, indent: str) -> list[str]:
        """The beginning of what it says, after all of it was hashed: 4,000 characters."""
        head, size = b"", 0
        try:
            for chunk in self._objects.stream(Digest.parse(ref)):
                head += chunk[: _HEAD - len(head)] if len(head) < _HEAD else b""
                size += len(chunk)
        except ContextPlaneError as error:
            return [f"{indent}[{_wrong(ref, error)}]"]
        try:
            text = getincrementaldecoder("utf-8")().decode(head, final=size == len(head))
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            return [f"{indent}[{human_size(size)} that are not text]"]
        shown = text[:_LONGEST]
        rest = size - len(shown.encode())
        # A tab is the one control character that texts are made with, and does no harm.
        told = [indent + "\t".join(map(clean, line.split("\t"))) for line in shown.removesuffix("\n").split("\n")]
        return told + ([f"{indent}[... {human_size(rest)} more]"] if rest else [])


def _wrong(ref: str, error: ContextPlaneError) -> str:
    damage = damage_by(error)
    return f"not a reference: {clean(ref[:_SHOWN])}" if damage is None else MARK[damage]
