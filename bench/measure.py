"""Measurements in turns, and the table of their results."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

__all__ = ["Row", "measure_in_turns", "scratch", "table"]

T = TypeVar("T")

_SCRATCH = Path(__file__).parent.parent / ".bench"


class Row(NamedTuple):
    """One result: what is compared with what, the measured ratio, and the promised one."""

    what: str
    against: str
    ratio: float
    promise: str
    kept: bool
    figures: str


@contextmanager
def scratch() -> Iterator[str]:
    """Yield a folder on the disk of the checkout, which is removed at the end."""
    _SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as folder:
        yield folder


def measure_in_turns(
    works: Sequence[Callable[[], T]], *, rounds: int, afterwards: Callable[[T], object] = lambda _: None
) -> list[float]:
    """Measure the median seconds of each work, run in turns: first, second, ..., first, second, ...

    One more round warms up. `afterwards` gets the result of each work, outside of the measured time.
    """
    times: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            result = work()
            seconds = time.perf_counter() - start
            afterwards(result)
            if turn:
                taken.append(seconds)
    return [statistics.median(taken) for taken in times]


def table(rows: Sequence[Row]) -> str:
    """Format the rows as a Markdown table."""
    head = ("what", "against", "ratio", "promise", "kept", "figures")
    cells = [head, tuple("-" * len(name) for name in head)]
    cells += [(r.what, r.against, f"{r.ratio:.2f}", r.promise, "yes" if r.kept else "NO", r.figures) for r in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells)
