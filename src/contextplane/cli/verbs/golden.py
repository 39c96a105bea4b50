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

from contextplane.cli.compile_args import add_asking, source_of
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.output import Screen, clean, counted, shortened

if TYPE_CHECKING:
    from contextplane.evaluation.golden import Ran

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("record", "check"), help="what to do")
    parser.add_argument("folder", metavar="DIR", help="the folder of the cases")
    add_asking(parser, default="the version that the requests name")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.compile.golden import golden_files, record
    from contextplane.evaluation.golden import asked_by_all, check, version_asked_for

    files = golden_files(args.folder, anew=args.action == "record")
    if args.pack is None:
        args.pack = version_asked_for(files)
    source = source_of(args, screen, files[0].file, lambda ref: asked_by_all(files, str(ref)))
    if args.action == "record":
        ran = record(source, files)
        _tell_recorded(ran, screen)
        screen.answer({"cases": [_answer(result) for result in ran]})
        return OK
    ran = check(source, files)
    _tell_checked(ran, screen)
    screen.answer({"passed": all(result.passed for result in ran), "cases": [_answer(result) for result in ran]})
    return OK if all(result.passed for result in ran) else DRIFT


def _tell_recorded(ran: tuple["Ran", ...], screen: Screen) -> None:
    from contextplane.cli.render.compiled import say_moved

    for result in ran:
        refused = f"; it is refused with {result.refused}" if result.refused else ""
        if result.passed:
            screen.say(f"{clean(result.name)}: as it was recorded{refused}")
        elif not result.recorded:
            screen.say(f"{clean(result.name)}: recorded{refused}")
        else:
            screen.say(
                f"{clean(result.name)}: recorded anew, otherwise from {result.stage} on{_noted(result)}{refused}"
            )
            say_moved(result.moved, "    ", screen)


def _tell_checked(ran: tuple["Ran", ...], screen: Screen) -> None:
    """Those that hold in a line each, of those that do not also what moved; silence hides only the first."""
    from contextplane.cli.render.compiled import say_moved

    for result in ran:
        name = clean(result.name)
        if result.passed:
            note = ", in another version of the pack" if result.elsewhere else ""
            screen.say(f"{screen.paint('green', 'as recorded')}  {name}{note}")
        elif not result.recorded:
            screen.entry(name, f"{screen.paint('red', 'not recorded')} {name}: 'ctx golden record' writes it")
        else:
            screen.entry(name, f"{screen.paint('red', 'drifted')}      {name}  at {result.stage}{_noted(result)}")
            say_moved(result.moved, "    ", screen)
    screen.say(f"{counted(len(ran), 'case')}, {_count(ran)}")


def _count(ran: tuple["Ran", ...]) -> str:
    missing = sum(not result.recorded for result in ran)
    drifted = sum(not result.passed for result in ran) - missing
    return f"{drifted} drifted" + (f", {missing} not recorded" if missing else "")


def _noted(result: "Ran") -> str:
    """What is wrong beside what moved."""
    return f": {shortened(clean('; '.join(result.notes)))}" if result.notes else ""


def _answer(result: "Ran") -> dict[str, object]:
    return {
        "name": result.name,
        "passed": result.passed,
        "stage": result.stage or None,
        "words": result.words,
        "moved": result.moved,
        "refused": result.refused or None,
        "other_version": result.elsewhere,
    }
