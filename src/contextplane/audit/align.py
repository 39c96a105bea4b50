"""Which step of one run answers to which step of another: a real sequence alignment, exact and always the same.

Of all ways to pair equal keys without crossing, one with the most pairs is taken, so that one step put into a run is
one difference and not a cascade. It knows nothing of steps: it pairs positions of sequences by keys.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, count, repeat
from math import isqrt
from operator import ne
from typing import TypeAlias

__all__ = ["Keys", "Pair", "align"]

Keys: TypeAlias = tuple[Sequence[Hashable], Sequence[Hashable]]
"""One key per position, of A and of B."""

Pair: TypeAlias = tuple[int | None, int | None]
"""A position in A and the one in B that answers to it; None where the other run has nothing."""

_Block: TypeAlias = tuple[int, int, int]
_Gap: TypeAlias = tuple[int, int, int, int]
_MASKS, _ROWS = 1024, 4096  # kept at a time: what is left out is made again when it is needed


def align(*levels: Keys) -> tuple[Pair, ...]:
    """Pair two sequences by the first level's keys, then what is left between those pairs by the next level's.

    What no level pairs stands one for one in place of the other, as far as it reaches; the rest is alone. Every
    position occurs once, ascending on both sides, and within a gap those of A before those of B.
    """
    ends = len(levels[0][0]), len(levels[0][1])
    blocks: list[_Block] = []
    for keys in levels:
        found = [block for gap in _gaps(blocks, ends) for block in _most_equal(keys, gap)]
        blocks = sorted(blocks + found) if found else blocks
    pairs: list[Pair] = []
    # Before each block there is a gap, and one behind the last: the end counts as a block without length.
    for gap, (at_a, at_b, size) in zip(_gaps(blocks, ends), [*blocks, (*ends, 0)], strict=True):
        pairs += _unequal(gap)
        pairs += zip(range(at_a, at_a + size), range(at_b, at_b + size), strict=True)
    return tuple(pairs)


def _gaps(blocks: Iterable[_Block], ends: tuple[int, int]) -> Iterator[_Gap]:
    """What lies before each block and behind the last: where it begins and ends in A, then in B."""
    low_a, low_b = 0, 0
    for at_a, at_b, size in blocks:
        yield low_a, at_a, low_b, at_b
        low_a, low_b = at_a + size, at_b + size
    yield low_a, ends[0], low_b, ends[1]


def _unequal(gap: _Gap) -> Iterator[Pair]:
    low_a, high_a, low_b, high_b = gap
    both = min(high_a - low_a, high_b - low_b)
    yield from zip(range(low_a, low_a + both), range(low_b, low_b + both), strict=True)
    yield from zip(range(low_a + both, high_a), repeat(None))
    yield from zip(repeat(None), range(low_b + both, high_b))


def _most_equal(keys: Keys, gap: _Gap) -> Iterator[_Block]:
    """The blocks of a longest common subsequence within a gap."""
    low_a, high_a, low_b, high_b = gap
    if low_a == high_a or low_b == high_b:
        return
    a, b = keys[0][low_a:high_a], keys[1][low_b:high_b]
    before, behind = _ends(a, b)
    if before:
        yield low_a, low_b, before
    yield from _blocks(
        (low_a + at_a, low_b + at_b)
        for at_a, at_b in _shared(a, b, range(before, len(a) - behind), range(before, len(b) - behind))
    )
    if behind:
        yield high_a - behind, high_b - behind, behind


def _ends(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int]:
    """How many keys both begin with, and how many of the others both end with."""
    shortest = min(len(a), len(b))
    before = next(compress(count(), map(ne, a, b)), shortest)
    return before, next(compress(range(shortest - before), map(ne, reversed(a), reversed(b))), shortest - before)


def _blocks(matches: Iterable[tuple[int, int]]) -> Iterator[_Block]:
    """Matches that follow each other on both sides, as one."""
    at_a, at_b, size = 0, 0, 0
    for match in matches:
        if match != (at_a + size, at_b + size):
            if size:
                yield at_a, at_b, size
            (at_a, at_b), size = match, 0
        size += 1
    if size:
        yield at_a, at_b, size


def _shared(a: Sequence[Hashable], b: Sequence[Hashable], in_a: range, in_b: range) -> list[tuple[int, int]]:
    """The matches within two ranges. A key that only one side has is in none of them, and is left aside first."""
    shared = {*(a[at] for at in in_a)}.intersection(b[at] for at in in_b)
    of_a = [at for at in in_a if a[at] in shared]
    of_b = [at for at in in_b if b[at] in shared]
    keys_a, keys_b = [a[at] for at in of_a], [b[at] for at in of_b]
    before, behind = _ends(keys_a, keys_b)
    end_a, end_b = len(of_a) - behind, len(of_b) - behind
    inner = _longest(keys_a[before:end_a], keys_b[before:end_b])
    return [
        *zip(of_a[:before], of_b[:before], strict=True),
        *((of_a[before + i], of_b[before + j]) for i, j in inner),
        *zip(of_a[end_a:], of_b[end_b:], strict=True),
    ]


def _longest(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """A longest common subsequence, with a row of its table as the bits of one integer (Hyyrö 2004).

    Bit i of row j is 0 where a[i] makes the subsequence of a[:i+1] and b[:j] longer by one. Of a long table only some
    rows are kept, and those between are made again on the way back: memory grows with n * sqrt(n) bits.
    """
    mask = _masks(a)
    every = max(isqrt(len(b)), _ROWS)
    starts = range(0, len(b), every)
    kept = [(1 << len(a)) - 1]
    for start in starts[1:]:
        kept.append(_rows(kept[-1], b[start - every : start], mask, len(a))[-1])
    found = []
    i, j = len(a), len(b)
    for start in reversed(starts):
        rows = _rows(kept.pop(), b[start : start + every], mask, len(a))
        while i and j > start:
            if rows[j - start] >> (i - 1) & 1:
                i -= 1
                continue
            j -= 1
            if rows[j - start] >> (i - 1) & 1:
                i -= 1
                found.append((i, j))
    return found[::-1]


def _rows(row: int, b: Sequence[Hashable], mask: Callable[[Hashable], int], bits: int) -> list[int]:
    """A row, and the one after each of these keys."""
    ones = (1 << bits) - 1
    rows = [row]
    for key in b:
        common = row & mask(key)
        row = ((row + common) | (row - common)) & ones
        rows.append(row)
    return rows


def _masks(a: Sequence[Hashable]) -> Callable[[Hashable], int]:
    """Where a key stands in `a`, as bits. Made when asked for: kept for all keys, they would fill n * n bits."""
    places: dict[Hashable, list[int]] = {}
    for at, key in enumerate(a):
        places.setdefault(key, []).append(at)

    @lru_cache(maxsize=_MASKS)
    def mask(key: Hashable) -> int:
        where = places.get(key, [])
        if len(where) == 1:
            return 1 << where[0]
        bits = bytearray(len(a) // 8 + 1)
        for at in where:
            bits[at >> 3] |= 1 << (at & 7)
        return int.from_bytes(bits, "little")

    return mask
