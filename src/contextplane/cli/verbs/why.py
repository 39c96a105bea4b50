"""Why something is in or out of a compiled context, and what would flip it.

ITEM is a tool (adp_payments.issue_refund), a rule, a gate, a guardrail, a piece of evidence, a memory, a
name of required evidence, a block or a bucket, by its id; KIND/ID where several have the same. 'request'
asks why the request is allowed or denied. The answer tells what had a say in it, with the facts that were
read, and the fewest changes of the request that turn it round, each as --set takes it; null takes a fact
away. They are found by compiling changed requests, small sets of changes first, with values that the pack
itself names; so each is verified. When too many would have to be tried, that is said.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.compile_args import add_asking, add_knobs, asked_case, knobs_of, source_of
from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean, counted, shortened

if TYPE_CHECKING:
    from contextplane.audit.why import Why

__all__ = ["add_arguments", "run"]

_IN_OUT = ("in", "out")
_STATES = {
    "decision": ("allowed", "denied"),
    "rule": ("in effect", "not in effect"),
    "gate": ("active", "not active"),
    "guardrail": ("triggered", "not triggered"),
    "requirement": ("satisfied", "not satisfied"),
    "bucket": ("whole", "cut short"),
}
"""What it is called when a thing of this kind is in, and when it is out."""

_TOLD_BY_REASONS = frozenset({"decision", "gate", "guardrail"})


def add_arguments(parser: ArgumentParser) -> None:
    add_asking(parser)
    parser.add_argument("item", metavar="ITEM", help="what is asked about")
    add_knobs(parser)


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.audit.why import why

    knobs = knobs_of(args)
    case = asked_case(args)
    found = why(source_of(args, screen, case), case, args.item, knobs)
    _tell(found, screen)
    screen.answer(_answer(found))
    return OK


def _tell(found: "Why", screen: Screen) -> None:
    from contextplane.cli.render.compiled import Head, say_words

    item = found.item
    states = _STATES.get(item.kind, _IN_OUT)
    state = screen.paint("green", states[0]) if item.inside else screen.paint("red", states[1])
    screen.say(f"{item.kind} {clean(item.id)} is {state}, by stage {item.stage}")
    told = () if item.kind in _TOLD_BY_REASONS or _says_so(found) else (item.words,)
    for reason in (*told, *found.reasons):
        say_words(Head("  ", 2, 4), shortened(clean(reason)), screen)
    _tell_flips(found, states[1] if item.inside else states[0], screen)


def _says_so(found: "Why") -> bool:
    """Whether the reasons repeat what is said of it: those of a tool that is out do."""
    return found.item.kind == "tool" and not found.item.inside and found.item.stage == "tools"


def _tell_flips(found: "Why", other: str, screen: Screen) -> None:
    from contextplane.cli.render.compiled import Head, say_words

    tried = counted(found.tried, "changed request")
    stays = [after is not None and after.inside is found.item.inside for after in found.becomes]
    if found.flips:
        screen.say("It would say otherwise with:" if all(stays) else f"It would be {other} with:")
    for n, (flip, after) in enumerate(zip(found.flips, found.becomes, strict=True)):
        words = " and ".join(override.words for override in flip)
        then = f": {after.words}" if stays[n] and after is not None else ""
        say_words(Head(f"  {'or ' if n else ''}", 5 if n else 2, 6), shortened(clean(f"{words}{then}")), screen)
    if found.flips:
        smaller = "" if len(found.flips[0]) == 1 else "; no smaller set does it"
        screen.say(screen.paint("dim", f"each was compiled; {tried} {_were(found.tried)} tried{smaller}"))
    elif not found.tried:
        screen.say(f"No change of a request makes it {other}.")
    elif found.complete:
        screen.say(f"No change of the request that was tried makes it {other}: {tried}")
    else:
        screen.say(f"What would make it {other} cannot be told: {tried} did not, and more were not tried")


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _answer(found: "Why") -> dict[str, object]:
    return {
        "item": found.item,
        "reasons": found.reasons,
        "flips": [
            [{"name": override.name, "at": override.at, "change": override.words} for override in flip]
            for flip in found.flips
        ],
        "becomes": found.becomes,
        "tried": found.tried,
        "complete": found.complete,
    }
