"""Record golden cases, requests with what they must compile to, and check them later.

DIR holds requests with their run context, as 'ctx compile --request' takes them, JSON or YAML.

  record    compile each request and write the result beside it: refund.expected.json beside refund.yaml. Your files are
            never changed. The result has the verdict, manifests, controls, budget, and a digest of each part of the
            prompt; or the code of the refusal.
  check     compile them again, and name what drifted and the first stage that did (status 12).

A case drifts by what it used. A changed rule of another intent, or another tool that is not surfaced, leaves it as it
is. A request that names another version of the pack runs with this one. Results that another version of the compiler
recorded, or that were edited by hand, do not pass. Older versions wrote results into the files themselves: these are
read, and 'record' moves them out.

'ctx check --golden DIR' and 'ctx publish --golden DIR' run the same check. A published version keeps its cases, and a
rollback runs them again.

Examples:
  ctx golden record golden refunds.yaml    write the expected results
  ctx golden check golden refunds.yaml     compare with them
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.compile_args import add_pack_arguments, load_source
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

if TYPE_CHECKING:
    from contextplane.app.compile.golden import CaseResult

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("record", "check"), help="the action")
    parser.add_argument("folder", metavar="DIR", help="the folder of the cases")
    add_pack_arguments(parser, default="the version that the requests name")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.compile.golden import (
        check_cases,
        combined_case,
        golden_files,
        record_cases,
        requested_version,
    )

    files = golden_files(args.folder, anew=args.action == "record")
    if args.pack is None:
        args.pack = requested_version(files)
    source = load_source(args, output, files[0].file, lambda ref: combined_case(files, str(ref)))
    if args.action == "record":
        results = record_cases(source, files)
        _print_recorded(results, output)
        output.answer({"cases": [_answer(result) for result in results]})
        return OK
    results = check_cases(source, files)
    passed = all(result.passed for result in results)
    _print_checked(results, output)
    output.answer({"passed": passed, "cases": [_answer(result) for result in results]})
    return OK if passed else DRIFT


def _print_recorded(results: tuple["CaseResult", ...], output: CommandOutput) -> None:
    from contextplane.cli.render.compiled_context import print_item_changes

    for result in results:
        refused = f"; it is refused with {result.refused}" if result.refused else ""
        if result.moved:
            refused += f"; the result moved out of the case, into {clean(result.name)}.expected.json"
        if result.passed:
            output.line(f"{clean(result.name)}: as it was recorded{refused}")
        elif not result.recorded:
            output.line(f"{clean(result.name)}: recorded{refused}")
        else:
            output.line(
                f"{clean(result.name)}: recorded again, different from {result.stage} on{_notes(result)}{refused}"
            )
            print_item_changes(result.changes, "    ", output)


def _print_checked(results: tuple["CaseResult", ...], output: CommandOutput) -> None:
    """Print a line for each case, and what changed in those that drifted; --quiet hides those that passed."""
    from contextplane.cli.render.compiled_context import print_item_changes

    for result in results:
        name = clean(result.name)
        if result.passed:
            note = ", in another version of the pack" if result.other_version else ""
            output.line(f"{output.paint('green', 'as recorded')}  {name}{note}")
        elif not result.recorded:
            output.entry(name, f"{output.paint('red', 'not recorded')} {name}: 'ctx golden record' writes it")
        else:
            output.entry(name, f"{output.paint('red', 'drifted')}      {name}  at {result.stage}{_notes(result)}")
            print_item_changes(result.changes, "    ", output)
    output.line(f"{quantity(len(results), 'case')}, {_count(results)}")


def _count(results: tuple["CaseResult", ...]) -> str:
    missing = sum(not result.recorded for result in results)
    drifted = sum(not result.passed for result in results) - missing
    return f"{drifted} drifted" + (f", {missing} not recorded" if missing else "")


def _notes(result: "CaseResult") -> str:
    """Return what is wrong with a case besides the changed items."""
    return f": {shorten(clean('; '.join(result.notes)))}" if result.notes else ""


def _answer(result: "CaseResult") -> dict[str, object]:
    return {
        "name": result.name,
        "passed": result.passed,
        "stage": result.stage or None,
        "words": result.words,
        "moved": result.changes,
        "refused": result.refused or None,
        "other_version": result.other_version,
        **({"moved_out": True} if result.moved else {}),
    }
