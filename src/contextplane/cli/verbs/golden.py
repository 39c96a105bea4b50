"""Golden cases: requests together with what they must compile to.

DIR holds requests as 'ctx compile --request' takes them, JSON or YAML. 'record' compiles each from the pack
and writes what came of it into the file, as "expected": manifests, controls, budget, and a hash for each
stage and for the whole; or the code of the refusal. 'check' compiles them again, and names what drifted and
the first stage that did (status 12). A request that names another version of the pack is run with this one;
then every stage must be as recorded, and the hash of the whole, which covers the pack itself, is not
compared. What another version of the compiler recorded, or what was changed by hand since, does not pass.

'ctx check --golden DIR' and 'ctx publish --golden DIR' ask the same; what was published is kept with its
cases, and a rollback runs them again.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.compile_args import add_pack_arguments, load_source
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

if TYPE_CHECKING:
    from contextplane.evaluation.golden import CaseResult

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("record", "check"), help="what to do")
    parser.add_argument("folder", metavar="DIR", help="the folder of the cases")
    add_pack_arguments(parser, default="the version that the requests name")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.compile.golden import golden_files, record_cases
    from contextplane.evaluation.golden import combined_case, check_cases, requested_version

    files = golden_files(args.folder, anew=args.action == "record")
    if args.pack is None:
        args.pack = requested_version(files)
    source = load_source(args, output, files[0].file, lambda ref: combined_case(files, str(ref)))
    if args.action == "record":
        ran = record_cases(source, files)
        _tell_recorded(ran, output)
        output.answer({"cases": [_answer(result) for result in ran]})
        return OK
    ran = check_cases(source, files)
    _tell_checked(ran, output)
    output.answer({"passed": all(result.passed for result in ran), "cases": [_answer(result) for result in ran]})
    return OK if all(result.passed for result in ran) else DRIFT


def _tell_recorded(ran: tuple["CaseResult", ...], output: CommandOutput) -> None:
    from contextplane.cli.render.compiled_context import print_item_changes

    for result in ran:
        refused = f"; it is refused with {result.refused}" if result.refused else ""
        if result.passed:
            output.line(f"{clean(result.name)}: as it was recorded{refused}")
        elif not result.recorded:
            output.line(f"{clean(result.name)}: recorded{refused}")
        else:
            output.line(
                f"{clean(result.name)}: recorded anew, otherwise from {result.stage} on{_noted(result)}{refused}"
            )
            print_item_changes(result.changes, "    ", output)


def _tell_checked(ran: tuple["CaseResult", ...], output: CommandOutput) -> None:
    """Those that hold in a line each, of those that do not also what moved; silence hides only the first."""
    from contextplane.cli.render.compiled_context import print_item_changes

    for result in ran:
        name = clean(result.name)
        if result.passed:
            note = ", in another version of the pack" if result.other_version else ""
            output.line(f"{output.paint('green', 'as recorded')}  {name}{note}")
        elif not result.recorded:
            output.entry(name, f"{output.paint('red', 'not recorded')} {name}: 'ctx golden record' writes it")
        else:
            output.entry(name, f"{output.paint('red', 'drifted')}      {name}  at {result.stage}{_noted(result)}")
            print_item_changes(result.changes, "    ", output)
    output.line(f"{quantity(len(ran), 'case')}, {_count(ran)}")


def _count(ran: tuple["CaseResult", ...]) -> str:
    missing = sum(not result.recorded for result in ran)
    drifted = sum(not result.passed for result in ran) - missing
    return f"{drifted} drifted" + (f", {missing} not recorded" if missing else "")


def _noted(result: "CaseResult") -> str:
    """What is wrong beside what moved."""
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
    }
