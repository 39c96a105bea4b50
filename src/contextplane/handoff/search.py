"""Which chunks have a text, as a page would show each of them alone, whatever the case of its letters."""

from collections.abc import Callable

from contextplane.handoff.chunks import Chunk, heading, rendered_chunk, said_anyway, section_head
from contextplane.handoff.code import Looked
from contextplane.model.handoff import Section

__all__ = ["Search"]


class Search:
    """One text that is sought in the chunks of one pack. The head of a section is made once for all of its chunks."""

    def __init__(self, contains: str, *, compact: bool) -> None:
        self._needle = contains.casefold()
        self._compact = compact
        self._heads: dict[str, str] = {}

    def finds(self, chunk: Chunk, look: Callable[[], Looked | None]) -> bool:
        """Whether the chunk has it. `look` is called only when what is said anyway does not decide."""
        head = self._head(chunk.section)
        if self._needle in head:
            return True
        edge = head[-len(self._needle) :]  # it may begin in the head and end below
        first, *others = (said.casefold() for said in said_anyway(chunk))
        if self._needle in edge + first or any(self._needle in said for said in others):
            return True
        if chunk.ref is None:
            return False
        shown = heading(chunk) + rendered_chunk(chunk, look(), compact=self._compact)
        return self._needle in edge + shown.casefold()

    def _head(self, section: Section) -> str:
        if section.key not in self._heads:
            self._heads[section.key] = section_head(section).casefold()
        return self._heads[section.key]
