"""Reading the document that an agent writes: everything that is wrong with it is told at once.

What `get`, `write` and `ttl` answer is such a document: their read-only fields are known by name and ignored. Any other
field that is not known is refused. It looks at no file and at no store.
"""

import re

from contextplane.handoff.bounds import MAX_SPAN, MAX_TTL_MINUTES, NAME_BYTES, PATH_BYTES, READ_ONLY
from contextplane.handoff.noting import Noting, shown
from contextplane.model.canonical import Json
from contextplane.model.handoff import Diagram, HandoffDocument, Lines, Ref, Section, Status
from contextplane.model.ids import HandoffId

__all__ = ["MAX_TTL_MINUTES", "read_document"]

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
        found: list[Lines] = []
        flat = [entry.get("line_start"), entry.get("line_end")]
        nested = entry.get("lines")
        if nested is None or flat != [None, None]:
            found.append(self._range(flat, (f"{place}.line_start", f"{place}.line_end")))
        lines = None if nested is None else self.members(nested, f"{place}.lines", _LINES)
        if lines is not None:
            ends = [lines.get(one) for one in _LINES]
            found.append(self._range(ends, (f"{place}.lines.start", f"{place}.lines.end")))
        if len(found) > 1 and found[0] != found[1]:
            self.note(f"{place}.lines", "says something else than line_start and line_end")
        return found[-1] if found else Lines(start=1, end=1)

    def _range(self, ends: list[Json], places: tuple[str, str]) -> Lines:
        for one, place in zip(ends, places, strict=True):
            if one is None:
                self.missing(place)
            elif self.typed(one, int, place) is not None:
                self.within(one, 1, None, place)
        start, end = (one if type(one) is int else 1 for one in ends)
        if not all(type(one) is int and one >= 1 for one in ends):
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
