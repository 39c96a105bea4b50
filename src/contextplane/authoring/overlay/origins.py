"""The origin of each part of a pack with overlays: the pack's own file, or a change of an overlay."""

from collections.abc import Sequence

from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value

__all__ = ["Origin", "Origins"]


class Origin(Value, frozen=True):
    """The document that a part comes from, and its JSON Pointer there. `overlay` is "" for the pack."""

    overlay: str
    at: str

    def inside(self, tokens: Sequence[str | int]) -> "Origin":
        return Origin(overlay=self.overlay, at=self.at + pointer(tokens))


class Origins:
    """The origin of one part, and of those parts inside it that come from elsewhere.

    It is changed along with the document: removing an entry of a list moves all that come after it.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._parts: dict[str, Origins] | list[Origins] | None = None

    def of(self, at: str) -> Origin:
        """Return the origin of the part with this JSON Pointer; for a missing part, the one it would have."""
        _, _, path = at.partition("/")
        step, slash, remainder = path.partition("/")
        name = step.replace("~1", "/").replace("~0", "~")
        part = self._part(name) if at else None
        return (
            Origin(overlay=self._origin.overlay, at=self._origin.at + at)
            if part is None
            else part.of(slash + remainder)
        )

    def member(self, key: str) -> "Origins":
        """Return the origins of a member of an object, which are tracked from here on."""
        parts = self._parts if isinstance(self._parts, dict) else {}
        self._parts = parts
        return parts.setdefault(key, Origins(self._origin.inside([key])))

    def entry(self, position: int, entries: Sequence[Json]) -> "Origins":
        """Return the origins of an entry of a list, which are tracked from here on."""
        return self._entry_origins(entries)[position]

    def set_member(self, key: str, origin: Origin) -> None:
        """Set the origin of a member that is replaced, added or removed."""
        self.member(key)
        if isinstance(self._parts, dict):
            self._parts[key] = Origins(origin)

    def set_entry(self, position: int, entries: Sequence[Json], origin: Origin) -> None:
        """Set the origin of an entry that replaces another or is appended."""
        parts = self._entry_origins(entries)
        parts[position : position + 1] = [Origins(origin)]

    def drop_entry(self, position: int, entries: Sequence[Json]) -> None:
        del self._entry_origins(entries)[position]

    def _entry_origins(self, entries: Sequence[Json]) -> "list[Origins]":
        if not isinstance(self._parts, list):
            self._parts = [Origins(self._origin.inside([n])) for n in range(len(entries))]
        return self._parts

    def _part(self, step: str) -> "Origins | None":
        if isinstance(self._parts, dict):
            return self._parts.get(step)
        if isinstance(self._parts, list) and step.isdecimal() and int(step) < len(self._parts):
            return self._parts[int(step)]
        return None
