"""Edits JSON with comments as text: one member is added or removed, and every other character stays.

It reads what clients accept in their settings: comments of both forms, and a comma after the last member.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import msgspec

from contextplane.errors import ContextPlaneError, Family

__all__ = ["JsonTextInvalid", "JsoncMember", "JsoncNode", "add_member", "parse_jsonc", "remove_member"]

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")
_DEEPEST = 100
_INDENT = "  "


class JsonTextInvalid(ContextPlaneError):
    """A configuration file of a client that is not JSON, with or without comments. It was not changed."""

    code: ClassVar[str] = "client_config_invalid"
    family: ClassVar[Family] = "refused"


class JsoncMember(NamedTuple):
    """A member of an object: where its key, its value and the comma after it are."""

    key: str
    start: int
    value: "JsoncNode"
    comma: int | None


class JsoncNode(NamedTuple):
    """A value in a text. A scalar is its source text, so that equal values have equal digits."""

    start: int
    end: int
    scalar: str | None = None
    members: tuple[JsoncMember, ...] | None = None
    items: tuple["JsoncNode", ...] = ()

    def member(self, key: str) -> JsoncMember | None:
        """Return the member with this key, if this is an object that has it."""
        return next((member for member in self.members or () if member.key == key), None)

    def plain(self) -> Any:  # noqa: ANN401  any JSON
        """Return the value with its scalars as source text, to be compared."""
        if self.members is not None:
            return {member.key: member.value.plain() for member in self.members}
        return [item.plain() for item in self.items] if self.scalar is None else self.scalar

    def decode(self) -> Any:  # noqa: ANN401  any JSON
        """Return the value as Python values. A number that does not fit is its source text."""
        if self.members is not None:
            return {member.key: member.value.decode() for member in self.members}
        if self.scalar is None:
            return [item.decode() for item in self.items]
        try:
            return msgspec.json.decode(self.scalar)
        except msgspec.DecodeError:
            return self.scalar


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> JsoncNode:
        self._at = 1 if self._text.startswith("\ufeff") else 0
        self._skip()
        node = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._error("something follows the end of the document")
        return node

    def _value(self, depth: int) -> JsoncNode:
        if depth > _DEEPEST:
            raise self._error(f"it is nested more than {_DEEPEST} deep")
        match self._text[self._at : self._at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case '"':
                return self._take(_STRING)
            case _:
                return self._take(_SCALAR)

    def _take(self, pattern: re.Pattern[str]) -> JsoncNode:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise self._error("a value is expected")
        try:
            msgspec.json.decode(match[0])
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise self._error("a value is malformed") from error
        start, self._at = self._at, match.end()
        return JsoncNode(start, self._at, scalar=match[0])

    def _object(self, depth: int) -> JsoncNode:
        start, members = self._at, list[JsoncMember]()
        for _ in self._parts("}"):
            key = self._take(_STRING)
            self._skip()
            if not self._text.startswith(":", self._at):
                raise self._error("a colon is expected")
            self._at += 1
            self._skip()
            value = self._value(depth + 1)
            name = msgspec.json.decode(key.scalar or "", type=str)
            if any(member.key == name for member in members):
                raise self._error(f"the key {name[:40]!r} is there twice")
            members.append(JsoncMember(name, key.start, value, self._comma("}")))
        return JsoncNode(start, self._at, members=tuple(members))

    def _list(self, depth: int) -> JsoncNode:
        start, items = self._at, list[JsoncNode]()
        for _ in self._parts("]"):
            items.append(self._value(depth + 1))
            self._comma("]")
        return JsoncNode(start, self._at, items=tuple(items))

    def _parts(self, end: str) -> Iterator[None]:
        """Step from part to part, and over the closing bracket."""
        self._at += 1
        self._skip()
        while not self._text.startswith(end, self._at):
            yield
            self._skip()
        self._at += 1

    def _comma(self, end: str) -> int | None:
        self._skip()
        if self._text.startswith(",", self._at):
            self._at += 1
            return self._at - 1
        if not self._text.startswith(end, self._at):
            raise self._error(f"a comma or {end} is expected")
        return None

    def _skip(self) -> None:
        match = _TRIVIA.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _error(self, why: str) -> JsonTextInvalid:
        line = self._text.count("\n", 0, self._at) + 1
        return JsonTextInvalid(f"{why}, in line {line}", hint="repair the file, then run the same command again")


def parse_jsonc(text: str) -> JsoncNode:
    """Parse JSON with comments. A key that is there twice is refused, because readers differ on it."""
    return _Reader(text).document()


def add_member(text: str, path: tuple[str, ...], value: object) -> str:
    """Return the text with the value at this path, which must not exist; objects on the way are made."""
    node = parse_jsonc(text)
    rest = list(path)
    while len(rest) > 1 and (member := node.member(rest[0])) is not None:
        node = member.value
        del rest[0]
    if node.members is None:
        place = "".join(f"/{key}" for key in path[: len(path) - len(rest)])
        raise JsonTextInvalid(
            "an object is expected", at=place, hint="repair the file, then run the same command again"
        )
    for key in reversed(rest[1:]):
        value = {key: value}
    return _insert(text, node, rest[0], value)


def _insert(text: str, node: JsoncNode, key: str, value: object) -> str:
    """Insert a member as the last of an object, after all comments, in the style of the object."""
    inside = text[node.start + 1 : node.end - 1]
    end = node.start + 1 + len(inside.rstrip())
    newline, unit, own = "\r\n" if "\r\n" in text else "\n", _unit(text), _line_indent(text, node.start)
    if not node.members:
        block = _encode(key, value, unit, own + unit).replace("\n", newline)
        return f"{text[:end]}{newline}{own}{unit}{block}{newline}{own}{text[node.end - 1 :]}"
    if "\n" in inside:
        indent = _line_indent(text, node.members[0].start)
        block = newline + indent + _encode(key, value, unit, indent).replace("\n", newline)
    else:
        block = " " + _encode(key, value, "", "")
    last = node.members[-1]
    if last.comma is not None:
        return f"{text[:end]}{block},{text[end:]}"
    return f"{text[: last.value.end]},{text[last.value.end : end]}{block}{text[end:]}"


def remove_member(text: str, path: tuple[str, ...]) -> str | None:
    """Return the text without the member at this path, and without objects that only it filled.

    None if nothing is left but empty objects. Comments stay.
    """
    nodes = [parse_jsonc(text)]
    for key in path:
        member = nodes[-1].member(key)
        if member is None:
            return text
        nodes.append(member.value)
    while len(path) > 1 and _fills(text, nodes[len(path) - 1]):
        path = path[:-1]
    parent = nodes[len(path) - 1]
    members = parent.members or ()
    if (
        len(path) == 1
        and _fills(text, parent)
        and not (text[: parent.start] + text[parent.end :]).strip("\ufeff \t\r\n")
    ):
        return None
    at = next(number for number, member in enumerate(members) if member.key == path[-1])
    member = members[at]
    before = len(text[: member.start].rstrip())
    after = member.value.end
    if member.comma is not None:
        kept_tail = text[after : member.comma] + text[member.comma + 1 :]
        return text[:before] + kept_tail
    comma = members[at - 1].comma if at else None
    head = text[:before] if comma is None else text[:comma] + text[comma + 1 : before]
    return head + text[after:]


def _fills(text: str, node: JsoncNode) -> bool:
    """Whether an object has a single member, and no comment beside it."""
    if node.members is None or len(node.members) != 1:
        return False
    member = node.members[0]
    return not (text[node.start + 1 : member.start] + text[member.value.end : node.end - 1]).strip(" \t\r\n,")


def _encode(key: str, value: object, unit: str, indent: str) -> str:
    """Encode a member on one line, or with a unit of indentation an object on several."""
    name = msgspec.json.encode(key).decode()
    if not isinstance(value, dict):
        text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
        return f"{name}: {text}"
    parts = [_encode(inner, part, unit, indent + unit) for inner, part in value.items()]
    if not unit:
        return f"{name}: {{{', '.join(parts)}}}"
    return f"{name}: {{\n" + ",\n".join(f"{indent}{unit}{part}" for part in parts) + f"\n{indent}}}"


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return the indentation that the text uses: that of its first indented line."""
    match = re.search(r"\n([ \t]+)[\"}\]]", text)
    return match[1] if match else _INDENT
