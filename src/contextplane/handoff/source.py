"""The code that refs point at: each file is read at most once, and a bad one is a reason, never the end of a page."""

from typing import ClassVar, Literal

from contextplane.errors import ContextPlaneError, Family
from contextplane.handoff.anchors import AROUND, Standing, State, located, stands
from contextplane.model.handoff import Lines, Ref
from contextplane.model.value import Value
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.world import InsideStore, OutsideRoot, Sources

__all__ = ["Looked", "SourceReader", "SourceRefused"]

_STALE = frozenset({"changed", "gone", "unreadable"})


class SourceRefused(ContextPlaneError):
    """A file that a ref points at and whose lines cannot be shown. The message is the reason."""

    code: ClassVar[str] = "handoff_source_refused"
    family: ClassVar[Family] = "refused"


class Looked(Value, frozen=True):
    """What is at a ref's place now: the state of its lines, where they are, and the lines themselves."""

    state: State | Literal["unreadable"]
    lines: Lines | None
    code: tuple[str, ...] = ()
    why: str = ""

    @property
    def stale(self) -> bool:
        """What was found is no longer what the ref was written about."""
        return self.state in _STALE


class SourceReader:
    """Files of one source root, as they are while it lives. Lines end with LF or CRLF, which are no part of them."""

    def __init__(self, sources: Sources, most_bytes: int) -> None:
        self._sources = sources
        self._most_bytes = most_bytes
        self._texts: dict[str, str | SourceRefused] = {}
        self._lines: dict[str, tuple[str, ...]] = {}
        self._standing: dict[str, Standing] = {}

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines of a file. `SourceRefused` when it is missing, no text, too large, or not below the root."""
        if path not in self._lines:
            self._lines[path] = _split(self._text(path))
        return self._lines[path]

    def look(self, ref: Ref) -> Looked:
        """Find the ref's lines in its file. A file that cannot be read is a state of its own."""
        try:
            at_its_place = self._at_its_place(ref)
            lines = () if at_its_place else self.lines(ref.path)
        except SourceRefused as refused:
            return Looked(state="unreadable", lines=None, why=refused.message)
        if at_its_place:
            return Looked(state="current", lines=ref.lines, code=at_its_place)
        standing = self._standing.setdefault(ref.path, Standing(lines))
        found = located(lines, ref, standing)
        code = lines[found.lines.start - 1 : found.lines.end] if found.lines else ()
        return Looked(state=found.state, lines=found.lines, code=code, why=found.why)

    def _at_its_place(self, ref: Ref) -> tuple[str, ...]:
        """The ref's lines when they are where they were, cut from the top of a file that nobody looked at before.

        Most refs are at their place, and most files have one: there is no need to make lines of all the rest.
        """
        seen = ref.path in self._texts
        text = self._text(ref.path)
        if seen:
            return ()
        enough = ref.lines.end + AROUND
        *top, _ = pieces = text.split("\n", enough)
        if len(pieces) <= enough or not stands(top, ref):
            return ()
        return tuple(top[ref.lines.start - 1 : ref.lines.end])

    def _text(self, path: str) -> str:
        """The text of a file with LF alone at the ends of its lines."""
        read = self._texts.get(path)
        if read is None:
            try:
                read = self._bytes(path).decode()
            except UnicodeDecodeError:
                read = SourceRefused("the file is not UTF-8 text", at=path)
            except SourceRefused as refused:
                read = refused
            if isinstance(read, str) and "\r" in read:
                read = read.replace("\r\n", "\n")
            self._texts[path] = read
        if isinstance(read, SourceRefused):
            raise read
        return read

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
            missing = isinstance(error.__cause__, FileNotFoundError)
            raise SourceRefused("the file is missing" if missing else error.message, at=path) from error
        except (OSError, ValueError) as error:
            raise SourceRefused(f"cannot be read: {error}", at=path) from error
        return b"".join(chunks)


def _split(text: str) -> tuple[str, ...]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return tuple(lines)
