"""Reading the document that an agent writes: everything that is wrong with it is told at once.

What `get`, `write` and `ttl` answer is such a document: their read-only fields are known by name and ignored. Any other
field that is not known is refused. It looks at no file and at no store.

How large the parts of a document may be, and what answers add to one.

Reading what an agent sent: what is wrong is noted with its place and guidance, and all of it is told at once.
"""

import re
from typing import Protocol, TypeVar

from contextplane.handoff.errors import HandoffInvalid
from contextplane.model.handoff import Diagram, HandoffDocument, Lines, Ref, Section, Status
from contextplane.model.ids import HandoffId
from contextplane.model.json.canonical import Json

__all__ = [
    "MAX_SPAN",
    "MAX_TTL_MINUTES",
    "NAME_BYTES",
    "PATH_BYTES",
    "READ_ONLY",
    "Noting",
    "nearest",
    "read_document",
    "shown",
]

NAME_BYTES = (3, 120)
PATH_BYTES = 1024
MAX_SPAN = 2000
MAX_TTL_MINUTES = 5 * 365 * 24 * 60

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
)
"""What `get`, `write` and `ttl` add to a document; `write` takes no notice of it."""


T = TypeVar("T")

_TYPES = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object", float: "number"}
_LISTED = 100  # problems that are listed one by one
_SHOWN = 60
_ALIKE = 0.55


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


P = TypeVar("P", bound=_Keyed)


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """The known name that was probably meant: the one with most letters and pairs of letters in common."""
    given = _parts(name[:_SHOWN].lower())
    alike = {one: 2 * len(given & _parts(one)) / (len(given) + len(_parts(one))) for one in known}
    best = max(known, key=alike.__getitem__)
    return best if alike[best] >= _ALIKE else None


def _parts(name: str) -> set[str]:
    return {*name, *(name[n : n + 2] for n in range(len(name) - 1))}


