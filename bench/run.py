"""Measure what the product promises about speed, as ratios within one run; nothing here asserts a time.

`make bench` runs all of it. Each measure is a function that yields rows; the two things that a ratio compares are
measured in turns, so that a machine that slows down slows both.
"""

import argparse
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import linting
from bench.canonical import canonical_form
from bench.compiling import compiling
from bench.handoff import handoff
from bench.measure import Row, table
from bench.objects import large_objects, small_objects
from bench.packing import packing
from bench.packs import diffing, many_packs
from bench.policy import policy
from bench.registry import registry
from bench.startup import startup

MEASURES: dict[str, Callable[[], Iterator[Row]]] = {
    "startup": startup,
    "canonical": canonical_form,
    "large": large_objects,
    "small": small_objects,
    "packing": packing,
    "packs": many_packs,
    "diff": diffing,
    "gates": linting.gates,
    "lint": linting.command,
    "growth": linting.growth,
    "handoff": handoff,
    "policy": policy,
    "compile": compiling,
    "registry": registry,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", choices=[*MEASURES, []], help="which measures (default: all)")
    chosen = parser.parse_args().only or list(MEASURES)
    rows: list[Row] = []
    for name in chosen:
        print(f"measuring {name} ...", file=sys.stderr)
        rows += MEASURES[name]()
    head = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    text = f"{head}\n\n{table(rows)}\n"
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "latest.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
