"""Where each part of a pack with overlays comes from: the pack's own file, or a change of an overlay."""

from collections.abc import Sequence

from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value

__all__ = ["Origin", "Origins"]


class Origin(Value, frozen=True):
    """The document that a part comes from, and its JSON Pointer there. `overlay` is its reference, "" for the pack."""

    overlay: str
    at: str

    def inside(self, tokens: Sequence[str | int]) -> "Origin":
        return Origin(overlay=self.overlay, at=self.at + pointer(tokens))


class Origins:
    """The origin of one part, and of those of its own parts that do not follow from it.

    It is changed along with the document: a part of a list that is taken out moves all that come after it.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._parts: dict[str, Origins] | list[Origins] | None = None

    def of(self, at: str) -> Origin:
        """Where the part with this JSON Pointer comes from; for one that is missing, where it would."""
        _, _, way = at.partition("/")
        step, slash, rest = way.partition("/")
        name = step.replace("~1", "/").replace("~0", "~")
        part = self._part(name) if at else None
        return Origin(overlay=self._origin.overlay, at=self._origin.at + at) if part is None else part.of(slash + rest)

    def member(self, key: str) -> "Origins":
        """The member of an object, to be followed from here on."""
        parts = self._parts if isinstance(self._parts, dict) else {}
        self._parts = parts
        return parts.setdefault(key, Origins(self._origin.inside([key])))

    def entry(self, position: int, entries: Sequence[Json]) -> "Origins":
        """The entry of a list, to be followed from here on."""
        return self._listed(entries)[position]

    def set_member(self, key: str, origin: Origin) -> None:
        """A member that is replaced, added, or taken out: what is said of it comes from there."""
        self.member(key)
        if isinstance(self._parts, dict):
            self._parts[key] = Origins(origin)

    def set_entry(self, position: int, entries: Sequence[Json], origin: Origin) -> None:
        """An entry that replaces another, or one that is put behind all others."""
        parts = self._listed(entries)
        parts[position : position + 1] = [Origins(origin)]

    def drop_entry(self, position: int, entries: Sequence[Json]) -> None:
        del self._listed(entries)[position]

    def _listed(self, entries: Sequence[Json]) -> "list[Origins]":
        if not isinstance(self._parts, list):
            self._parts = [Origins(self._origin.inside([n])) for n in range(len(entries))]
        return self._parts

    def _part(self, step: str) -> "Origins | None":
        if isinstance(self._parts, dict):
            return self._parts.get(step)
        if isinstance(self._parts, list) and step.isdecimal() and int(step) < len(self._parts):
            return self._parts[int(step)]
        return None
