"""Check a change of a context pack: the list that every change passes before it is signed.

Eight lines, in order: schema, internal references, tool surface, golden requests, incidents, evaluators,
the difference by layer, and whether it may be signed. Each has passed, has failed, or cannot be told, with
the reason; a line that cannot be told is no pass. The status is 0 when every line has passed, else 10: the
whole has failed, or is incomplete. Replaying runs and evaluating are not there yet, so no change is
complete.

--against names the version before, a file or id@X.Y.Z; the lines that need it, or --golden, cannot be told
without. The golden folder holds cases that 'ctx golden record' made, and it may hold tool_surface.json, the
tools that the pack is expected to expose, as a tool manifest: [{"adapter_id": "adp_orders", "capabilities":
["lookup"]}]. --catalog names the decision catalogs that the pack draws on, as with 'ctx lint'. PACK is
JSON, or YAML by its extension.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import Screen, clean, shortened

if TYPE_CHECKING:
    from contextplane.app.compile.check import Checked
    from contextplane.authoring.checklist import Checklist

__all__ = ["add_arguments", "run"]

_SHOWN = {"passed": ("green", "passed"), "failed": ("red", "failed"), "unknown": ("yellow", "cannot be told")}
_COLOR = {"passed": "green", "failed": "red", "incomplete": "yellow"}
_INDENT = " " * 3


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pack", metavar="PACK", help="the author's file, or - for standard input")
    parser.add_argument("--against", metavar="OLD", help="the version before")
    parser.add_argument("--golden", metavar="DIR", help="the folder of golden cases")
    parser.add_argument("--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first")
    parser.add_argument("--catalog", metavar="CATALOG", action="append", default=[], help="judge it together with this")
    parser.add_argument("--environment", metavar="FILE", help="what is known of the environment it is meant for")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.compile.check import checked
    from contextplane.cli.pack_args import catalogs_of, older

    found = checked(
        args.pack,
        against=older(args, screen),
        golden=args.golden,
        overlays=tuple(args.overlay),
        environment=args.environment,
        catalogs=catalogs_of(args, screen),
    )
    _tell(found, screen)
    screen.answer(_answer(found))
    return OK if found.checklist.outcome == "passed" else REFUSED


def _tell(found: "Checked", screen: Screen) -> None:
    from contextplane.cli.render.packs import tell

    for line in found.checklist.lines:
        color, verdict = _SHOWN[line.verdict]
        tell_line = screen.say if line.verdict == "passed" else screen.failure
        tell_line(f"{line.number}. {screen.paint(color, f'{verdict:<14}')}  {line.says}")
        tell_line(f"{_INDENT}{shortened(clean(line.reason))}")
        if line.step == "diff" and found.comparison is not None:
            tell(found.comparison, screen, indent=_INDENT * 2, where=found.pack.where)
    outcome = found.checklist.outcome
    screen.say(f"{screen.paint(_COLOR[outcome], outcome)}: {_counts(found.checklist)}")


def _counts(checklist: "Checklist") -> str:
    return ", ".join(
        f"{sum(line.verdict == verdict for line in checklist.lines)} {words}" for verdict, (_, words) in _SHOWN.items()
    )


def _answer(found: "Checked") -> dict[str, object]:
    from contextplane.cli.render.packs import answer

    return {
        "outcome": found.checklist.outcome,
        "lines": found.checklist.lines,
        "difference": answer(found.comparison) if found.comparison is not None else None,
    }