def shown(text: str) -> str:
    """A text from outside, quoted and cut to what fits into a message."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


class Noting:
    """Reads values, and notes what is wrong instead of stopping. What it returns counts only when nothing was noted."""

    def __init__(self, tool: str, action: str) -> None:
        self._tool, self._action = tool, action
        self._problems: list[dict[str, object]] = []

    def check(self) -> None:
        """Refuse when something was noted. `details` repeats the guidance of the first problem at its top."""
        if not self._problems:
            return
        first = self._problems[0]
        required = [problem["path"] for problem in self._problems if problem.get("missing")]
        more = f" (and {len(self._problems) - 1} more)" if len(self._problems) > 1 else ""
        extra = {key: value for key, value in first.items() if key not in {"path", "message", "missing"}}
        listed = [
            {key: value for key, value in problem.items() if key != "missing"} for problem in self._problems[:_LISTED]
        ]
        details = {"tool": self._tool, "action": self._action, "field": first["path"], **extra}
        if required:
            details["required_fields"] = required
        raise HandoffInvalid(
            f"{first['message']}{more}",
            at=str(first["path"]),
            hint="mend what details.problems lists",
            details={**details, "problems": listed, "problems_total": len(self._problems)},
        )

    def members(
        self, value: Json, place: str, known: tuple[str, ...], ignored: tuple[str, ...] = ()
    ) -> dict[str, Json] | None:
        entry = self.typed(value, dict, place)
        for name in sorted(entry.keys() - {*known, *ignored}) if entry else ():
            near = nearest(name, known) if len(self._problems) < _LISTED else None
            meant = f"; did you mean {near}?" if near else f" (known: {', '.join(known)})"
            guidance: dict[str, object] = {"supported_field": near} if near else {}
            self.note(f"{place}.{name[:_SHOWN]}", f"is not known{meant}", unsupported_field=name[:_SHOWN], **guidance)
        return entry

    def entries(self, entry: dict[str, Json], key: str, at: str, *, required: bool = False) -> list[tuple[Json, str]]:
        value = entry.get(key)
        if value is None and not (required and key in entry):
            if required:
                self.missing(f"{at}{key}", required_type="array")
            return []
        return [(one, f"{at}{key}[{n}]") for n, one in enumerate(self.typed(value, list, f"{at}{key}") or [])]

    def unique(self, parts: list[P | None], entries: list[tuple[Json, str]]) -> tuple[P, ...]:
        first: dict[str, str] = {}
        for part, (_, place) in zip(parts, entries, strict=True):
            if part is not None and part.key and first.setdefault(part.key, place) != place:
                self.note(f"{place}.key", f"is that of {first[part.key]} as well: {shown(part.key)}")
        return tuple(part for part in parts if part is not None)

    def needed(self, entry: dict[str, Json], key: str, at: str) -> str:
        if key not in entry:
            self.missing(f"{at}{key}", required_type="string")
            return ""
        return self.typed(entry[key], str, f"{at}{key}") or ""

    def text(self, entry: dict[str, Json], key: str, at: str) -> str | None:
        value = entry.get(key)
        return None if value is None else self.typed(value, str, f"{at}{key}")

    def typed(self, value: object, kind: type[T], place: str) -> T | None:
        if type(value) is kind:
            return value
        wanted = _TYPES[kind]
        self.note(place, f"must be of type {wanted}, not {_type_of(value)}", required_type=wanted)
        return None

    def within(self, value: Json, low: int, high: int | None, place: str) -> int:
        number = value if type(value) is int else low
        if number < low or (high is not None and number > high):
            bounds = f"at least {low}" if high is None else f"{low} to {high}"
            limits: dict[str, object] = {"minimum": low} if high is None else {"minimum": low, "maximum": high}
            self.note(place, f"must be {bounds}, not {number}", **limits)
        return number

    def missing(self, place: str, **guidance: object) -> None:
        self.note(place, "is required", missing=True, **guidance)

    def note(self, place: str, message: str, **guidance: object) -> None:
        self._problems.append({"path": place, "message": message, **guidance})


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


def read_document(value: Json) -> HandoffDocument:
    """The document that a value is, or `HandoffInvalid` with all its problems in `details.problems`."""
    reader = _Reader("input", "write")
    document = reader.document(value)
    reader.check()
    return document


class _Reader(Noting):
    """A document and its parts. What it returns counts only when nothing was noted."""

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
            sections=self.unique([self._section(one, place) for one, place in sections], sections),
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
            title=self.needed(entry, "title", at),
            description=self.text(entry, "description", at),
            refs=self.unique([self._ref(one, there) for one, there in refs], refs),
            diagrams=self.unique([self._diagram(one, there) for one, there in diagrams], diagrams),
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
            title=self.needed(entry, "title", at),
            mermaid=self.needed(entry, "mermaid", at),
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
        elif HandoffId.PATTERN.fullmatch(name):
            self.note("document.name", "must not look like a pack id", not_pattern=HandoffId.FORM)
        return name

    def _tags(self, entry: dict[str, Json]) -> tuple[str, ...]:
        tags = self.typed(entry.get("tags", []), list, "document.tags") or []
        return tuple(self.typed(one, str, f"document.tags[{n}]") or "" for n, one in enumerate(tags))

    def _ttl(self, entry: dict[str, Json]) -> int | None:
        minutes = entry.get("ttl_minutes")
        if minutes is None or self.typed(minutes, int, "document.ttl_minutes") is None:
            return None
        return self.within(minutes, 1, MAX_TTL_MINUTES, "document.ttl_minutes")

    def _status(self, entry: dict[str, Json]) -> Status:
        given = self.typed(entry.get("status", "draft"), str, "document.status")
        status = None if given is None else _STATUS.get(given.strip().lower())
        if given is not None and status is None:
            self.note("document.status", f"is none of {', '.join(_STATUS)}: {shown(given)}", allowed=[*_STATUS])
        return status or "draft"

    def _key(self, entry: dict[str, Json], at: str) -> str:
        key = self.needed(entry, "key", at).strip()
        if "key" in entry and type(entry["key"]) is str and _KEY.fullmatch(key) is None:
            form = "2 to 64 of a-z, 0-9, '_' and '-', the first a letter or digit"
            self.note(f"{at}key", f"must be {form}: {shown(key)}", pattern=f"^{_KEY.pattern}$")
        return key

    def _path(self, entry: dict[str, Json], at: str) -> str:
        path = self.needed(entry, "path", at).strip().replace("\\", "/")
        if type(entry.get("path")) is str and (problem := _path_problem(path)):
            self.note(f"{at}path", problem, guidance="write a path below the source root, such as src/app.py")
        return path

    def _lines(self, entry: dict[str, Json], place: str) -> Lines:
        """The range, in either form: `line_start` and `line_end`, or `lines`. When both are there they agree."""
        lineses: list[Lines] = []
        flat = [entry.get("line_start"), entry.get("line_end")]
        nested = entry.get("lines")
        if nested is None or flat != [None, None]:
            lineses.append(self._range(flat, (f"{place}.line_start", f"{place}.line_end")))
        lines = None if nested is None else self.members(nested, f"{place}.lines", _LINES)
        if lines is not None:
            ends = [lines.get(one) for one in _LINES]
            lineses.append(self._range(ends, (f"{place}.lines.start", f"{place}.lines.end")))
        if len(lineses) > 1 and lineses[0] != lineses[1]:
            self.note(f"{place}.lines", "says something else than line_start and line_end")
        return lineses[-1] if lineses else Lines(start=1, end=1)

    def _range(self, ends: list[Json], places: tuple[str, str]) -> Lines:
        for one, place in zip(ends, places, strict=True):
            if one is None:
                self.missing(place)
            elif self.typed(one, int, place) is not None:
                self.within(one, 1, None, place)
        start, end = (end if type(end) is int else 1 for end in ends)
        if not all(type(end) is int and end >= 1 for end in ends):
            return Lines(start=1, end=1)
        if end < start:
            self.note(places[1], f"must not be before the first line, {start}", minimum=start)
        elif end - start >= MAX_SPAN:
            self.note(places[1], f"leads over more than {MAX_SPAN} lines", maximum=start + MAX_SPAN - 1)
        return Lines(start=start, end=end)


def _path_problem(path: str) -> str | None:
    if not path:
        return "is empty"
    if len(path.encode()) > PATH_BYTES:
        return f"has more than {PATH_BYTES} bytes"
    if "\0" in path:
        return "holds a NUL character"
    if path.startswith("/"):
        return f"is absolute: {shown(path)}"
    if _DRIVE.match(path):
        return f"names a drive: {shown(path)}"
    return f"leads out of the source root: {shown(path)}" if ".." in path.split("/") else None
