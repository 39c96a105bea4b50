"""The reader of YAML files: one document of plain data in YAML 1.2, with the place of every part.

Tags, anchors and aliases are refused: their meaning would have to be guessed, or grows without bound. `on`, `no` and
dates are texts, as in YAML 1.2, and not as in the constructor of the library.
"""

import re
from collections.abc import Iterator
from typing import ClassVar, Protocol

import yaml

from contextplane.authoring.positions import Place
from contextplane.authoring.source_file import MAX_PARTS, AuthorFile, check_size, too_many_parts
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.json.errors import MAX_DEPTH, JsonRefused
from contextplane.model.json.pointer import pointer

__all__ = ["YamlRefused", "read_yaml_file"]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LARGEST_INTEGER = 2**53 - 1
_MOST_DIGITS = 40
"""No integer in range is written with more, and Python converts no text of thousands of digits."""
_EXACT = 2.0**53


class _Mark(Protocol):
    """The place of an event or an error, counted from 0."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class YamlRefused(ContextPlaneError):
    """A YAML text that is not plain data in one document, or that is no YAML."""

    code: ClassVar[str] = "yaml_refused"
    family: ClassVar[Family] = "refused"


def read_yaml_file(data: bytes) -> AuthorFile:
    """Read one YAML document."""
    reader = _Reader()
    try:
        check_size(data)
        for event in yaml.parse(data.decode(), Loader=_LOADER):
            reader.take(event)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refusal("not UTF-8", Place(line=line, column=1), "save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        place = _at(error.problem_mark or error.context_mark)
        raise _refusal(error.problem or "not YAML", place, "fix the text there") from error
    except yaml.YAMLError as error:
        raise _refusal(
            "not YAML: a character that is not allowed there", Place(line=1, column=1), "remove it"
        ) from error
    if not reader.documents:
        raise _refusal("the file is empty", Place(line=1, column=1), "write one document")
    return AuthorFile(reader.value, _canonical(reader), reader.places)


def _canonical(reader: "_Reader") -> bytes:
    """Return the canonical bytes. A value without a canonical form is refused with its place in the file."""
    try:
        return canonical(reader.value)
    except JsonRefused as error:
        place = reader.places.get(error.at or "", Place(line=1, column=1))
        error.details |= {"line": place.line, "column": place.column}
        raise


class _Reader:
    """Builds the value from events, with a stack of its own: depth costs no recursion."""

    def __init__(self) -> None:
        self.value: Json = None
        self.places: dict[str, Place] = {}
        self.documents = 0
        self._open: list[list[Json] | dict[str, Json]] = []
        self._path: list[str | int | None] = []  # per open collection: the key or the index that comes next

    def take(self, event: yaml.Event) -> None:
        place = _at(event.start_mark)
        if len(self.places) > MAX_PARTS:
            raise too_many_parts()
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise _refusal("a second document begins here", place, "keep one document per file")
        elif isinstance(event, yaml.AliasEvent):
            raise _refusal("aliases are not allowed", place, "write the value out")
        elif isinstance(event, yaml.NodeEvent):
            self._node(event, place)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._path.pop()

    def _node(self, event: yaml.NodeEvent, place: Place) -> None:
        if event.anchor is not None:
            raise _refusal("anchors are not allowed", place, "write the value out where it is used")
        tag = event.tag if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) else None
        if tag is not None:
            raise _refusal(f"the tag {tag[:40]!r} stands here", place, "plain data needs no tag")
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, place)
            return
        if len(self._open) == MAX_DEPTH:
            raise _refusal(f"nested more than {MAX_DEPTH} deep", place, "flatten it")
        made: list[Json] | dict[str, Json] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
        self._put(made, place)
        self._open.append(made)
        self._path.append(0 if isinstance(made, list) else None)

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> None:
        plain = event.style is None or event.style == ""
        if self._open and isinstance(self._open[-1], dict) and self._path[-1] is None:
            self._key(event.value, place)
        else:
            self._put(_plain(event.value, place) if plain else event.value, place)

    def _key(self, key: str, place: Place) -> None:
        within = self._open[-1]
        if isinstance(within, dict) and key in within:
            raise _refusal(f"the key {key[:40]!r} stands here again", place, "keep one of them")
        self._path[-1] = key
        self.places[pointer(self._tokens())] = place

    def _put(self, value: Json, place: Place) -> None:
        if not self._open:
            self.value = value
            self.places[""] = place
            return
        within, at = self._open[-1], self._path[-1]
        if isinstance(within, list):
            self.places[pointer(self._tokens())] = place
            within.append(value)
            self._path[-1] = len(within)
        elif isinstance(at, str):
            within[at] = value
            self._path[-1] = None
        else:
            raise _refusal("a key that is no text stands here", place, "use a text as key")

    def _tokens(self) -> Iterator[str | int]:
        """Yield the steps to the part that is being read. In outer lists, the index has moved on already."""
        for depth, (within, at) in enumerate(zip(self._open, self._path, strict=True)):
            inner = depth + 1 < len(self._open)
            if isinstance(within, list):
                yield len(within) - 1 if inner else len(within)
            else:
                yield next(reversed(within)) if inner else str(at)


def _plain(text: str, place: Place) -> Json:
    """Return the value of a scalar without quotes, by the core schema of YAML 1.2."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _NOT_FINITE.fullmatch(text):
        raise _refusal("a number that is not finite", place, "leave it out, or write it as text")
    if _INTEGER.fullmatch(text):
        return _integer(text, 10, place)
    if _BASED.fullmatch(text):
        return _integer(text, 0, place)
    return _number(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str, base: int, place: Place) -> int:
    """Return an integer that a reader of doubles keeps exactly; refuse a greater one."""
    number = int(text, base) if len(text) <= _MOST_DIGITS else None
    if number is None or abs(number) > _LARGEST_INTEGER:
        raise _refusal("an integer beyond 2^53-1 stands here", place, "write it as text, in quotes")
    return number


def _number(text: str) -> int | float:
    """Return a number as the JSON reader does: a float without a fraction is an integer."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _at(mark: _Mark | None) -> Place:
    return Place(line=mark.line + 1, column=mark.column + 1) if mark else Place(line=1, column=1)


def _refusal(message: str, place: Place, hint: str) -> YamlRefused:
    error = YamlRefused(message, at=f"line {place.line}, column {place.column}", hint=hint)
    error.details |= {"line": place.line, "column": place.column}
    return error
