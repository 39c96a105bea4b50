"""Reading the document that an agent writes.

An invalid document is refused once, with all its problems and guidance for each. The answers of `get`, `write` and
`ttl` are such documents: the read-only fields they add are known and ignored. Any other unknown field is a problem. It
reads no file and no store.
"""

import re
from collections.abc import Callable
from typing import Protocol, TypeVar

from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.freshness import MAX_TTL_MINUTES
from contextplane.model.handoff import Diagram, HandoffDocument, LineRange, Ref, Section, Status
from contextplane.model.ids import HandoffId
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.problems import Problem, ProblemCollector
from contextplane.model.suggestion import closest_name
from contextplane.model.value import Value

__all__ = [
    "MAX_SPAN",
    "NAME_BYTES",
    "PATH_BYTES",
    "READ_ONLY",
    "HandoffInputReader",
    "SourcePlace",
    "decoded_text",
    "quote_short",
    "read_document",
]

NAME_BYTES = (3, 120)
PATH_BYTES = 1024
MAX_SPAN = 2000

READ_ONLY = (
    "schema_version",
    "id",
    "revision",
    "created_at",
    "updated_at",
    "expires_at",
    "ttl_remaining_seconds",
    "ttl_remaining_human",
    "ttl_remaining",
    "freshness_state",
    "digest",
    "validated_only",
    "moved_refs",
    "unanchored_refs",
    "provenance",
)
"""The fields that `get`, `write` and `ttl` add to a document; `write` ignores them."""

T = TypeVar("T")

_TYPES = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object", float: "number"}
_OPENING: dict[type, str] = {dict: "{", list: "["}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})")
_SAFE = 2**53 - 1
_LISTED = 100  # problems that details.problems lists
_SHOWN = 60


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


P = TypeVar("P", bound=_Keyed)


