"""Check a context pack against the eight validation gates.

The gates are schema, referential integrity, policy, risk, tenancy, replay, evaluation and security. All findings are
listed at once, each with its file, place, cause and fix. An error refuses the pack (status 10); a warning does not. A
check that needs more information is listed as skipped and does not count as passed; --environment provides more.

PACK is YAML if its name ends in .yaml or .yml, else JSON; - reads JSON from standard input. Overlays and decision
catalogs are checked by the laws of their kind.

  --overlay      apply an overlay first; repeat it for several. They must be for one environment, and may only add
                 restrictions.
  --catalog      check the pack together with a decision catalog, a file or a published version; repeat it for several.
                 Rules of the pack may be bound to its decisions.
  --against      refuse a version number that promises less change than there is since OLD: a file, id@X.Y.Z or
                 id@NAME.
  --strict       refuse also what is undecided (status 10): a check that could not be run or decided, and with --against
                 a change whose effect cannot be told. Golden cases do not count: 'ctx check' compiles them.
  --record       record the file in the registry, as a draft that can be reviewed. Its catalogs must be published.

Examples:
  ctx lint refunds.yaml                          check a file
  ctx lint refunds.yaml --against old.yaml       check its version number, too
  ctx lint refunds.yaml --strict                 refuse also what is undecided
  ctx lint refunds.yaml --record --key alice     record it as a draft
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import CommandOutput, clean, quantity, shorten
from contextplane.cli.registry.session import add_signing
from contextplane.cli.render.findings import SEVERITY_COLOR, print_finding
from contextplane.errors import ContextPlaneError

if TYPE_CHECKING:
    from contextplane.app.packs.diff import Comparison
    from contextplane.app.packs.lint import LintResult, PlacedFinding

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pack", metavar="PACK", nargs="?", help="the file to check, or - for standard input")
    parser.add_argument("--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first")
    parser.add_argument(
        "--catalog", metavar="CATALOG", action="append", default=[], help="check it together with this decision catalog"
    )
    parser.add_argument("--environment", metavar="FILE", help="a description of the target environment")
    parser.add_argument("--against", metavar="OLD", help="check the version number against the previous version")
    parser.add_argument("--strict", action="store_true", help="refuse also what cannot be decided")
    parser.add_argument("--sarif", action="store_true", help="print the findings as SARIF 2.1.0")
    parser.add_argument("--record", action="store_true", help="record it in the registry as a draft")
    parser.add_argument("--explain", metavar="NAME", help="explain a gate, a law or an error instead")
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    if args.explain is not None:
        from contextplane.cli.verbs.explain import print_explanation

        return print_explanation(args.explain, output)
    if args.pack is None:
        from contextplane.cli.parser import Usage

        raise Usage("no PACK was named", hint="ctx lint PACK, or ctx lint --explain NAME")
    if args.record:
        from contextplane.cli.registry.lifecycle import record_file

        return record_file(args, output)
    from contextplane.app.packs.lint import lint_file, require_version_number
    from contextplane.cli.pack_args import read_catalogs, read_older

    try:
        before, catalogs = read_older(args, output), read_catalogs(args, output)
        result = lint_file(
            args.pack, overlays=tuple(args.overlay), environment=args.environment, against=before, catalogs=catalogs
        )
    except ContextPlaneError as error:
        if args.sarif:
            _print_unreadable(error, args, output)
        raise
    if args.sarif:
        _print_sarif(result, output)
    else:
        _print_result(result, output, strict=args.strict)
        output.answer(_answer(result, strict=args.strict))
    # Only now: the findings are printed also if the version number is too small.
    require_version_number(result)
    return OK if result.report.passed and not (args.strict and result.undecided) else REFUSED


def _print_result(result: "LintResult", output: CommandOutput, *, strict: bool) -> None:
    from contextplane.cli.render.wrapped_line import LineHead, print_wrapped

    for applied in result.applied:
        change = applied.change
        output.line(
            f"overlay {clean(applied.where)}  {applied.overlay}: {shorten(clean(change.words))} ({change.effect})"
        )
    of_the_whole = [placed for placed in result.placed if _is_of_the_whole(placed)]
    for placed in result.placed:
        if placed not in of_the_whole:
            print_finding(placed.finding, placed.where, output)
    if result.comparison is not None:
        _print_comparison(result.comparison, output)
    for line in _verdict(result, output, strict=strict):
        output.line(line)
    for placed in of_the_whole:
        head = f"skipped ({placed.finding.gate}/{placed.finding.code}): "
        words = f"{clean(placed.finding.cause)} -> {clean(placed.finding.cure)}"
        print_wrapped(LineHead(output.paint("dim", head), len(head), 4), words, output, "dim")


def _is_of_the_whole(placed: "PlacedFinding") -> bool:
    """Whether a check could not run on the whole pack: the finding has no place in the file."""
    return placed.finding.severity == "unknown" and not placed.finding.at


def _print_comparison(comparison: "Comparison", output: CommandOutput) -> None:
    from contextplane.cli.render.comparison import print_comparison

    if comparison.same:
        output.line(f"nothing changed since {comparison.old}")
        return
    output.line(f"changes since {comparison.old}; least version class: {comparison.bump.least}")
    print_comparison(comparison, output, indent="  ")


def _verdict(result: "LintResult", output: CommandOutput, *, strict: bool) -> list[str]:
    """Return the verdict on what was judged, and a line for each kind of thing that was not."""
    counts = {kind: sum(placed.finding.severity == kind for placed in result.placed) for kind in SEVERITY_COLOR}
    undecided = result.undecided if strict else 0
    passed = result.report.passed and not undecided
    passed = passed and not (result.comparison is not None and result.comparison.refusal)
    verdict = output.paint("green", "passed") if passed else output.paint("red", "refused")
    lines = [f"{verdict}: {quantity(counts['error'], 'error')}, {quantity(counts['warning'], 'warning')}"]
    if undecided:
        lines[0] += f", {undecided} undecided (--strict)"
    if result.report.not_run:
        lines.append(f"not run, because the schema is violated: {', '.join(result.report.not_run)}")
    if result.report.absent_parts:
        lines.append(f"skipped: laws about {', '.join(result.report.absent_parts)}, which the pack leaves out")
    if result.left_out:
        lines.append("overlays not applied, because the schema is violated")
    unknown = sum(placed.finding.severity == "unknown" and not _is_of_the_whole(placed) for placed in result.placed)
    if unknown:
        lines.append(f"skipped: {quantity(unknown, 'check')} above, for lack of information")
    return lines


def _print_sarif(result: "LintResult", output: CommandOutput) -> None:
    import msgspec

    from contextplane import __version__
    from contextplane.app.packs.lint import sarif_log

    log = sarif_log(result, __version__)
    output.json_text(msgspec.json.format(msgspec.json.encode(log), indent=2).decode())


def _print_unreadable(error: ContextPlaneError, args: Namespace, output: CommandOutput) -> None:
    """Print a SARIF log also for a file that cannot be judged, unless it does not exist."""
    if error.family != "refused":
        return
    import msgspec

    from contextplane import __version__
    from contextplane.app.packs.lint import unreadable_sarif_log

    named = [args.pack, *args.overlay, *args.catalog, args.environment or "", args.against or ""]
    path = next((path for path in named if path and (error.at or "").startswith(path)), args.pack)
    log = unreadable_sarif_log(error, path, __version__)
    output.json_text(msgspec.json.format(msgspec.json.encode(log), indent=2).decode())


def _answer(result: "LintResult", *, strict: bool) -> dict[str, object]:
    comparison = result.comparison
    refused = (comparison is not None and bool(comparison.refusal)) or (strict and result.undecided > 0)
    return {
        "passed": result.report.passed and not refused,
        "findings": [_finding_json(placed) for placed in result.placed],
        "not_run": result.report.not_run,
        "absent_parts": result.report.absent_parts,
        "overlays": [
            {
                "overlay": placed_change.overlay,
                "place": placed_change.where,
                "at": placed_change.change.at,
                "effect": placed_change.change.effect,
                "words": placed_change.change.words,
            }
            for placed_change in result.applied
        ],
        "overlays_left_out": result.left_out,
        "catalogs": result.catalogs,
        "version_class": None if comparison is None or comparison.same else comparison.bump.least,
        "version_refused": (comparison.refusal or None) if comparison is not None else None,
        "difference": _difference_json(comparison) if comparison is not None else None,
    }


def _difference_json(comparison: "Comparison") -> dict[str, object]:
    # Loaded here: a pack that is only judged does not load what compares.
    from contextplane.cli.render.comparison import comparison_json

    return comparison_json(comparison)


def _finding_json(placed: "PlacedFinding") -> dict[str, object]:
    finding = placed.finding
    return {
        "place": placed.where,
        "file": placed.path,
        "line": placed.place.line,
        "column": placed.place.column,
        "gate": finding.gate,
        "code": finding.code,
        "severity": finding.severity,
        "at": finding.at,
        "cause": finding.cause,
        "cure": finding.cure,
    }
