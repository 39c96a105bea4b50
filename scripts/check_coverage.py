"""Refuses a test run that covers fewer lines than coverage-baseline.json asks for.

    check_coverage.py REPORT BASELINE

REPORT is what `coverage json` wrote. BASELINE holds `line_coverage_percent`, the least for the whole package, and a
`rationale` that begins with the same number, so that neither changes alone. `rooms` holds the least for each package
below `contextplane`, so that a large room cannot hide a small one. No flag and no variable gets around it: to lower a
number takes a diff with a reason.
"""

import json
import sys
from pathlib import Path

FIELDS = {"line_coverage_percent", "rationale", "rooms"}
PACKAGE = "contextplane/"
SOURCES = Path(__file__).resolve().parents[1] / "src" / "contextplane"


class GateRefused(Exception):
    """A report or a baseline that cannot be used."""


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


def read_rooms(path: str) -> dict[str, float]:
    """Return the least percentage of each room that has one."""
    rooms = read_object(path).get("rooms", {})
    if not isinstance(rooms, dict):
        raise GateRefused(f"{path}: rooms is not an object")
    for room, percent in rooms.items():
        if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 < percent <= 100:  # noqa: PLR2004
            raise GateRefused(f"{path}: rooms.{room} is no percentage")
    return {room: float(percent) for room, percent in rooms.items()}


def read_current(path: str) -> float:
    totals = read_object(path).get("totals")
    if not isinstance(totals, dict):
        raise GateRefused(f"{path}: no totals, so not a report of 'coverage json'")
    return percent_of(path, totals.get("covered_lines"), totals.get("num_statements"))


def read_current_rooms(path: str) -> dict[str, float]:
    """Return the percentage of each room, from the files of the report."""
    files = read_object(path).get("files", {})
    counts: dict[str, tuple[int, int]] = {}
    for name, file in files.items() if isinstance(files, dict) else ():
        room = name.replace("\\", "/").rpartition(PACKAGE)[2].partition("/")[0]
        covered, statements = counts.get(room, (0, 0))
        summary = file["summary"]
        counts[room] = covered + summary["covered_lines"], statements + summary["num_statements"]
    return {room: percent_of(path, *pair) for room, pair in counts.items() if pair[1]}


def unmeasured_files(path: str) -> list[str]:
    """List the modules that no measured test imported: a report of executed files does not count them."""
    files = read_object(path).get("files")
    if not isinstance(files, dict):
        return []
    measured = {Path(name).resolve() for name in files}
    modules = (file for file in SOURCES.rglob("*.py") if file.name != "__main__.py")  # which only a process runs
    return sorted(str(file) for file in modules if file.resolve() not in measured and file.read_text())


def percent_of(path: str, covered: object, statements: object) -> float:
    if type(covered) is not int or type(statements) is not int or not 0 <= covered <= statements:
        raise GateRefused(f"{path}: its totals are not counts of lines")
    if statements == 0:
        raise GateRefused(f"{path}: no line was measured")
    return 100 * covered / statements


def main(arguments: list[str]) -> int:
    try:
        report, baseline = arguments
        least, current = read_baseline(baseline), read_current(report)
        least_of_rooms, rooms = read_rooms(baseline), read_current_rooms(report)
    except ValueError:
        print("usage: check_coverage.py REPORT BASELINE", file=sys.stderr)
        return 2
    except GateRefused as refused:
        print(f"coverage: {refused}", file=sys.stderr)
        return 2
    below = [
        f"{room}: {rooms.get(room, 0.0):.4f}% of lines, below its baseline of {percent:g}%"
        for room, percent in least_of_rooms.items()
        if rooms.get(room, 0.0) < percent
    ]
    below += [f"{name}: no measured test imports it" for name in unmeasured_files(report)]
    if current < least:
        below.append(f"{current:.4f}% of lines, below the baseline of {least:g}%")
    if below:
        print("".join(f"coverage: {line}\n" for line in below), end="", file=sys.stderr)
        return 1
    weakest = ", ".join(
        f"{room} {percent:.1f}" for room, percent in sorted(rooms.items(), key=lambda pair: pair[1])[:3]
    )
    print(f"coverage: {current:.2f}% of lines, baseline {least:g}%" + (f"; the weakest: {weakest}" if rooms else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
