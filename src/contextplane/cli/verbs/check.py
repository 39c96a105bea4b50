"""Run the release checklist on a changed context pack.

The checklist has eight lines: schema, references, tool_surface, golden, incidents, evaluators, diff and sign. Each line
passed, failed, is undecided, or was skipped with --skip, with the reason. An undecided line does not count as passed.
The status is 0 if every line passed or was skipped, 10 if a line failed, and 15 (incomplete) if no line failed and some
are undecided. Replaying runs and evaluating them are not implemented yet, so their lines are undecided.

  --against      the previous version, a file or id@X.Y.Z. The line diff is undecided without it.
  --golden       a folder of cases that 'ctx golden record' made. It may also hold tool_surface.json, the tools that
                 the pack is expected to expose: [{"adapter_id": "adp_orders", "capabilities": ["lookup"]}].
  --catalog      a decision catalog of the pack, as with 'ctx lint'.
  --skip         leave a line out: tool_surface, golden, incidents, evaluators or diff, or its number. Write
                 LINE=REASON to show your own reason. Repeat it for several.

PACK is YAML if its name ends in .yaml or .yml, else JSON.

Examples:
  ctx check refunds.yaml                         run the lines that need no more
  ctx check refunds.yaml --against old.yaml      compare with the previous version
  ctx check refunds.yaml --golden golden         compile the golden cases, too
  ctx check refunds.yaml --skip incidents        leave a line out
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import INCOMPLETE, OK, REFUSED
from contextplane.cli.output import CommandOutput, clean, shorten

if TYPE_CHECKING:
    from contextplane.app.compile.check import Checklist, CheckResult

__all__ = ["add_arguments", "run"]

_SHOWN = {
    "passed": ("green", "passed"),
    "failed": ("red", "failed"),
    "unknown": ("yellow", "undecided"),
    "skipped": ("dim", "skipped"),
}
_STATUS = {"passed": OK, "failed": REFUSED, "incomplete": INCOMPLETE}
_COLOR = {"passed": "green", "failed": "red", "incomplete": "yellow"}
_INDENT = " " * 3
_FIRST_SKIPPABLE = 3


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pack", metavar="PACK", help="the file to check, or - for standard input")
    parser.add_argument("--against", metavar="OLD", help="the previous version")
    parser.add_argument("--golden", metavar="DIR", help="the folder of golden cases")
    parser.add_argument("--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first")
    parser.add_argument(
        "--catalog", metavar="CATALOG", action="append", default=[], help="check it together with this decision catalog"
    )
    parser.add_argument("--environment", metavar="FILE", help="a description of the target environment")
    parser.add_argument("--skip", metavar="LINE[=REASON]", action="append", default=[], help="leave this line out")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.compile.check import check_pack
    from contextplane.cli.pack_args import read_catalogs, read_older

    result = check_pack(
        args.pack,
        against=read_older(args, output),
        golden=args.golden,
        overlays=tuple(args.overlay),
        environment=args.environment,
        catalogs=read_catalogs(args, output),
        skipped=_skipped_lines(args.skip),
    )
    _print_checklist(result, output)
    output.answer(_answer(result))
    return _STATUS[result.checklist.outcome]


def _skipped_lines(options: list[str]) -> dict[str, str]:
    """Read the lines to leave out, by name or by number, each with its reason."""
    from contextplane.app.compile.check import SKIPPABLE
    from contextplane.cli.parser import Usage
    from contextplane.model.suggestion import did_you_mean

    numbers = {str(n): step for n, step in enumerate(SKIPPABLE, _FIRST_SKIPPABLE)}
    skipped: dict[str, str] = {}
    for option in options:
        name, _, reason = option.partition("=")
        step = numbers.get(name, name)
        if step not in SKIPPABLE:
            raise Usage(
                f"argument --skip: {name[:60]!r} is no line that can be skipped",
                hint=did_you_mean(name[:60], SKIPPABLE, f"one of: {', '.join(SKIPPABLE)}"),
            )
        skipped[step] = reason
    return skipped


def _print_checklist(result: "CheckResult", output: CommandOutput) -> None:
    from contextplane.cli.render.comparison import print_comparison

    for line in result.checklist.lines:
        color, verdict = _SHOWN[line.verdict]
        print_line = output.line if line.verdict in {"passed", "skipped"} else output.failure_line
        print_line(f"{line.number}. {output.paint(color, f'{verdict:<14}')}  {line.says}")
        print_line(f"{_INDENT}{shorten(clean(line.reason))}")
        if line.step == "diff" and result.comparison is not None:
            print_comparison(result.comparison, output, indent=_INDENT * 2, where=result.pack.where)
    outcome = result.checklist.outcome
    output.line(f"{output.paint(_COLOR[outcome], outcome)}: {_counts(result.checklist)}")


def _counts(checklist: "Checklist") -> str:
    counts = {verdict: sum(line.verdict == verdict for line in checklist.lines) for verdict in _SHOWN}
    return ", ".join(
        f"{counts[verdict]} {words}"
        for verdict, (_, words) in _SHOWN.items()
        if counts[verdict] or verdict != "skipped"
    )


def _answer(result: "CheckResult") -> dict[str, object]:
    from contextplane.cli.render.comparison import comparison_json

    return {
        "outcome": result.checklist.outcome,
        "lines": result.checklist.lines,
        "difference": comparison_json(result.comparison) if result.comparison is not None else None,
    }
