"""Where lines stand in a file, by their marks: made once for a file, however many refs lead into it.

A mark is the CRC-32 of one line. It says where to look and proves nothing.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from zlib import crc32

from contextplane.model.handoff import Anchor
from contextplane.model.value import Value

__all__ = ["AROUND", "CANDIDATES", "NO_LINE", "Neighbours", "Standing", "mark_of", "marks_of", "written"]

AROUND = 3
"""So many lines on either side are an anchor's context."""
NO_LINE = -1
"""No line has this mark."""
_DIGITS = 8
"""Of a mark."""
CANDIDATES = 1024
"""So many places of a line are looked at, and no more."""


def mark_of(line: str) -> int:
    return crc32(line.encode())


def written(lines: Sequence[str]) -> str:
    """The marks of some lines as an anchor keeps them."""
    return "".join(f"{mark_of(line):0{_DIGITS}x}" for line in lines)


def marks_of(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(text[at : at + _DIGITS], 16) for at in range(0, len(text), _DIGITS))
    except ValueError:
        return (NO_LINE,)


class Standing:
    """The lines of one file and where each of them stands, which is found out when it is first asked for."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._places: dict[int, list[int]] | None = None

    def places(self, mark: int) -> Sequence[int]:
        """All places of a line, from the top."""
        if self._places is None:
            self._places = self._by_mark()
        return self._places.get(mark, ())

    def nearest(self, mark: int, at: int) -> Iterator[int]:
        """The places of a line from `at` outwards; of a line that stands everywhere, only the nearest."""
        return islice(_outwards(self.places(mark), at), CANDIDATES)

    def runs(self, marks: Sequence[int], at: int) -> list[int]:
        """Where these lines stand one after the other, the nearest first. The rarest of them is looked for."""
        rarest = min(range(len(marks)), key=lambda n: len(self.places(marks[n])))
        starts = (place - rarest for place in self.nearest(marks[rarest], at + rarest))
        return [start for start in starts if start >= 0 and self._is_run(marks, start)]

    def _by_mark(self) -> dict[int, list[int]]:
        by_text: dict[str, list[int]] = {}
        for at, line in enumerate(self.lines):
            by_text.setdefault(line, []).append(at)
        found: dict[int, list[int]] = {}
        for line, places in by_text.items():
            mark = mark_of(line)
            found[mark] = sorted(found[mark] + places) if mark in found else places
        return found

    def _is_run(self, marks: Sequence[int], start: int) -> bool:
        if start + len(marks) > len(self.lines):
            return False
        return all(mark_of(self.lines[start + n]) == mark for n, mark in enumerate(marks))


class Neighbours(Value, frozen=True):
    """The marks of the lines above and below a block. One that stood at an edge of its file has that as neighbour."""

    above: tuple[int, ...]
    below: tuple[int, ...]

    @classmethod
    def of(cls, anchor: Anchor) -> "Neighbours":
        return cls(above=marks_of(anchor.before), below=marks_of(anchor.after))

    def agreeing(self, lines: Sequence[str], start: int, end: int) -> int:
        """How many of the lines around a place are the old ones, each at its old distance."""
        alike = sum(at < len(lines) and mark_of(lines[at]) == mark for mark, at in self._at(start, end))
        return alike + AROUND * (self._at_top(start) + self._at_bottom(lines, end))

    def over(self, lines: Sequence[str], start: int) -> bool:
        """Whether all that was above stands directly above a place."""
        first = start - len(self.above)
        if not self.above or first < 0 or start > len(lines):
            return self._at_top(start)
        return all(mark_of(lines[first + n]) == mark for n, mark in enumerate(self.above))

    def under(self, lines: Sequence[str], end: int) -> bool:
        """Whether all that was below stands directly below a place."""
        if not self.below or end + len(self.below) > len(lines):
            return self._at_bottom(lines, end)
        return all(mark_of(lines[end + n]) == mark for n, mark in enumerate(self.below))

    def around(self, lines: Sequence[str], start: int, end: int) -> bool:
        """Whether they all stand directly around a place."""
        return self.over(lines, start) and self.under(lines, end)

    def pin(self, standing: Standing, start: int, end: int) -> bool:
        """Whether a line that stands nowhere else in the file is as far from a place as it was."""
        return any(
            len(standing.places(mark)) == 1 and standing.places(mark)[0] == at for mark, at in self._at(start, end)
        )

    def hold(self, standing: Standing, start: int, end: int) -> bool:
        """Whether such a line is close by on either side, and one of them as far away as it was."""
        lines = standing.lines
        over = {mark_of(line) for line in lines[max(0, start - AROUND) : start]} & {*self.above}
        under = {mark_of(line) for line in lines[end : end + AROUND]} & {*self.below}
        return (
            (self._at_top(start) or _has_lone(standing, over))
            and (self._at_bottom(lines, end) or _has_lone(standing, under))
            and self.pin(standing, start, end)
        )

    def _at(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Each of them, and where it would be around a place."""
        yield from zip(reversed(self.above), range(start - 1, -1, -1), strict=False)
        yield from zip(self.below, range(end, end + AROUND), strict=False)

    def _at_top(self, start: int) -> bool:
        return not self.above and start == 0

    def _at_bottom(self, lines: Sequence[str], end: int) -> bool:
        return not self.below and end == len(lines)


def _has_lone(standing: Standing, marks: set[int]) -> bool:
    return any(len(standing.places(mark)) == 1 for mark in marks)


def _outwards(places: Sequence[int], at: int) -> Iterator[int]:
    right = bisect_left(places, at)
    left = right - 1
    while left >= 0 or right < len(places):
        if left < 0 or (right < len(places) and places[right] - at <= at - places[left]):
            yield places[right]
            right += 1
        else:
            yield places[left]
            left -= 1
