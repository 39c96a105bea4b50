"""Why a value or a text has no canonical form: one error code for each reason."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, Self

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.pointer import abbreviate_place

__all__ = [
    "MAX_DEPTH",
    "FloatUnsafe",
    "IntegerUnsafe",
    "JsonRefused",
    "LoneSurrogate",
    "NotFinite",
    "NotJson",
    "TooDeep",
    "integer_unsafe",
    "is_shallow",
    "lone_surrogate",
    "too_deep",
]

MAX_DEPTH = 256  # `[]` has depth 1
_MAX_LISTED = 9


class JsonRefused(ContextPlaneError):
    """A value or a text that has no canonical form.

    Where more is wrong, `details.problems` lists all of it.
    """

    code: ClassVar[str] = "json_refused"
    family: ClassVar[Family] = "refused"
    others: "tuple[JsonRefused, ...]" = ()
    _alone: tuple[str, str | None] | None = None

    @property
    def place(self) -> str | None:
        """The pointer, and of a text the line as well: that is where an editor goes."""
        at = self.at and abbreviate_place(self.at)
        if "line" not in self.details:
            return at
        column = f", column {self.details['column']}" if "column" in self.details else ""
        line = f"line {self.details['line']}{column}"
        return f"{at}: {line}" if at else line

    def together(self, others: Sequence["JsonRefused"]) -> Self:
        """Report the other problems of the same document as well. A second call replaces the first."""
        alone, hint = self._alone or (self.message, self.hint)
        self.others, self._alone = tuple(others), (alone, hint)
        also = "".join(f"; {other.place}: {other.message}" for other in others[:_MAX_LISTED])
        cut = f"; and {len(others) - _MAX_LISTED} more" if len(others) > _MAX_LISTED else ""
        self.message = f"{alone}{also}{cut}"
        mend = "fix the problems that are named; --json lists them all" if cut else "fix the problems that are named"
        self.hint = mend if others else hint
        own = {key: value for key, value in self.details.items() if key != "problems"}
        first = {"at": self.at or "", "message": alone, **own}
        other_entries = [{"at": other.at or "", "message": other.message, **other.details} for other in others]
        self.details = own | ({"problems": [first, *other_entries]} if others else {})
        return self


class NotJson(JsonRefused):
    """A value of a type that JSON does not have: bytes, a date, a set, a subclass, a key that is not text."""

    code: ClassVar[str] = "json_type"


class NotFinite(JsonRefused):
    """NaN or an infinity."""

    code: ClassVar[str] = "json_not_finite"


class IntegerUnsafe(JsonRefused):
    """An integer beyond 2^53-1 either way: a reader that keeps numbers as doubles would change it."""

    code: ClassVar[str] = "json_integer_unsafe"


class FloatUnsafe(JsonRefused):
    """A float from 2^53 up to 1e21.

    Its canonical form is an integer beyond 2^53-1, which is refused when read back.
    """

    code: ClassVar[str] = "json_float_unsafe"


class LoneSurrogate(JsonRefused):
    """Half of a surrogate pair: not Unicode text, and without a form in UTF-8."""

    code: ClassVar[str] = "json_lone_surrogate"


class TooDeep(JsonRefused):
    """Arrays and objects nested more than 256 deep."""

    code: ClassVar[str] = "json_too_deep"


def integer_unsafe(what: str) -> IntegerUnsafe:
    return IntegerUnsafe(f"{what} is beyond 2^53-1", hint="write it as text")


def lone_surrogate(unit: str) -> LoneSurrogate:
    return LoneSurrogate(f"{unit} is half of a surrogate pair", hint="write the whole character")


def too_deep() -> TooDeep:
    return TooDeep(f"nested more than {MAX_DEPTH} deep", hint="keep the inner part as a document of its own")


def is_shallow(value: object, text: bytes) -> bool:
    """Whether the value of a text is within MAX_DEPTH. `text` is what the value was decoded from.

    How deep msgspec itself goes differs between versions of Python. The check goes down level by level, until the
    brackets that are left, those in strings included, could not reach too deep even if each stood inside the one
    before.
    """
    brackets = text.count(b"[") + text.count(b"{")
    level: list[Any] = [value]
    for depth in range(1, MAX_DEPTH + 1):
        brackets -= len(level)
        if not level or brackets <= MAX_DEPTH - depth:
            return True
        parts = chain.from_iterable(node.values() if type(node) is dict else node for node in level)
        level = [part for part in parts if type(part) is dict or type(part) is list]
    return not level