def quote_short(text: str) -> str:
    """A text from outside, quoted and cut to fit into a message."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


class HandoffInputReader(ProblemCollector):
    """Reads the values of one call of a tool. The details of its problems are guidance for the agent."""

    def __init__(self, tool: str, action: str) -> None:
        super().__init__()
        self._tool, self._action = tool, action

    def raise_problems(self) -> None:
        """Raise `HandoffInvalid` when there are problems. `details` begins with the guidance of the first."""
        if not self.problems:
            return
        first, *more = self.problems
        also = f" (and {len(more)} more)" if more else ""
        details = {"tool": self._tool, "action": self._action, "field": first.at, **_guidance(first)}
        required = [problem.at for problem in self.problems if problem.details.get("missing")]
        if required:
            details["required_fields"] = required
        listed = [
            {"path": problem.at, "message": problem.message, **_guidance(problem)}
            for problem in self.problems[:_LISTED]
        ]
        raise HandoffInvalid(
            f"{first.message}{also}",
            at=first.at,
            hint="fix what details.problems lists",
            details={**details, "problems": listed, "problems_total": len(self.problems)},
        )

    def members(
        self, value: Json, place: str, known: tuple[str, ...], ignored: tuple[str, ...] = ()
    ) -> dict[str, Json] | None:
        """The members of an object, each unknown one noted as a problem; None when it is no object."""
        entry = self.of_type(decoded_text(value, dict), dict, place)
        for name in sorted(entry.keys() - {*known, *ignored}) if entry else ():
            near = closest_name(name, known) if len(self.problems) < _LISTED else None
            meant = f"; did you mean {near}?" if near else f" (known: {', '.join(known)})"
            guidance: dict[str, object] = {"supported_field": near} if near else {}
            self.note(f"{place}.{name[:_SHOWN]}", f"is not known{meant}", unsupported_field=name[:_SHOWN], **guidance)
        return entry

    def entries(self, entry: dict[str, Json], key: str, at: str, *, required: bool = False) -> list[tuple[Json, str]]:
        """The items of a list in `entry`, each with its place."""
        value = decoded_text(entry.get(key), list)
        if value is None:
            if required:
                self.note_missing(f"{at}{key}", required_type="array")
            return []
        return [(item, f"{at}{key}[{n}]") for n, item in enumerate(self.of_type(value, list, f"{at}{key}") or [])]

    def unique(self, parts: list[P | None], entries: list[tuple[Json, str]]) -> tuple[P, ...]:
        """The parts that could be read. Two of the same key are a problem."""
        first: dict[str, str] = {}
        for part, (_, place) in zip(parts, entries, strict=True):
            if part is not None and part.key and first.setdefault(part.key, place) != place:
                self.note(f"{place}.key", f"is that of {first[part.key]} as well: {quote_short(part.key)}")
        return tuple(part for part in parts if part is not None)

    def required_text(self, entry: dict[str, Json], key: str, at: str) -> str:
        if entry.get(key) is None:
            self.note_missing(f"{at}{key}", required_type="string")
            return ""
        return self.of_type(entry[key], str, f"{at}{key}") or ""

    def text(self, entry: dict[str, Json], key: str, at: str) -> str | None:
        value = entry.get(key)
        return None if value is None else self.of_type(value, str, f"{at}{key}")

    def of_type(self, value: object, kind: type[T], place: str) -> T | None:
        """The value if it has exactly this type; else note a problem and return None."""
        if type(value) is kind:
            return value
        expected = _TYPES[kind]
        self.note(place, f"must be of type {expected}, not {_type_of(value)}", required_type=expected)
        return None

    def integer(self, value: Json, place: str) -> int | None:
        """The integer, also one that is written as a text or as 3.0; else note a problem and return None."""
        if type(value) is float and value.is_integer() and abs(value) <= _SAFE:
            return int(value)
        if type(value) is str and _INTEGER.fullmatch(value.strip()):
            return int(value)
        return self.of_type(value, int, place)

    def within(self, number: int, low: int, high: int | None, place: str) -> int:
        """The number, or a problem when it is out of its bounds."""
        if number < low or (high is not None and number > high):
            bounds = f"at least {low}" if high is None else f"{low} to {high}"
            limits: dict[str, object] = {"minimum": low} if high is None else {"minimum": low, "maximum": high}
            self.note(place, f"must be {bounds}, not {number}", **limits)
        return number

    def note_missing(self, place: str, **guidance: object) -> None:
        self.note(place, "is required", missing=True, **guidance)


def _guidance(problem: Problem) -> dict[str, object]:
    return {key: value for key, value in problem.details.items() if key != "missing"}


def decoded_text(value: Json, kind: type) -> Json:
    """The object or list that a JSON text holds, because some clients send it so; else the value as it is."""
    if type(value) is not str or not value.lstrip().startswith(_OPENING[kind]):
        return value
    try:
        decoded = parse(value.encode()).value
    except JsonRefused:
        return value
    return decoded if type(decoded) is kind else value


def _type_of(value: object) -> str:
    return "null" if value is None else _TYPES[type(value)]


_DOCUMENT = ("name", "title", "brief", "tags", "ttl_minutes", "status", "sections")
_SECTION = ("key", "title", "description", "refs", "diagrams")
_REF = ("key", "path", "line_start", "line_end", "lines", "title", "why", "group")
_DIAGRAM = ("key", "title", "mermaid", "why")
_LINES = ("start", "end")

_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{1,63}")
_DRIVE = re.compile(r"[A-Za-z]:")
_STATUS: dict[str, Status] = {"draft": "draft", "finalized": "finalized"}


class SourcePlace(Value, frozen=True):
    """The source root, and how to make an absolute path relative to it: None for one that leads elsewhere."""

    root: str
    relative_path: Callable[[str], str | None]


def read_document(value: Json, sources: SourcePlace | None = None) -> HandoffDocument:
    """Read a document, or raise `HandoffInvalid` with all its problems in `details.problems`.

    `sources`: where absolute paths may lead; without it they are refused.
    """
    reader = _Reader("input", "write", sources)
    document = reader.document(value)
    reader.raise_problems()
    return document


class _Reader(HandoffInputReader):
    """Reads a document and its parts."""

    def __init__(self, tool: str, action: str, sources: SourcePlace | None) -> None:
        super().__init__(tool, action)
        self._sources = sources

    def document(self, value: Json) -> HandoffDocument:
        entry = self.members(value, "document", _DOCUMENT, READ_ONLY)
        if entry is None:
            return HandoffDocument(sections=())
        at = "document."
        sections = self.entries(entry, "sections", at, required=True)
        return HandoffDocument(
            name=self._name(entry),
            title=self.text(entry, "title", at),
            brief=self.text(entry, "brief", at),
            tags=self._tags(entry),
            ttl_minutes=self._ttl(entry),
            status=self._status(entry),
            sections=self.unique([self._section(item, place) for item, place in sections], sections),
        )

    # --- its parts ---------------------------------------------------------------------------------------------------

    def _section(self, value: Json, place: str) -> Section | None:
        entry = self.members(value, place, _SECTION)
        if entry is None:
            return None
        at = f"{place}."
        refs = self.entries(entry, "refs", at)
        diagrams = self.entries(entry, "diagrams", at)
        return Section(
            key=self._key(entry, at),
            title=self.required_text(entry, "title", at),
            description=self.text(entry, "description", at),
            refs=self.unique([self._ref(item, there) for item, there in refs], refs),
            diagrams=self.unique([self._diagram(item, there) for item, there in diagrams], diagrams),
        )

    def _ref(self, value: Json, place: str) -> Ref | None:
        entry = self.members(value, place, _REF, ("anchor",))
        if entry is None:
            return None
        at = f"{place}."
        return Ref(
            key=self._key(entry, at),
            path=self._path(entry, at),
            lines=self._lines(entry, place),
            title=self.text(entry, "title", at),
            why=self.text(entry, "why", at),
            group=self.text(entry, "group", at),
        )

    def _diagram(self, value: Json, place: str) -> Diagram | None:
        entry = self.members(value, place, _DIAGRAM)
        if entry is None:
            return None
        at = f"{place}."
        return Diagram(
            key=self._key(entry, at),
            title=self.required_text(entry, "title", at),
            mermaid=self.required_text(entry, "mermaid", at),
            why=self.text(entry, "why", at),
        )

    def _name(self, entry: dict[str, Json]) -> str | None:
        name = self.text(entry, "name", "document.")
        if name is None:
            return None
        name = name.strip()
        low, high = NAME_BYTES
        if not low <= len(name.encode()) <= high:
            self.note("document.name", f"must have {low} to {high} bytes", minimum=low, maximum=high)
        elif HandoffId.has_form(name):
            self.note("document.name", "must not look like a pack id", not_pattern=HandoffId.FORM)
        return name

    def _tags(self, entry: dict[str, Json]) -> tuple[str, ...]:
        return tuple(self.of_type(tag, str, place) or "" for tag, place in self.entries(entry, "tags", "document."))

    def _ttl(self, entry: dict[str, Json]) -> int | None:
        value, place = entry.get("ttl_minutes"), "document.ttl_minutes"
        minutes = None if value is None else self.integer(value, place)
        return None if minutes is None else self.within(minutes, 1, MAX_TTL_MINUTES, place)

    def _status(self, entry: dict[str, Json]) -> Status:
        text = self.text(entry, "status", "document.")
        status = None if text is None else _STATUS.get(text.strip().lower())
        if text is not None and status is None:
            self.note("document.status", f"is none of {', '.join(_STATUS)}: {quote_short(text)}", allowed=[*_STATUS])
        return status or "draft"

    def _key(self, entry: dict[str, Json], at: str) -> str:
        key = self.required_text(entry, "key", at).strip()
        if type(entry.get("key")) is str and _KEY.fullmatch(key) is None:
            form = "2 to 64 of a-z, 0-9, '_' and '-', the first a letter or digit"
            self.note(f"{at}key", f"must be {form}: {quote_short(key)}", pattern=f"^{_KEY.pattern}$")
        return key

    def _path(self, entry: dict[str, Json], at: str) -> str:
        path = self.required_text(entry, "path", at).strip().replace("\\", "/")
        root = "the source root"
        if self._sources is not None and path.startswith("/") and "\0" not in path:
            path = self._sources.relative_path(path) or path
            root = self._sources.root
        if type(entry.get("path")) is str and (problem := _path_problem(path)):
            self.note(f"{at}path", problem, guidance=f"write a path below {root}, such as src/app.py")
        return path

    def _lines(self, entry: dict[str, Json], place: str) -> LineRange:
        """The range of lines, as `line_start` and `line_end` or as `lines`. If both are there they must agree."""
        ranges: list[LineRange] = []
        flat = [entry.get("line_start"), entry.get("line_end")]
        nested = entry.get("lines")
        if nested is None or flat != [None, None]:
            ranges.append(self._range(flat, (f"{place}.line_start", f"{place}.line_end")))
        lines = None if nested is None else self.members(nested, f"{place}.lines", _LINES)
        if lines is not None:
            ends = [lines.get(name) for name in _LINES]
            ranges.append(self._range(ends, (f"{place}.lines.start", f"{place}.lines.end")))
        if len(ranges) > 1 and ranges[0] != ranges[1]:
            self.note(f"{place}.lines", "says something else than line_start and line_end")
        return ranges[-1] if ranges else LineRange(start=1, end=1)

    def _range(self, ends: list[Json], places: tuple[str, str]) -> LineRange:
        numbers: list[int] = []
        for value, place in zip(ends, places, strict=True):
            if value is None:
                self.note_missing(place)
            elif (number := self.integer(value, place)) is not None and self.within(number, 1, None, place) >= 1:
                numbers.append(number)
        if len(numbers) != len(ends):
            return LineRange(start=1, end=1)
        start, end = numbers
        if end < start:
            self.note(places[1], f"must not be before the first line, {start}", minimum=start)
        elif end - start >= MAX_SPAN:
            self.note(places[1], f"leads over more than {MAX_SPAN} lines", maximum=start + MAX_SPAN - 1)
        return LineRange(start=start, end=end)


def _path_problem(path: str) -> str | None:
    if not path:
        return "is empty"
    if len(path.encode()) > PATH_BYTES:
        return f"has more than {PATH_BYTES} bytes"
    if "\0" in path:
        return "holds a NUL character"
    if path.startswith("/"):
        return f"is absolute: {quote_short(path)}"
    if _DRIVE.match(path):
        return f"names a drive: {quote_short(path)}"
    return f"leads out of the source root: {quote_short(path)}" if ".." in path.split("/") else None
