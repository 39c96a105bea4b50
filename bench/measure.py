"""Timing in turns, and the table of what came of it."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Row", "in_turns", "table"]


class Row(NamedTuple):
    """One promise: what is compared with what, the ratio that was measured, and the one that was promised."""

    what: str
    against: str
    ratio: float
    promise: str
    kept: bool
    figures: str


def in_turns(works: Sequence[Callable[[], object]], *, rounds: int) -> list[float]:
    """The median seconds of each, run in turns: first, second, ..., first, second, ... One round more warms up."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            if turn:
                taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def table(rows: Sequence[Row]) -> str:
    head = ("what", "against", "ratio", "promise", "kept", "figures")
    cells = [head, tuple("-" * len(name) for name in head)]
    cells += [(r.what, r.against, f"{r.ratio:.2f}", r.promise, "yes" if r.kept else "NO", r.figures) for r in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells)
