"""Measure what the product promises about speed, as ratios within one run; nothing here asserts a time.

`make bench` runs all of it. Each measure is a function that yields rows; the two things that a ratio compares are
measured in turns, so that a machine that slows down slows both.
"""

import argparse
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import lint
from bench.canonical import canonical_rows
from bench.compile import compile_rows
from bench.handoff import handoff_rows
from bench.measure import Row, table
from bench.objects import large_object_rows, small_object_rows
from bench.pack import pack_rows
from bench.packs import diff_rows, many_packs_rows
from bench.policy import policy_rows
from bench.prompt import prompt_rows
from bench.registry import registry_rows
from bench.startup import startup_rows

MEASURES: dict[str, Callable[[], Iterator[Row]]] = {
    "startup": startup_rows,
    "canonical": canonical_rows,
    "large": large_object_rows,
    "small": small_object_rows,
    "pack": pack_rows,
    "packs": many_packs_rows,
    "diff": diff_rows,
    "gates": lint.gate_rows,
    "lint": lint.command_rows,
    "growth": lint.growth_rows,
    "handoff": handoff_rows,
    "policy": policy_rows,
    "compile": compile_rows,
    "prompt": prompt_rows,
    "registry": registry_rows,
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
