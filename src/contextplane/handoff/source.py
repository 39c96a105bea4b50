"""Reads the code that refs point at. Each file is read at most once.

A file that cannot be read is a state of its refs with a reason; it never fails a page. A file that was renamed is read
under its new name.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

from msgspec import structs

from contextplane.errors import ContextPlaneError, Family
from contextplane.handoff.anchors import AROUND, LineIndex, LineState, is_in_place, locate_block
from contextplane.model.handoff import LineRange, Ref
from contextplane.model.value import Value
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.world import InsideStore, OutsideRoot, Sources

__all__ = ["LocatedRef", "SourceReader", "SourceRefused"]

_MISSING = {"missing": True}
_STALE = frozenset({"changed", "gone", "unreadable"})


class SourceRefused(ContextPlaneError):
    """A file that a ref points at and whose lines cannot be shown. The message is the reason."""

    code: ClassVar[str] = "handoff_source_refused"
    family: ClassVar[Family] = "refused"


class LocatedRef(Value, frozen=True):
    """The lines of a ref as they are now: their state, where they are, and their text.

    `path`: the new name of a file that was renamed.
    """

    state: LineState | Literal["unreadable"]
    lines: LineRange | None
    code: tuple[str, ...] = ()
    why: str = ""
    path: str | None = None

    @property
    def stale(self) -> bool:
        """Whether the lines are no longer those that the ref was written about."""
        return self.state in _STALE


class SourceReader:
    """Reads files below one source root, each once. Lines end with LF or CRLF, which are not part of them.

    `renamed_path` returns the new name of a file that is missing, None if that is not known. `working_folder`: the
    folder below the root from which a writer may have meant a path.
    """

    def __init__(
        self,
        sources: Sources,
        most_bytes: int,
        *,
        renamed_path: Callable[[str], str | None] | None = None,
        working_folder: str = "",
    ) -> None:
        self._sources = sources
        self._most_bytes = most_bytes
        self._renamed_path = renamed_path
        self._working_folder = working_folder
        self._new_paths: dict[str, str | None] = {}
        self._texts: dict[str, str | SourceRefused] = {}
        self._lines: dict[str, tuple[str, ...]] = {}
        self._indexes: dict[str, LineIndex] = {}

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines of a file. `SourceRefused` when it is missing, not text, too large, or outside the root."""
        if path not in self._lines:
            self._lines[path] = _split(self._text(path))
        return self._lines[path]

    def locate(self, ref: Ref) -> LocatedRef:
        """Locate the ref's lines in its file. For a file that cannot be read the state is `unreadable`.

        A file that is missing is looked for under its new name, if the ref has an anchor to know its lines by.
        """
        try:
            return self._locate(ref)
        except SourceRefused as refused:
            unreadable = LocatedRef(state="unreadable", lines=None, why=refused.message)
            if ref.anchor is None or refused.details != _MISSING:
                return unreadable
        path = self._new_path(ref.path)
        if path is None:
            return unreadable
        try:
            located = self._locate(structs.replace(ref, path=path))
        except SourceRefused:
            return unreadable
        state = "moved" if located.state == "current" else located.state
        return structs.replace(located, state=state, path=path)

    def _locate(self, ref: Ref) -> LocatedRef:
        in_place = self._lines_in_place(ref)
        if in_place:
            return LocatedRef(state="current", lines=ref.lines, code=in_place)
        lines = self.lines(ref.path)
        index = self._indexes.setdefault(ref.path, LineIndex(lines))
        location = locate_block(lines, ref, index)
        code = lines[location.lines.start - 1 : location.lines.end] if location.lines else ()
        return LocatedRef(state=location.state, lines=location.lines, code=code, why=location.why)

    def _new_path(self, path: str) -> str | None:
        if path not in self._new_paths:
            self._new_paths[path] = self._renamed_path(path) if self._renamed_path is not None else None
        return self._new_paths[path]

    def _lines_in_place(self, ref: Ref) -> tuple[str, ...]:
        """The ref's lines if they are at their old place in a file that is read for the first time, else none.

        Most refs are in place, and most files have one ref: there is no need to split the rest of the file into lines.
        """
        was_read = ref.path in self._texts
        text = self._text(ref.path)
        if was_read:
            return ()
        enough = ref.lines.end + AROUND
        *top, _ = pieces = text.split("\n", enough)
        if len(pieces) <= enough or not is_in_place(top, ref):
            return ()
        return tuple(top[ref.lines.start - 1 : ref.lines.end])

    def _text(self, path: str) -> str:
        """The text of a file with LF alone at the ends of its lines."""
        text = self._texts.get(path)
        if text is None:
            try:
                text = self._bytes(path).decode()
            except UnicodeDecodeError:
                text = SourceRefused("the file is not UTF-8 text", at=path)
            except SourceRefused as refused:
                text = refused
            if isinstance(text, str) and "\r" in text:
                text = text.replace("\r\n", "\n")
            self._texts[path] = text
        if isinstance(text, SourceRefused):
            raise text
        return text

    def _missing_text(self, path: str) -> str:
        """Say that a file is missing, and which one may be meant: the one in the working folder."""
        meant = f"{self._working_folder}/{path}"
        if not self._working_folder or not self._exists(meant):
            return "the file is missing"
        return f"the file is missing; paths start at the source root: {meant}"

    def _exists(self, path: str) -> bool:
        try:
            next(iter(self._sources.chunks(path)), b"")
        except (ContextPlaneError, OSError, ValueError):
            return False
        return True

    def _bytes(self, path: str) -> bytes:
        chunks, size = [], 0
        try:
            for chunk in self._sources.chunks(path):
                size += len(chunk)
                if size > self._most_bytes:
                    raise SourceRefused(f"the file is larger than {self._most_bytes} bytes", at=path)
                chunks.append(chunk)
        except OutsideRoot as error:
            raise SourceRefused("the path leads out of the source root", at=path) from error
        except InsideStore as error:
            raise SourceRefused("the path leads into a store", at=path) from error
        except SourceUnreadable as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise SourceRefused(self._missing_text(path), at=path, details=_MISSING) from error
            raise SourceRefused(error.message, at=path) from error
        except (OSError, ValueError) as error:
            raise SourceRefused(f"cannot be read: {error}", at=path) from error
        return b"".join(chunks)


def _split(text: str) -> tuple[str, ...]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return tuple(lines)
