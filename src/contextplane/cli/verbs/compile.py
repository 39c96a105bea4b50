"""Compile a request: what a model would see and may do, what shaped that, and what was kept from it.

Pure and repeatable: the same pack, request, evidence and memories always give the same bytes and the same
hash. A FILE must pass every gate of 'ctx lint', together with the decision catalogs that --catalog names,
files or versions of the registry; a REF is verified and resolved as --environment pins it, with the catalogs
that the request names. --request names one document, a file, JSON or YAML, with request, run_context and
environment, and with evidence, memories and as_of where there are any; 'ctx new FILE --request' writes one
to begin with. A request that policy denies compiles as well: the first line says so, and the status is 0.

Knobs change a value of the request; what moved by them is told. --set takes a fact by the name that rules
read it under (request.context.refund_amount=4200, user.role='"supervisor"') or a place in the document
(/run_context/run_budget/total_tokens=900). Its value is JSON, so a text stands in quotes.

--json prints the compiled context, with knobs and what they moved beside its parts; --prompt the exact text
that a model is given, --chat a request body.
"""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.compile_args import add_asking, add_knobs, asked_case, knobs_of, source_of
from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean_lines

if TYPE_CHECKING:
    from contextplane.compiler.overrides import Knob
    from contextplane.compiler.source import Compiled
    from contextplane.model.compiled_context import CompiledContext

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    add_asking(parser)
    add_knobs(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--prompt", action="store_true", help="print the exact text that a model is given")
    how.add_argument("--chat", choices=("openai", "anthropic"), help="print the body for a chat API of this form")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.compiler.source import compiled_case

    knobs = knobs_of(args)
    case = asked_case(args)
    source = source_of(args, screen, case)
    found = compiled_case(source, case, knobs)
    if args.prompt:
        _write_prompt(found.context, screen)
    elif args.chat:
        _write_chat(found.context, args.chat, screen)
    else:
        if not screen.json and not screen.quiet:
            from contextplane.audit.reasons import full_account
            from contextplane.cli.render.compiled import tell, tell_moved

            tell(found, full_account(source, found.context), screen)
            if knobs:
                tell_moved(found, ", ".join(knob.words for knob in knobs), screen)
        if screen.quiet and not screen.json:
            screen.out.write(f"{found.context.context_ledger.compiled_context_hash}\n")
        screen.answer(_answer(found, knobs) if knobs else found.context)
    return OK


def _answer(found: "Compiled", knobs: "tuple[Knob, ...]") -> dict[str, object]:
    """The compiled context, and beside its parts what the knobs moved."""
    import msgspec

    return {
        **msgspec.to_builtins(found.context),
        "knobs": [{"name": knob.name, "at": knob.at, "change": knob.words} for knob in knobs],
        "moved": found.moved,
        "hash_moved": found.hash_moved,
        "refused_before": found.refused_before or None,
    }


def _write_prompt(compiled: "CompiledContext", screen: Screen) -> None:
    """The text, byte for byte; on a terminal what could speak to it is shown, not sent."""
    from contextplane.compiler.prompt import text_of

    text = text_of(compiled.compiled_prompt)
    if screen.json:
        screen.answer({"prompt": text, "prefix_length": compiled.context_ledger.prefix_length})
    elif screen.out.isatty():
        screen.out.write(clean_lines(text) + "\n")
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def _write_chat(compiled: "CompiledContext", form: str, screen: Screen) -> None:
    import msgspec

    from contextplane.compiler.chat import anthropic_chat, openai_chat

    chat = openai_chat(compiled) if form == "openai" else anthropic_chat(compiled)
    screen.json_text(msgspec.json.format(msgspec.json.encode(chat), indent=2).decode())
