"""Golden cases: requests together with what they must compile to.

DIR holds requests as JSON files, as 'ctx compile --request' takes them. 'record' compiles each from the
pack and writes what came of it into the file, as "expected": manifests, controls, budget, and a hash for
each stage and for the whole; or the code of the refusal. 'check' compiles them again, and names what
drifted and the first stage that did (status 12). A request that names another version of the pack is run
with this one; then every stage must be as recorded, and the hash of the whole, which covers the pack
itself, is not compared.

'ctx check --golden DIR' and 'ctx publish --golden DIR' ask the same; what was published is kept with its
cases, and a rollback runs them again.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.compiled.asking import add_asking, source_of
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.screen import Screen, clean, counted, shortened

if TYPE_CHECKING:
    from contextplane.app.golden import Ran

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("record", "check"), help="what to do")
    parser.add_argument("folder", metavar="DIR", help="the folder of the cases")
    add_asking(parser)


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.golden import check, for_version, golden_files, record

    files = golden_files(args.folder)
    source = source_of(args, screen, files[0].file, lambda ref: for_version(files[0], ref))
    if args.action == "record":
        ran = record(source, files)
        _tell_recorded(ran, screen)
        screen.answer({"cases": [_answer(one) for one in ran]})
        return OK
    ran = check(source, files)
    _tell_checked(ran, screen)
    screen.answer({"passed": all(one.passed for one in ran), "cases": [_answer(one) for one in ran]})
    return OK if all(one.passed for one in ran) else DRIFT


def _tell_recorded(ran: tuple["Ran", ...], screen: Screen) -> None:
    for one in ran:
        if one.passed:
            screen.say(f"{clean(one.name)}: as it was recorded")
        elif one.stage == "record":
            screen.say(f"{clean(one.name)}: recorded")
        else:
            screen.say(f"{clean(one.name)}: recorded anew, otherwise from {one.stage} on: {_short(one.words)}")


def _tell_checked(ran: tuple["Ran", ...], screen: Screen) -> None:
    from contextplane.cli.compiled.telling import moved_lines

    for one in ran:
        if one.passed:
            note = ", in another version of the pack" if one.elsewhere else ""
            screen.say(f"{screen.paint('green', 'as recorded')}  {clean(one.name)}{note}")
            continue
        screen.say(f"{screen.paint('red', 'drifted')}      {clean(one.name)}  at {one.stage}: {_short(one.words)}")
        for line in moved_lines(one.moved, screen):
            screen.say(f"    {line}")
    drifted = sum(not one.passed for one in ran)
    screen.say(f"{counted(len(ran), 'case')}, {drifted} drifted")


def _short(text: str) -> str:
    return shortened(clean(text))


def _answer(one: "Ran") -> dict[str, object]:
    return {
        "name": one.name,
        "passed": one.passed,
        "stage": one.stage or None,
        "words": one.words,
        "moved": one.moved,
        "other_version": one.elsewhere,
    }
