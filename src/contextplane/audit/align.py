"""Sequence alignment: pairs the positions of two sequences by keys, exactly and deterministically.

Of all ways to pair equal keys without crossing, one with the most pairs is taken, so that one step inserted into a run
is one difference and not a cascade. It knows nothing about steps, only keys.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, count, repeat
from math import isqrt
from operator import ne
from typing import TypeAlias

__all__ = ["KeySequences", "PositionPair", "align"]

KeySequences: TypeAlias = tuple[Sequence[Hashable], Sequence[Hashable]]
"""One key per position of A, and of B."""

PositionPair: TypeAlias = tuple[int | None, int | None]
"""A position in A and its partner in B; None where the other sequence has none."""

_Block: TypeAlias = tuple[int, int, int]
_Gap: TypeAlias = tuple[int, int, int, int]
_MASKS, _ROWS = 1024, 4096  # cached at a time: evicted ones are computed again when needed


def align(*levels: KeySequences) -> tuple[PositionPair, ...]:
    """Pair two sequences by the first level's keys, then the gaps between those pairs by the next level's.

    Positions of a gap that no level pairs are paired in order; those of the longer side stay alone. Every position
    occurs once, ascending on both sides, and within a gap those of A before those of B.
    """
    ends = len(levels[0][0]), len(levels[0][1])
    blocks: list[_Block] = []
    for keys in levels:
        new_blocks = [block for gap in _gaps(blocks, ends) for block in _common_blocks(keys, gap)]
        blocks = sorted(blocks + new_blocks) if new_blocks else blocks
    pairs: list[PositionPair] = []
    # There is a gap before each block, and one after the last: the end counts as a block without length.
    for gap, (at_a, at_b, size) in zip(_gaps(blocks, ends), [*blocks, (*ends, 0)], strict=True):
        pairs += _pair_gap(gap)
        pairs += zip(range(at_a, at_a + size), range(at_b, at_b + size), strict=True)
    return tuple(pairs)


def _gaps(blocks: Iterable[_Block], ends: tuple[int, int]) -> Iterator[_Gap]:
    """Yield the gap before each block and after the last: its start and end in A, then in B."""
    low_a, low_b = 0, 0
    for at_a, at_b, size in blocks:
        yield low_a, at_a, low_b, at_b
        low_a, low_b = at_a + size, at_b + size
    yield low_a, ends[0], low_b, ends[1]


def _pair_gap(gap: _Gap) -> Iterator[PositionPair]:
    """Pair the positions of a gap in order; those of the longer side stay alone."""
    low_a, high_a, low_b, high_b = gap
    both = min(high_a - low_a, high_b - low_b)
    yield from zip(range(low_a, low_a + both), range(low_b, low_b + both), strict=True)
    yield from zip(range(low_a + both, high_a), repeat(None))
    yield from zip(repeat(None), range(low_b + both, high_b))


def _common_blocks(keys: KeySequences, gap: _Gap) -> Iterator[_Block]:
    """Yield the blocks of a longest common subsequence within a gap."""
    low_a, high_a, low_b, high_b = gap
    if low_a == high_a or low_b == high_b:
        return
    a, b = keys[0][low_a:high_a], keys[1][low_b:high_b]
    before, behind = _ends(a, b)
    if before:
        yield low_a, low_b, before
    yield from _blocks(
        (low_a + at_a, low_b + at_b)
        for at_a, at_b in _match_shared(a, b, range(before, len(a) - behind), range(before, len(b) - behind))
    )
    if behind:
        yield high_a - behind, high_b - behind, behind


def _ends(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int]:
    """The length of the common prefix, and of the common suffix of what follows it."""
    shortest = min(len(a), len(b))
    before = next(compress(count(), map(ne, a, b)), shortest)
    return before, next(compress(range(shortest - before), map(ne, reversed(a), reversed(b))), shortest - before)


def _blocks(matches: Iterable[tuple[int, int]]) -> Iterator[_Block]:
    """Join matches that are consecutive on both sides into blocks."""
    at_a, at_b, size = 0, 0, 0
    for match in matches:
        if match != (at_a + size, at_b + size):
            if size:
                yield at_a, at_b, size
            (at_a, at_b), size = match, 0
        size += 1
    if size:
        yield at_a, at_b, size


def _match_shared(a: Sequence[Hashable], b: Sequence[Hashable], in_a: range, in_b: range) -> list[tuple[int, int]]:
    """The matches within two ranges. Keys that only one side has match nothing, and are removed first."""
    shared = {*(a[at] for at in in_a)}.intersection(b[at] for at in in_b)
    of_a = [at for at in in_a if a[at] in shared]
    of_b = [at for at in in_b if b[at] in shared]
    keys_a, keys_b = [a[at] for at in of_a], [b[at] for at in of_b]
    before, behind = _ends(keys_a, keys_b)
    end_a, end_b = len(of_a) - behind, len(of_b) - behind
    inner = _longest_common(keys_a[before:end_a], keys_b[before:end_b])
    return [
        *zip(of_a[:before], of_b[:before], strict=True),
        *((of_a[before + i], of_b[before + j]) for i, j in inner),
        *zip(of_a[end_a:], of_b[end_b:], strict=True),
    ]


def _longest_common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """A longest common subsequence, with a row of its table as the bits of one integer (Hyyrö 2004).

    Bit i of row j is 0 where a[i] makes the subsequence of a[:i+1] and b[:j] longer by one. Of a long table only some
    rows are kept, and the others are computed again on the way back: memory grows with n * sqrt(n) bits.
    """
    mask = _masks(a)
    every = max(isqrt(len(b)), _ROWS)
    starts = range(0, len(b), every)
    kept = [(1 << len(a)) - 1]
    for start in starts[1:]:
        kept.append(_rows(kept[-1], b[start - every : start], mask, len(a))[-1])
    matches = []
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
                matches.append((i, j))
    return matches[::-1]


def _rows(row: int, b: Sequence[Hashable], mask: Callable[[Hashable], int], bits: int) -> list[int]:
    """The row, and the row after each of these keys."""
    ones = (1 << bits) - 1
    rows = [row]
    for key in b:
        common = row & mask(key)
        row = ((row + common) | (row - common)) & ones
        rows.append(row)
    return rows


def _masks(a: Sequence[Hashable]) -> Callable[[Hashable], int]:
    """A function from a key to its positions in `a`, as bits. Not all are cached: that takes n * n bits."""
    places: dict[Hashable, list[int]] = {}
    for at, key in enumerate(a):
        places.setdefault(key, []).append(at)

    @lru_cache(maxsize=_MASKS)
    def mask(key: Hashable) -> int:
        positions = places.get(key, [])
        if len(positions) == 1:
            return 1 << positions[0]
        bits = bytearray(len(a) // 8 + 1)
        for at in positions:
            bits[at >> 3] |= 1 << (at & 7)
        return int.from_bytes(bits, "little")

    return mask
