"""Test a context pack with tables of cases: requests in a few lines, with what they must get.

PATH is a table, or a folder with tables: files that end in .test.yaml, .test.yml or .test.json, also in its folders. A
table names a pack and its cases:

    pack: refunds.yaml
    role: support_agent
    set: {request.context.refund_amount: 900}
    cases:
      - name: the identity is not known
        expect: {allowed: false, tools: []}

set changes facts by the names that rules use. intent, role, safety_mode, message and as_of are short forms. At the top
of the table they hold for all cases. base names a request to change, relative to the table; without it, a user with a
delegation asks under the highest ceiling.

expect compares what it names: allowed, reason (a part of it), tools, gates, rules, guardrails, or refused (the code of
the error). A list is exact; {has: [...], lacks: [...]} names some. A name that the pack does not have is refused.

Below the cases, the report lists which rules were never true or never false, which guardrails were never triggered, and
which gates were never or always active. The status is 0 if all cases passed, else 10; with --coverage-min also 10 if
less is covered.

Examples:
  ctx test                              run the tables of this folder
  ctx test refunds.test.yaml --json     run one table, for a program
  ctx test tests --junit report.xml     write a report for CI
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

if TYPE_CHECKING:
    from contextplane.app.compile.tables import Coverage, TableResult

__all__ = ["add_arguments", "run"]

_ALL = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="*", default=["."], help="a table, or a folder (default: .)")
    parser.add_argument("--pack", metavar="FILE", help="test this pack in place of those that the tables name")
    parser.add_argument("--coverage-min", metavar="N", type=int, help="fail below this coverage, in percent")
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML to FILE")
    parser.add_argument("--sarif", metavar="FILE", help="write the failed cases as SARIF 2.1.0 to FILE")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.compile.tables import is_table, pack_coverage, run_tables

    for option, report in (("--junit", args.junit), ("--sarif", args.sarif)):
        if report is not None and is_table(report):
            from contextplane.cli.parser import Usage

            raise Usage(f"{option} would replace a table of tests", hint=f"write {option} FILE, then the tables")
    if args.coverage_min is not None and not 0 <= args.coverage_min <= _ALL:
        from contextplane.cli.parser import Usage

        raise Usage("--coverage-min is a percentage", hint="write a number from 0 to 100")
    results = run_tables(args.paths, args.pack)
    coverage = pack_coverage(results)
    _write_reports(args, results)
    least = min(row.percent for row in coverage)
    enough = args.coverage_min is None or least >= args.coverage_min
    passed = all(outcome.passed for result in results for outcome in result.outcomes)
    _print_results(results, output)
    for row in coverage:
        _print_coverage(row, output)
    _print_counts(results, output)
    if not enough:
        output.failure_line(f"coverage is {least} %, less than {args.coverage_min} %")
    output.answer(_answer(results, coverage, passed=passed and enough))
    return OK if passed and enough else REFUSED


def _print_results(results: "tuple[TableResult, ...]", output: CommandOutput) -> None:
    """Print each case, and the differences of those that failed; --quiet hides those that passed."""
    for result in results:
        output.line(f"{clean(result.file.path)}  {result.pack}")
        for outcome in result.outcomes:
            name = clean(outcome.name)
            if outcome.passed:
                output.line(f"  {output.paint('green', 'ok')}    {name}")
                _print_warnings(outcome.warnings, output)
                continue
            output.failure_line(f"  {output.paint('red', 'FAIL')}  {name}  ({clean(result.where(outcome))})")
            for difference in outcome.differences:
                output.failure_line(f"        {shorten(clean(difference))}")
            _print_warnings(outcome.warnings, output)


def _print_warnings(warnings: tuple[str, ...], output: CommandOutput) -> None:
    for warning in warnings:
        output.line(f"        {output.paint('yellow', 'warning')}: {shorten(clean(warning))}")


def _print_coverage(coverage: "Coverage", output: CommandOutput) -> None:
    output.line(f"coverage of {coverage.pack}: {coverage.covered} of {coverage.total} outcomes, {coverage.percent} %")
    for item in coverage.items:
        if item.missing:
            undecided = f", undecided in {quantity(item.undecided, 'case')}" if item.undecided else ""
            output.line(f"  {item.kind} {clean(item.id)}: {' and '.join(item.missing)}{undecided}")


def _print_counts(results: "tuple[TableResult, ...]", output: CommandOutput) -> None:
    outcomes = [outcome for result in results for outcome in result.outcomes]
    failed = sum(not outcome.passed for outcome in outcomes)
    verdict = output.paint("red", f"{failed} failed") if failed else output.paint("green", "all passed")
    output.line(f"{quantity(len(outcomes), 'case')}, {verdict}")


def _write_reports(args: Namespace, results: "tuple[TableResult, ...]") -> None:
    from contextplane.app.compile.tables import junit_report, sarif_report, write_report

    if args.junit is not None:
        write_report(args.junit, junit_report(results))
    if args.sarif is not None:
        import msgspec

        from contextplane import __version__

        log = sarif_report(results, __version__)
        write_report(args.sarif, msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n")


def _answer(results: "tuple[TableResult, ...]", coverage: "tuple[Coverage, ...]", *, passed: bool) -> dict[str, object]:
    return {
        "passed": passed,
        "cases": [
            {
                "table": result.file.path,
                "pack": result.pack,
                "name": outcome.name,
                "place": result.where(outcome),
                "passed": outcome.passed,
                "differences": outcome.differences,
                "warnings": outcome.warnings,
                "refused": outcome.refused or None,
            }
            for result in results
            for outcome in result.outcomes
        ],
        "coverage": [
            {
                "pack": row.pack,
                "covered": row.covered,
                "total": row.total,
                "percent": row.percent,
                "items": [
                    {
                        "kind": item.kind,
                        "id": item.id,
                        "true": item.true,
                        "false": item.false,
                        "undecided": item.undecided,
                        "missing": item.missing,
                    }
                    for item in row.items
                ],
            }
            for row in coverage
        ],
    }
