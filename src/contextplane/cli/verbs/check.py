"""Run the release checklist on a changed context pack.

The checklist has eight lines: schema, internal references, tool surface, golden requests, incidents, evaluators, the
difference by layer, and whether it may be signed. Each line passed, failed, or was skipped, with the reason. A skipped
line does not count as passed. The status is 0 if every line passed, else 10. Replaying runs and evaluating them are
not implemented yet, so no change passes completely.

  --against      the previous version, a file or id@X.Y.Z. Lines that compare with it are skipped without it.
  --golden       a folder of cases that 'ctx golden record' made. It may also hold tool_surface.json, the tools that
                 the pack is expected to expose: [{"adapter_id": "adp_orders", "capabilities": ["lookup"]}].
  --catalog      a decision catalog of the pack, as with 'ctx lint'.

PACK is YAML if its name ends in .yaml or .yml, else JSON.

Examples:
  ctx check refunds.yaml                         run the lines that need no more
  ctx check refunds.yaml --against old.yaml      compare with the previous version
  ctx check refunds.yaml --golden golden         compile the golden cases, too
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import CommandOutput, clean, shorten

if TYPE_CHECKING:
    from contextplane.app.compile.check import Checklist, CheckResult

__all__ = ["add_arguments", "run"]

_SHOWN = {"passed": ("green", "passed"), "failed": ("red", "failed"), "unknown": ("yellow", "skipped")}
_COLOR = {"passed": "green", "failed": "red", "incomplete": "yellow"}
_INDENT = " " * 3


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pack", metavar="PACK", help="the file to check, or - for standard input")
    parser.add_argument("--against", metavar="OLD", help="the previous version")
    parser.add_argument("--golden", metavar="DIR", help="the folder of golden cases")
    parser.add_argument("--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first")
    parser.add_argument(
        "--catalog", metavar="CATALOG", action="append", default=[], help="check it together with this decision catalog"
    )
    parser.add_argument("--environment", metavar="FILE", help="a description of the target environment")


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
    )
    _print_checklist(result, output)
    output.answer(_answer(result))
    return OK if result.checklist.outcome == "passed" else REFUSED


def _print_checklist(result: "CheckResult", output: CommandOutput) -> None:
    from contextplane.cli.render.comparison import print_comparison

    for line in result.checklist.lines:
        color, verdict = _SHOWN[line.verdict]
        print_line = output.line if line.verdict == "passed" else output.failure_line
        print_line(f"{line.number}. {output.paint(color, f'{verdict:<14}')}  {line.says}")
        print_line(f"{_INDENT}{shorten(clean(line.reason))}")
        if line.step == "diff" and result.comparison is not None:
            print_comparison(result.comparison, output, indent=_INDENT * 2, where=result.pack.where)
    outcome = result.checklist.outcome
    output.line(f"{output.paint(_COLOR[outcome], outcome)}: {_counts(result.checklist)}")


def _counts(checklist: "Checklist") -> str:
    return ", ".join(
        f"{sum(line.verdict == verdict for line in checklist.lines)} {words}" for verdict, (_, words) in _SHOWN.items()
    )


def _answer(result: "CheckResult") -> dict[str, object]:
    from contextplane.cli.render.comparison import comparison_json

    return {
        "outcome": result.checklist.outcome,
        "lines": result.checklist.lines,
        "difference": comparison_json(result.comparison) if result.comparison is not None else None,
    }
