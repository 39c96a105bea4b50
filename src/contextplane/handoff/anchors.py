"""Anchors of refs: making one from the lines of a file, and locating those lines later.

It reads no file; a file is the tuple of its lines, without their ends. An anchor's `digest` is the SHA-256 of the
lines, each with one line feed, so that `sed -n 3,7p FILE | sha256sum` gives it. Its contexts and its probe are marks: a
mark is the CRC-32 of one line. Marks narrow the search and prove nothing: no block counts before its digest agrees.

The law: other lines are never shown as if they were the old ones. Code repeats itself, so a block is identified by its
neighbours. Where they leave a doubt, the block is reported as changed or gone, not as moved or current.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Literal
from zlib import crc32

from contextplane.model.handoff import Anchor, LineRange, Ref
from contextplane.model.value import Value

__all__ = [
    "AROUND",
    "CANDIDATES",
    "NO_LINE",
    "BlockLocation",
    "LineIndex",
    "LineState",
    "Neighbours",
    "is_in_place",
    "locate_block",
    "make_anchor",
    "mark_of",
    "marks_of",
    "marks_text",
]

AROUND = 3
"""Lines on either side of a block that are its context in the anchor."""
NO_LINE = -1
"""No line has this mark."""
CANDIDATES = 1024
"""How many places of one line are tried at most."""
_DIGITS = 8  # of a mark, in hex


def mark_of(line: str) -> int:
    return crc32(line.encode())


def marks_text(lines: Sequence[str]) -> str:
    """The marks of these lines, concatenated as an anchor stores them."""
    return "".join(f"{mark_of(line):0{_DIGITS}x}" for line in lines)


def marks_of(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(text[at : at + _DIGITS], 16) for at in range(0, len(text), _DIGITS))
    except ValueError:
        return (NO_LINE,)


class LineIndex:
    """The lines of one file, and an index of their places by mark, which is built on first use."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._places: dict[int, list[int]] | None = None

    def places(self, mark: int) -> Sequence[int]:
        """All places of the line with this mark, from the top."""
        if self._places is None:
            self._places = self._by_mark()
        return self._places.get(mark, ())

    def nearest(self, mark: int, at: int) -> Iterator[int]:
        """The places of a line from `at` outwards, at most `CANDIDATES` of them."""
        return islice(_outwards(self.places(mark), at), CANDIDATES)

    def runs(self, marks: Sequence[int], at: int) -> list[int]:
        """Where these lines follow each other, the nearest first. The search goes by the rarest of them."""
        rarest = min(range(len(marks)), key=lambda n: len(self.places(marks[n])))
        starts = (place - rarest for place in self.nearest(marks[rarest], at + rarest))
        return [start for start in starts if start >= 0 and self._is_run(marks, start)]

    def _by_mark(self) -> dict[int, list[int]]:
        by_text: dict[str, list[int]] = {}
        for at, line in enumerate(self.lines):
            by_text.setdefault(line, []).append(at)
        by_mark: dict[int, list[int]] = {}
        for line, places in by_text.items():
            mark = mark_of(line)
            by_mark[mark] = sorted(by_mark[mark] + places) if mark in by_mark else places
        return by_mark

    def _is_run(self, marks: Sequence[int], start: int) -> bool:
        if start + len(marks) > len(self.lines):
            return False
        return all(mark_of(self.lines[start + n]) == mark for n, mark in enumerate(marks))


