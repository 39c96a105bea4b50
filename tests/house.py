"""How big things are: a file that one can read in a sitting, a function that fits on a screen.

`python -m tests.house` lists the modules beyond the aim; `tests/unit/test_house.py` refuses those beyond the limit.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EXCEPTIONS", "SOURCES", "Oversized", "beyond_aim", "oversized"]

SOURCES = Path(__file__).resolve().parents[1] / "src"
MODULE_AIM = 300
LIMITS = {"module": 500, "package": 40, "class": 200, "function": 60}

# What may be longer, `path below src` or `path::name`, and why. An exception that is no longer needed is refused too.
EXCEPTIONS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Oversized:
    """A thing beyond its limit. `name` is a key for EXCEPTIONS."""

    name: str
    kind: str
    lines: int

    def __str__(self) -> str:
        return f"{self.name}: {self.kind} of {self.lines} lines, the limit is {LIMITS[self.kind]}"


def oversized(sources: Path = SOURCES) -> list[Oversized]:
    """Everything below `sources` that is longer than its limit, exceptions included."""
    return [
        thing
        for path in sorted(sources.rglob("*.py"))
        for thing in _measure(path.relative_to(sources).as_posix(), path.read_text(encoding="utf-8"))
        if thing.lines > LIMITS[thing.kind]
    ]


def beyond_aim(sources: Path = SOURCES) -> list[str]:
    """The modules that are longer than what we aim at, the longest first."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources.rglob("*.py")}
    longest = sorted(((lines, path) for path, lines in lengths.items() if lines > MODULE_AIM), reverse=True)
    return [f"{path.relative_to(sources)}: {lines} lines" for lines, path in longest]


def _measure(place: str, text: str) -> Iterator[Oversized]:
    kind = "package" if place.endswith("__init__.py") else "module"
    yield Oversized(place, kind, len(text.splitlines()))
    yield from _measure_body(place, "", ast.parse(text, filename=place))


def _measure_body(place: str, inside: str, parent: ast.AST) -> Iterator[Oversized]:
    for node in ast.iter_child_nodes(parent):
        name = inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{inside}.{node.name}" if inside else node.name
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            # Decorators are no part of it: a table of test cases above a function does not make it longer.
            yield Oversized(f"{place}::{name}", kind, (node.end_lineno or node.lineno) - node.lineno + 1)
        yield from _measure_body(place, name, node)


if __name__ == "__main__":
    long = beyond_aim()
    if long:
        sys.stdout.write(f"modules beyond the aim of {MODULE_AIM} lines:\n" + "".join(f"  {line}\n" for line in long))
