"""Lines that are found again: what a ref's lines were when it was written, and where they are in the file now.

It reads no file; a file is the tuple of its lines, without their ends. An anchor's `digest` is the SHA-256 of the
lines, each with one line feed, so that `sed -n 3,7p FILE | sha256sum` gives it. Its contexts and its probe are marks of
single lines, which only say where to look: nothing counts as found before its digest agrees.

The law: other lines are never shown as if they were the old ones. Code repeats itself, so a block is known by its
neighbours. Where they leave a doubt it counts as changed or gone, and not as moved or current.

Where lines stand in a file, by their marks: made once for a file, however many refs lead into it.

A mark is the CRC-32 of one line. It says where to look and proves nothing.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Literal
from zlib import crc32

from contextplane.model.handoff import Anchor, Lines, Ref
from contextplane.model.value import Value

__all__ = [
    "AROUND",
    "CANDIDATES",
    "NO_LINE",
    "Located",
    "Neighbours",
    "Standing",
    "State",
    "anchored",
    "located",
    "mark_of",
    "marks_of",
    "stands",
    "written",
]

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


State = Literal["current", "moved", "changed", "gone", "unanchored"]

_TELLING = 32
"""A block with fewer characters than this may stand anywhere by chance: alone it tells nothing."""
_SHIFTS = tuple(shift for distance in range(1, 33) for shift in (distance, -distance))
_HASHED_LINES = 1 << 17
_WIDER = 100
"""By so many lines, and twice its own, a block may have grown and still be the one between its neighbours."""

_OTHERS = "the lines are no longer in their place; there are equal ones, but not among their old neighbours"


class Located(Value, frozen=True):
    """Where the lines of a ref are now, None when nowhere; `why` is said of whatever is not current."""

    state: State
    lines: Lines | None
    why: str = ""


def anchored(lines: Sequence[str], span: Lines) -> Anchor | None:
    """What is kept of those lines of the file, None when the file does not reach that far."""
    if span.end > len(lines):
        return None
    start, end = span.start - 1, span.end
    block = lines[start:end]
    probe_at = max(range(len(block)), key=lambda n: (len(block[n].strip()), -n))
    return Anchor(
        digest=_digest(block),
        before=written(lines[max(0, start - AROUND) : start]),
        after=written(lines[end : end + AROUND]),
        probe=written(block[probe_at : probe_at + 1]),
        probe_at=probe_at,
    )


def located(lines: Sequence[str], ref: Ref, standing: Standing | None = None) -> Located:
    """Find the lines of a ref. `standing` is of the same lines, for whoever looks for several refs in one file.

    The cost grows with the file, never with the file times the block.
    """
    span, anchor = ref.lines, ref.anchor
    if anchor is None:
        return Located(state="unanchored", lines=span) if span.end <= len(lines) else _gone(_past_end(span, lines))
    if stands(lines, ref):
        return Located(state="current", lines=span)
    return _Hunt(standing or Standing(lines), span, anchor).found()


def stands(lines: Sequence[str], ref: Ref) -> bool:
    """Whether an anchored block is at its place, all its neighbours around it. Lines beyond those do not matter."""
    start, end, anchor = ref.lines.start - 1, ref.lines.end, ref.anchor
    if anchor is None or end > len(lines) or _digest(lines[start:end]) != anchor.digest:
        return False
    return Neighbours.of(anchor).around(lines, start, end)


class _Hunt:
    """The search for one block that does not stand at its place among all its old neighbours."""

    def __init__(self, standing: Standing, span: Lines, anchor: Anchor) -> None:
        self._standing = standing
        self._lines = standing.lines
        self._anchor = anchor
        self._neighbours = Neighbours.of(anchor)
        self._at = span.start - 1
        self._length = len(span)
        self._probe = next(iter(marks_of(anchor.probe)), NO_LINE) if 0 <= anchor.probe_at < len(span) else NO_LINE

    def found(self) -> Located:
        """What the best witness says: all neighbours, then lines that stand nowhere else, then the block itself."""
        witnesses = (self._at_the_old_place, self._among_all, self._between, self._held, self._alone)
        said = (witness() for witness in witnesses)
        return next((one for one in said if one is not None), None) or self._lost()

    def _at_the_old_place(self) -> Located | None:
        """Its neighbours are where they were, and it is not: whatever equals it elsewhere is another block."""
        start, end = self._at, self._at + self._length
        edges = not self._neighbours.above and not self._neighbours.below
        if edges or not self._neighbours.over(self._lines, start):
            return None
        if self._neighbours.under(self._lines, start):
            return _gone("the lines were removed")
        return _changed(start, end) if end <= len(self._lines) and self._neighbours.under(self._lines, end) else None

    def _among_all(self) -> Located | None:
        """It stands elsewhere among all its neighbours. A little up or down is the usual case, and needs no search."""
        at = self._at + self._anchor.probe_at
        for shift in _SHIFTS if self._probe != NO_LINE else ():
            start = self._at + shift
            if not (0 <= start <= len(self._lines) - self._length) or mark_of(self._lines[at + shift]) != self._probe:
                continue
            if self._is_whole(start) and self._is_block(start):
                return self._is_at(start)
        return next((self._is_at(start) for start in self._places if self._is_whole(start)), None)

    def _between(self) -> Located | None:
        """Its neighbours stand elsewhere or wider apart. Lines may have been put beside it, or in its place."""
        if not self._neighbours.above and not self._neighbours.below:  # it was the whole file: some of it must be left
            return self._within(0, len(self._lines)) if self._standing.places(self._probe) else None
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

    def _within(self, start: int, end: int) -> Located:
        """What stands at a place between all neighbours: the block with new lines beside it, or something else."""
        inside = [place for place in self._places if start <= place and place + self._length <= end]
        ends = [place for place in inside if place == start or place + self._length == end]
        above, below = self._neighbours.above, self._neighbours.below
        beside = [at for at in ends if (above and at == start) or (below and at + self._length == end)]
        if beside or (len(inside) == 1 and (self._tells or (ends and self._is_only))):
            return self._is_at(self._at if self._at in beside else (beside or inside)[0])
        return _changed(start, end) if end > start else _gone("the lines were removed")

    def _held(self) -> Located | None:
        """A line that stands nowhere else is close to it on either side, as it was."""
        held = [place for place in self._places if self._neighbours.hold(self._standing, place, place + self._length)]
        return self._is_at(held[0]) if len(held) == 1 else None

    def _alone(self) -> Located | None:
        """It is at the place with the most of its neighbours, which is its old one, or the only one there is."""
        most = max(self._places, key=lambda place: (self._agreeing(place), place == self._at), default=None)
        if most is None or (most != self._at and 0 < self._agreeing(self._at) >= self._agreeing(most)):
            return None
        start, end, neighbours = most, most + self._length, self._neighbours
        over, under = neighbours.over(self._lines, start), neighbours.under(self._lines, end)
        half = most == self._at and self._agreeing(most) >= AROUND
        if half and (self._is_only or neighbours.pin(self._standing, start, end)):
            return self._is_at(most)
        if (neighbours.above and self._starts and not over) or (neighbours.below and self._ends and not under):
            return None  # what stood beside it stands elsewhere
        beside = over or under
        known = (beside or self._tells) if self._is_only else (beside and most == self._at)
        return self._is_at(most) if known else None

    def _lost(self) -> Located:
        """Nothing tells where it is. One neighbour at its place tells where it was."""
        end = self._at + self._length
        beside = (self._neighbours.above and self._neighbours.over(self._lines, self._at)) or (
            self._neighbours.below and self._neighbours.under(self._lines, end)
        )
        if beside and end <= len(self._lines):
            return _changed(self._at, end)
        return _gone(_OTHERS if self._places else "the lines are no longer in the file")

    @cached_property
    def _candidates(self) -> list[int]:
        """Where the line of the block that tells most stands, as far as it could be in its place there."""
        probe_at, last = self._anchor.probe_at, len(self._lines) - self._length
        starts = (at - probe_at for at in self._standing.nearest(self._probe, self._at + probe_at))
        return [start for start in starts if 0 <= start <= last]

    @cached_property
    def _places(self) -> list[int]:
        """Where the block stands, the nearest first. Where it may stand too often, only the likeliest are looked at."""
        most, tried = max(1, _HASHED_LINES // self._length), self._candidates
        if len(tried) > most:
            tried = sorted(tried, key=lambda start: (-self._agreeing(start), abs(start - self._at)))[:most]
        return [start for start in tried if self._is_block(start)]

    @property
    def _is_only(self) -> bool:
        """Whether it stands at one place, and all were looked at."""
        seen = max(1, _HASHED_LINES // self._length) >= len(self._candidates)
        return len(self._places) == 1 and seen and len(self._standing.places(self._probe)) <= CANDIDATES

    @cached_property
    def _starts(self) -> list[int]:
        """Where the lines end that stood above it."""
        above = self._neighbours.above
        return [at + len(above) for at in self._standing.runs(above, self._at - len(above))] if above else [0]

    @cached_property
    def _ends(self) -> list[int]:
        """Where the lines begin that stood below it."""
        below = self._neighbours.below
        return self._standing.runs(below, self._at + self._length) if below else [len(self._lines)]

    @cached_property
    def _tells(self) -> bool:
        """Whether the block is long enough not to stand somewhere by chance."""
        block = self._lines[self._places[0] : self._places[0] + self._length] if self._places else ()
        return sum(len("".join(line.split())) for line in block) >= _TELLING

    def _is_block(self, start: int) -> bool:
        return _digest(self._lines[start : start + self._length]) == self._anchor.digest

    def _is_whole(self, start: int) -> bool:
        return self._neighbours.around(self._lines, start, start + self._length)

    def _agreeing(self, start: int) -> int:
        return self._neighbours.agreeing(self._lines, start, start + self._length)

    def _is_at(self, start: int) -> Located:
        now = Lines(start=start + 1, end=start + self._length)
        if start == self._at:
            return Located(state="current", lines=now)
        return Located(state="moved", lines=now, why=f"the lines moved, they are now {now.start}-{now.end}")


def _closest(ends: Sequence[int], wanted: int) -> Sequence[int]:
    """Those on either side of it."""
    at = bisect_left(ends, wanted)
    return ends[max(0, at - 1) : at + 1]


def _changed(start: int, end: int) -> Located:
    now = Lines(start=start + 1, end=end)
    return Located(state="changed", lines=now, why=f"the lines changed, at their place are now {now.start}-{now.end}")


def _gone(why: str) -> Located:
    return Located(state="gone", lines=None, why=why)


def _past_end(span: Lines, lines: Sequence[str]) -> str:
    return f"lines {span.start}-{span.end} are past the end of the file, which has {len(lines)}"


def _digest(block: Sequence[str]) -> str:
    return "sha256:" + hashlib.sha256(("\n".join(block) + "\n").encode()).hexdigest()