class Neighbours(Value, frozen=True):
    """The marks of the lines above and below a block. An edge of the file counts as a neighbour."""

    above: tuple[int, ...]
    below: tuple[int, ...]

    @classmethod
    def of(cls, anchor: Anchor) -> "Neighbours":
        return cls(above=marks_of(anchor.before), below=marks_of(anchor.after))

    def count_matches(self, lines: Sequence[str], start: int, end: int) -> int:
        """How many of the lines around a place are the old ones, each at its old distance."""
        alike = sum(at < len(lines) and mark_of(lines[at]) == mark for mark, at in self._at(start, end))
        return alike + AROUND * (self._at_top(start) + self._at_bottom(lines, end))

    def over(self, lines: Sequence[str], start: int) -> bool:
        """Whether all lines that were above the block are directly above this place."""
        first = start - len(self.above)
        if not self.above or first < 0 or start > len(lines):
            return self._at_top(start)
        return all(mark_of(lines[first + n]) == mark for n, mark in enumerate(self.above))

    def under(self, lines: Sequence[str], end: int) -> bool:
        """Whether all lines that were below the block are directly below this place."""
        if not self.below or end + len(self.below) > len(lines):
            return self._at_bottom(lines, end)
        return all(mark_of(lines[end + n]) == mark for n, mark in enumerate(self.below))

    def around(self, lines: Sequence[str], start: int, end: int) -> bool:
        """Whether all neighbours are directly around this place."""
        return self.over(lines, start) and self.under(lines, end)

    def pin(self, index: LineIndex, start: int, end: int) -> bool:
        """Whether a neighbour that is unique in the file is at its old distance from this place."""
        return any(len(index.places(mark)) == 1 and index.places(mark)[0] == at for mark, at in self._at(start, end))

    def hold(self, index: LineIndex, start: int, end: int) -> bool:
        """Whether a neighbour that is unique in the file is close by on either side, one at its old distance."""
        lines = index.lines
        over = {mark_of(line) for line in lines[max(0, start - AROUND) : start]} & {*self.above}
        under = {mark_of(line) for line in lines[end : end + AROUND]} & {*self.below}
        return (
            (self._at_top(start) or _has_unique(index, over))
            and (self._at_bottom(lines, end) or _has_unique(index, under))
            and self.pin(index, start, end)
        )

    def _at(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Each neighbour, and where it would be around this place."""
        yield from zip(reversed(self.above), range(start - 1, -1, -1), strict=False)
        yield from zip(self.below, range(end, end + AROUND), strict=False)

    def _at_top(self, start: int) -> bool:
        return not self.above and start == 0

    def _at_bottom(self, lines: Sequence[str], end: int) -> bool:
        return not self.below and end == len(lines)


def _has_unique(index: LineIndex, marks: set[int]) -> bool:
    return any(len(index.places(mark)) == 1 for mark in marks)


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


LineState = Literal["current", "moved", "changed", "gone", "unanchored"]

_DISTINCTIVE = 32
"""A block with fewer characters than this may occur by chance: its text alone identifies nothing."""
_SHIFTS = tuple(shift for distance in range(1, 33) for shift in (distance, -distance))
_HASHED_LINES = 1 << 17
_WIDER = 100
"""A block may grow to twice its length plus this many lines and still be the one between its neighbours."""

_OTHERS = "the lines are no longer in their place; there are equal ones, but not among their old neighbours"


class BlockLocation(Value, frozen=True):
    """Where the lines of a ref are now, None when nowhere. `why`: the reason when they are not current."""

    state: LineState
    lines: LineRange | None
    why: str = ""


def make_anchor(lines: Sequence[str], span: LineRange) -> Anchor | None:
    """Make the anchor of these lines of a file; None when the file ends before them."""
    if span.end > len(lines):
        return None
    start, end = span.start - 1, span.end
    block = lines[start:end]
    probe_at = max(range(len(block)), key=lambda n: (len(block[n].strip()), -n))
    return Anchor(
        digest=_digest(block),
        before=marks_text(lines[max(0, start - AROUND) : start]),
        after=marks_text(lines[end : end + AROUND]),
        probe=marks_text(block[probe_at : probe_at + 1]),
        probe_at=probe_at,
    )


def locate_block(lines: Sequence[str], ref: Ref, index: LineIndex | None = None) -> BlockLocation:
    """Locate the lines of a ref. `index` is of the same lines, to be shared by several refs into one file.

    The cost grows with the file, never with the file times the block.
    """
    span, anchor = ref.lines, ref.anchor
    if anchor is None:
        return (
            BlockLocation(state="unanchored", lines=span)
            if span.end <= len(lines)
            else _as_gone(_past_end(span, lines))
        )
    if is_in_place(lines, ref):
        return BlockLocation(state="current", lines=span)
    return _BlockSearch(index or LineIndex(lines), span, anchor).locate()


def is_in_place(lines: Sequence[str], ref: Ref) -> bool:
    """Whether an anchored block is at its old place among all its neighbours. Other lines do not matter."""
    start, end, anchor = ref.lines.start - 1, ref.lines.end, ref.anchor
    if anchor is None or end > len(lines) or _digest(lines[start:end]) != anchor.digest:
        return False
    return Neighbours.of(anchor).around(lines, start, end)


class _BlockSearch:
    """The search for a block that is not at its old place among all its old neighbours.

    Strategies are tried from the strongest evidence to the weakest: all neighbours, lines that are unique in the file,
    then the block alone. The first that decides wins.
    """

    def __init__(self, index: LineIndex, span: LineRange, anchor: Anchor) -> None:
        self._index = index
        self._lines = index.lines
        self._anchor = anchor
        self._neighbours = Neighbours.of(anchor)
        self._at = span.start - 1
        self._length = len(span)
        self._probe = next(iter(marks_of(anchor.probe)), NO_LINE) if 0 <= anchor.probe_at < len(span) else NO_LINE

    def locate(self) -> BlockLocation:
        """Where the block is now, by the first strategy that decides."""
        strategies = (self._at_the_old_place, self._among_all, self._between, self._near_unique_lines, self._alone)
        results = (strategy() for strategy in strategies)
        return next((result for result in results if result is not None), None) or self._no_match()

    def _at_the_old_place(self) -> BlockLocation | None:
        """Its neighbours are at their old place and it is not: an equal block elsewhere is another one."""
        start, end = self._at, self._at + self._length
        edges = not self._neighbours.above and not self._neighbours.below
        if edges or not self._neighbours.over(self._lines, start):
            return None
        if self._neighbours.under(self._lines, start):
            return _as_gone("the lines were removed")
        return _as_changed(start, end) if end <= len(self._lines) and self._neighbours.under(self._lines, end) else None

    def _among_all(self) -> BlockLocation | None:
        """It is elsewhere among all its neighbours. A small shift is the usual case, and needs no search."""
        at = self._at + self._anchor.probe_at
        for shift in _SHIFTS if self._probe != NO_LINE else ():
            start = self._at + shift
            if not (0 <= start <= len(self._lines) - self._length) or mark_of(self._lines[at + shift]) != self._probe:
                continue
            if self._is_whole(start) and self._is_block(start):
                return self._location(start)
        return next((self._location(start) for start in self._places if self._is_whole(start)), None)

    def _between(self) -> BlockLocation | None:
        """Its neighbours are elsewhere or wider apart: lines were added beside it, or took its place."""
        if not self._neighbours.above and not self._neighbours.below:  # it was the whole file: some of it must be left
            return self._within(0, len(self._lines)) if self._index.places(self._probe) else None
        if not self._starts or not self._ends:
            return None
        ends, widest = sorted(self._ends), 2 * self._length + _WIDER
        gaps = [
            (abs(end - start - self._length), abs(start - self._at), start, end)
            for start in self._starts
            for end in _closest(ends, start + self._length)
            if start <= end <= start + widest
        ]
        if not gaps:
            return None
        _, _, start, end = min(gaps)
        return self._within(start, end)

    def _within(self, start: int, end: int) -> BlockLocation:
        """What is between all its neighbours: the block with new lines beside it, or other lines."""
        inside = [place for place in self._places if start <= place and place + self._length <= end]
        ends = [place for place in inside if place == start or place + self._length == end]
        above, below = self._neighbours.above, self._neighbours.below
        beside = [at for at in ends if (above and at == start) or (below and at + self._length == end)]
        if beside or (len(inside) == 1 and (self._is_distinctive or (ends and self._is_only))):
            return self._location(self._at if self._at in beside else (beside or inside)[0])
        return _as_changed(start, end) if end > start else _as_gone("the lines were removed")

    def _near_unique_lines(self) -> BlockLocation | None:
        """A neighbour that is unique in the file is close to it on either side, as before."""
        places = [place for place in self._places if self._neighbours.hold(self._index, place, place + self._length)]
        return self._location(places[0]) if len(places) == 1 else None

    def _alone(self) -> BlockLocation | None:
        """It is at the place with most of its neighbours, which is its old place or the only one."""
        most = max(self._places, key=lambda place: (self._count_matches(place), place == self._at), default=None)
        if most is None or (most != self._at and 0 < self._count_matches(self._at) >= self._count_matches(most)):
            return None
        start, end, neighbours = most, most + self._length, self._neighbours
        over, under = neighbours.over(self._lines, start), neighbours.under(self._lines, end)
        half = most == self._at and self._count_matches(most) >= AROUND
        if half and (self._is_only or neighbours.pin(self._index, start, end)):
            return self._location(most)
        if (neighbours.above and self._starts and not over) or (neighbours.below and self._ends and not under):
            return None  # its neighbours are elsewhere
        beside = over or under
        is_identified = (beside or self._is_distinctive) if self._is_only else (beside and most == self._at)
        return self._location(most) if is_identified else None

    def _no_match(self) -> BlockLocation:
        """No strategy matched: `changed` if the lines on one side are still in place, else `gone`."""
        end = self._at + self._length
        beside = (self._neighbours.above and self._neighbours.over(self._lines, self._at)) or (
            self._neighbours.below and self._neighbours.under(self._lines, end)
        )
        if beside and end <= len(self._lines):
            return _as_changed(self._at, end)
        return _as_gone(_OTHERS if self._places else "the lines are no longer in the file")

    @cached_property
    def _candidates(self) -> list[int]:
        """Where the block would start, for each place of its probe line that leaves room for it."""
        probe_at, last = self._anchor.probe_at, len(self._lines) - self._length
        starts = (at - probe_at for at in self._index.nearest(self._probe, self._at + probe_at))
        return [start for start in starts if 0 <= start <= last]

    @cached_property
    def _places(self) -> list[int]:
        """Where the block is, the nearest first. Of too many candidates only the likeliest are hashed."""
        most, starts = max(1, _HASHED_LINES // self._length), self._candidates
        if len(starts) > most:
            starts = sorted(starts, key=lambda start: (-self._count_matches(start), abs(start - self._at)))[:most]
        return [start for start in starts if self._is_block(start)]

    @property
    def _is_only(self) -> bool:
        """Whether it is at exactly one place, and all candidates were hashed."""
        all_hashed = max(1, _HASHED_LINES // self._length) >= len(self._candidates)
        return len(self._places) == 1 and all_hashed and len(self._index.places(self._probe)) <= CANDIDATES

    @cached_property
    def _starts(self) -> list[int]:
        """Where the lines that were above it end now."""
        above = self._neighbours.above
        return [at + len(above) for at in self._index.runs(above, self._at - len(above))] if above else [0]

    @cached_property
    def _ends(self) -> list[int]:
        """Where the lines that were below it begin now."""
        below = self._neighbours.below
        return self._index.runs(below, self._at + self._length) if below else [len(self._lines)]

    @cached_property
    def _is_distinctive(self) -> bool:
        """Whether the block is too long to occur somewhere by chance."""
        block = self._lines[self._places[0] : self._places[0] + self._length] if self._places else ()
        return sum(len("".join(line.split())) for line in block) >= _DISTINCTIVE

    def _is_block(self, start: int) -> bool:
        return _digest(self._lines[start : start + self._length]) == self._anchor.digest

    def _is_whole(self, start: int) -> bool:
        return self._neighbours.around(self._lines, start, start + self._length)

    def _count_matches(self, start: int) -> int:
        return self._neighbours.count_matches(self._lines, start, start + self._length)

    def _location(self, start: int) -> BlockLocation:
        now = LineRange(start=start + 1, end=start + self._length)
        if start == self._at:
            return BlockLocation(state="current", lines=now)
        return BlockLocation(state="moved", lines=now, why=f"the lines moved, they are now {now.start}-{now.end}")


def _closest(ends: Sequence[int], expected: int) -> Sequence[int]:
    """The ends on either side of the expected one."""
    at = bisect_left(ends, expected)
    return ends[max(0, at - 1) : at + 1]


def _as_changed(start: int, end: int) -> BlockLocation:
    now = LineRange(start=start + 1, end=end)
    return BlockLocation(
        state="changed", lines=now, why=f"these lines changed; in their place are now lines {now.start}-{now.end}"
    )


def _as_gone(why: str) -> BlockLocation:
    return BlockLocation(state="gone", lines=None, why=why)


def _past_end(span: LineRange, lines: Sequence[str]) -> str:
    return f"lines {span.start}-{span.end} are past the end of the file, which has {len(lines)}"


def _digest(block: Sequence[str]) -> str:
    return "sha256:" + hashlib.sha256(("\n".join(block) + "\n").encode()).hexdigest()
