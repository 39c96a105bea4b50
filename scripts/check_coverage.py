"""Refuses a test run that covers fewer lines than coverage-baseline.json asks for.

    check_coverage.py REPORT BASELINE

REPORT is what `coverage json` wrote; its TOTAL line coverage counts. BASELINE holds `line_coverage_percent` and a
`rationale` that begins with the same number, so that neither changes alone. There is no flag and no variable that gets
around it: whoever lowers the number does so in a diff, with a reason.
"""

import json
import sys
from pathlib import Path

FIELDS = {"line_coverage_percent", "rationale"}


class GateRefused(Exception):
    """A report or a baseline that cannot be judged by."""


def read_object(path: str) -> dict[str, object]:
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GateRefused(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise GateRefused(f"{path}: not a JSON object")
    return value


def read_baseline(path: str) -> float:
    baseline = read_object(path)
    if unknown := baseline.keys() - FIELDS:
        raise GateRefused(f"{path}: unknown field '{min(unknown)}'")
    percent = baseline.get("line_coverage_percent")
    if isinstance(percent, bool) or not isinstance(percent, int | float):
        raise GateRefused(f"{path}: line_coverage_percent is not a number")
    if not 0 < percent <= 100:  # noqa: PLR2004 - it is a percentage
        raise GateRefused(f"{path}: line_coverage_percent is {percent}, and not above 0 and at most 100")
    rationale = baseline.get("rationale")
    if not isinstance(rationale, str) or not rationale.strip():
        raise GateRefused(f"{path}: no rationale")
    # A new number under the old reason is a change without one.
    if not rationale.startswith(f"{percent}: "):
        raise GateRefused(f"{path}: the rationale is not of this number: begin it with '{percent}: '")
    return float(percent)


def read_current(path: str) -> float:
    totals = read_object(path).get("totals")
    if not isinstance(totals, dict):
        raise GateRefused(f"{path}: no totals, so not a report of 'coverage json'")
    covered, statements = totals.get("covered_lines"), totals.get("num_statements")
    if type(covered) is not int or type(statements) is not int or not 0 <= covered <= statements:
        raise GateRefused(f"{path}: its totals are not counts of lines")
    if statements == 0:
        raise GateRefused(f"{path}: no line was measured")
    return 100 * covered / statements


def main(arguments: list[str]) -> int:
    try:
        report, baseline = arguments
        wanted, current = read_baseline(baseline), read_current(report)
    except ValueError:
        print("usage: check_coverage.py REPORT BASELINE", file=sys.stderr)
        return 2
    except GateRefused as refused:
        print(f"coverage: {refused}", file=sys.stderr)
        return 2
    if current < wanted:
        print(f"coverage: {current:.4f}% of lines, below the baseline of {wanted:g}%", file=sys.stderr)
        return 1
    print(f"coverage: {current:.2f}% of lines, baseline {wanted:g}%")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
