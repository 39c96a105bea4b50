"""Explain why an item is in or out of a compiled context, and what would change that.

ITEM is the id of a tool (adp_payments.issue_refund), a rule, a gate, a guardrail, a piece of evidence, a memory, a
name of required evidence, a block or a bucket. Write KIND/ID if several items have the same id. 'request' asks why the
request is allowed or denied.

The answer lists what contributed, with the facts that were read, and the smallest changes of the request that would
reverse the result. Each change is written as --set takes it; null removes a fact. The changes are found by compiling
changed requests with values that the pack names, so each is verified. If there are too many to try, the answer says so.

Examples:
  ctx why refunds.yaml request --request request.yaml          why is it allowed or denied
  ctx why refunds.yaml adp_orders.lookup --request r.yaml      why is a tool in or out
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.compile_args import (
    add_pack_arguments,
    add_request_arguments,
    assumed_json,
    load_request,
)
from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

if TYPE_CHECKING:
    from contextplane.app.compile.why import Explanation

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
"""The words for an item of this kind that is in, and for one that is out; of other kinds `in` and `out`."""

_WITHOUT_WORDS = frozenset({"decision", "gate", "guardrail"})
"""The kinds whose reasons say what their words say."""


def add_arguments(parser: ArgumentParser) -> None:
    add_pack_arguments(parser)
    parser.add_argument("item", metavar="ITEM", help="the item to explain")
    add_request_arguments(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.compile.why import explain

    source, case = load_request(args, output)
    explanation = explain(source, case.file, args.item, case.overrides)
    _print_explanation(explanation, output)
    output.answer({**_answer(explanation), **assumed_json(case)})
    return OK


def _print_explanation(explanation: "Explanation", output: CommandOutput) -> None:
    from contextplane.cli.render.wrapped_line import LineHead, print_wrapped

    item = explanation.item
    states = _STATES.get(item.kind, _IN_OUT)
    state = output.paint("green", states[0]) if item.inside else output.paint("red", states[1])
    output.line(f"{item.kind} {clean(item.id)} is {state}, by stage {item.stage}")
    words = () if item.kind in _WITHOUT_WORDS or _reasons_repeat_words(explanation) else (item.words,)
    for reason in (*words, *explanation.reasons):
        print_wrapped(LineHead("  ", 2, 4), shorten(clean(reason)), output)
    _print_counterfactuals(explanation, states[1] if item.inside else states[0], output)


def _reasons_repeat_words(explanation: "Explanation") -> bool:
    """Whether the reasons repeat the words of the item: those of a tool that is out do."""
    return explanation.item.kind == "tool" and not explanation.item.inside and explanation.item.stage == "tools"


def _print_counterfactuals(explanation: "Explanation", other: str, output: CommandOutput) -> None:
    from contextplane.cli.render.wrapped_line import LineHead, print_wrapped

    tried = quantity(explanation.tried, "changed request")
    stays = [after is not None and after.inside is explanation.item.inside for after in explanation.outcomes]
    if explanation.counterfactuals:
        output.line("It would be reversed with:" if all(stays) else f"It would {_negated_verb(other)} with:")
    for n, (overrides, after) in enumerate(zip(explanation.counterfactuals, explanation.outcomes, strict=True)):
        words = " and ".join(override.words for override in overrides)
        then = f": {after.words}" if stays[n] and after is not None else ""
        print_wrapped(LineHead(f"  {'or ' if n else ''}", 5 if n else 2, 6), shorten(clean(f"{words}{then}")), output)
    if explanation.counterfactuals:
        smaller = "" if len(explanation.counterfactuals[0]) == 1 else "; no smaller set does it"
        output.line(output.paint("dim", f"found by compiling {tried}{smaller}"))
    elif not explanation.tried:
        output.line(f"No change of a request makes it {other}.")
    elif explanation.complete:
        output.line(f"No change of the request that was tried makes it {other}: {tried}")
    else:
        output.line(f"What would make it {other} is unknown: {tried} did not, and more were not tried")


def _negated_verb(state: str) -> str:
    """The verb phrase for a state: "not be active" for "not active"."""
    return f"not be {state.removeprefix('not ')}" if state.startswith("not ") else f"be {state}"


def _answer(explanation: "Explanation") -> dict[str, object]:
    return {
        "item": explanation.item,
        "reasons": explanation.reasons,
        "flips": [
            [{"name": override.name, "at": override.at, "change": override.words} for override in overrides]
            for overrides in explanation.counterfactuals
        ],
        "becomes": explanation.outcomes,
        "tried": explanation.tried,
        "complete": explanation.complete,
    }
