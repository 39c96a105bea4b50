"""Why something is in or out of a compiled context, and what would flip it.

ITEM is a tool (adp_payments.issue_refund), a rule, a gate, a guardrail, a piece of evidence, a memory, a
name of required evidence, a block or a bucket, by its id; KIND/ID where several have the same. The answer
tells what had a say in it, with the facts that were read, and the fewest changes of the request that turn
it round. They are found by compiling changed requests, small sets of changes first, with values that the
pack itself names; so each is verified, and none that is smaller does it. When too many would have to be
tried, that is said.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.compiled.asking import add_asking, add_knobs, asked_case, knobs_of, source_of
from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, clean, counted, shortened

if TYPE_CHECKING:
    from contextplane.app.why import Why

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    add_asking(parser)
    parser.add_argument("item", metavar="ITEM", help="what is asked about")
    add_knobs(parser)


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.why import why

    knobs = knobs_of(args)
    case = asked_case(args)
    found = why(source_of(args, screen, case), case, args.item, knobs)
    _tell(found, screen)
    screen.answer(_answer(found))
    return OK


def _tell(found: "Why", screen: Screen) -> None:
    item = found.item
    state = screen.paint("green", "in") if item.inside else screen.paint("red", "out")
    screen.say(f"{item.kind} {clean(item.id)} is {state}, by stage {item.stage}: {shortened(clean(item.words))}")
    for reason in found.reasons:
        screen.say(f"  {shortened(clean(reason))}")
    other = "out" if item.inside else "in"
    if found.flips:
        screen.say(f"It would be {other} with:")
    for n, flip in enumerate(found.flips):
        words = " and ".join(one.words for one in flip)
        screen.say(f"  {'or ' if n else ''}{shortened(clean(words))}")
    tried = counted(found.tried, "changed request")
    if found.flips:
        screen.say(screen.paint("dim", f"verified among {tried}; no smaller change does it"))
    elif found.complete:
        screen.say(f"No change of the request that was tried makes it {other}: {tried}")
    else:
        screen.say(f"What would make it {other} cannot be told: {tried} did not, and more were not tried")


def _answer(found: "Why") -> dict[str, object]:
    return {
        "item": found.item,
        "reasons": found.reasons,
        "flips": [[{"name": one.name, "at": one.at, "change": one.words} for one in flip] for flip in found.flips],
        "tried": found.tried,
        "complete": found.complete,
    }
