"""The first parts of a large document. To tell what is wrong with a part takes long, and nobody mends thousands."""

from collections.abc import Collection, Sequence

from contextplane.model.canonical import Json

__all__ = ["first_parts"]

_MEMBERS = 100


def first_parts(value: Json, most: int, fields: Collection[str]) -> tuple[Json, bool]:
    """A copy that ends after about so many parts, and whether that is all of it.

    Lists and objects end early; none becomes empty by it, and of an object the first members stay, and all that have
    one of the names of `fields`. So nothing is missed in the copy that is there in the document, and a large part
    does not hide what is wrong beside it.
    """
    cut = _Cut(most, fields)
    return cut.of(value), cut.is_whole


class _Cut:
    def __init__(self, most: int, fields: Collection[str]) -> None:
        self._left = most
        self._fields = fields
        self.is_whole = True

    def of(self, value: Json) -> Json:
        self._left -= 1
        if isinstance(value, dict):
            return self._members(value)
        return self._elements(value) if isinstance(value, list | tuple) else value

    def _members(self, value: dict[str, Json]) -> Json:
        kept: dict[str, Json] = {}
        for name, one in value.items():
            if self._left > 0 or len(kept) < _MEMBERS or name in self._fields:
                kept[name] = self.of(one)
        self.is_whole = self.is_whole and len(kept) == len(value)
        return kept

    def _elements(self, value: Sequence[Json]) -> Json:
        kept: list[Json] = []
        for one in value:
            if kept and self._left <= 0:
                self.is_whole = False
                break
            kept.append(self.of(one))
        return kept
