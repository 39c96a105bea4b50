"""Compile a request: what the model sees, what it may do, and why.

The same pack, request, evidence and memories always give the same bytes and the same hash. PACK is one of these:

  refunds.yaml            a file. It must pass every gate of 'ctx lint', together with the catalogs of --catalog.
  ctxpack.support         with --environment, the version that the environment pins. Standard error names it.
  ctxpack.support@1.2.0   this version, verified and resolved as --environment pins it, with the catalogs that the
                          request names.

--request names a JSON or YAML file; - reads standard input. The file holds request, run_context and environment, and
optionally evidence, memories and as_of: 'ctx new FILE --request' writes one. It may also hold a bare invokeAgent
envelope. The run context is then made from the envelope, from --role, --safety-mode and --bucket, and from defaults;
standard error lists what was assumed, and --json has it as "assumed". A denied request compiles as well: the first line
says so, and the status is 0.

Overrides change a value of the request, and the answer lists what they changed. --set takes the name of a fact as
rules read it (request.context.refund_amount=4200, user.role='"supervisor"'), or a place in the document
(/run_context/run_budget/total_tokens=900). The value is JSON, so a text needs quotes.

--json prints the compiled context, with the overrides and their effects. --prompt prints the exact text for the
model, --chat a request body.

--tokens chooses what counts the tokens, instead of the pack's counter. calibrated1, the default, estimates; o200k_base
and cl100k_base are exact and need tiktoken with its tables: pip install 'contextplane[tokens]'.

Examples:
  ctx compile refunds.yaml --request request.yaml              compile a file
  ctx compile ctxpack.support --environment prod --request -   compile what prod pins
  ctx compile refunds.yaml --request r.yaml --role agent       change the role of the user
"""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Literal

from contextplane.cli.compile_args import (
    add_pack_arguments,
    add_request_arguments,
    assumed_json,
    load_request,
)
from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean_lines

if TYPE_CHECKING:
    from contextplane.app.compile.context import CompiledCase, CompletedCase, Override
    from contextplane.model.compiled_context import CompiledContext

__all__ = ["add_arguments", "run"]

_COUNTERS = ("calibrated1", "approx4", "o200k_base", "cl100k_base")


def add_arguments(parser: ArgumentParser) -> None:
    add_pack_arguments(parser)
    add_request_arguments(parser)
    parser.add_argument(
        "--tokens", metavar="NAME", choices=_COUNTERS, help=f"count tokens with another counter: {', '.join(_COUNTERS)}"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--prompt", action="store_true", help="print the exact text for the model")
    how.add_argument("--chat", choices=("openai", "anthropic"), help="print the body for a chat API of this form")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.compile.context import compile_case

    source, case = load_request(args, output)
    if args.tokens is not None:
        from contextplane.app.compile.context import count_with

        source = count_with(source, args.tokens)
    overrides = case.overrides
    compiled = compile_case(source, case.file, overrides)
    if args.prompt:
        _write_prompt(compiled.context, output)
    elif args.chat:
        _write_chat(compiled.context, args.chat, output)
    else:
        if not output.json and not output.quiet:
            from contextplane.app.compile.context import list_all_items
            from contextplane.cli.render.compiled_context import print_compiled, print_override_effects

            print_compiled(compiled, list_all_items(source, compiled.context), output)
            if overrides:
                print_override_effects(compiled, ", ".join(override.words for override in overrides), output)
        if output.quiet and not output.json:
            output.out.write(f"{compiled.context.context_ledger.compiled_context_hash}\n")
        output.answer(_answer(compiled, case))
    return OK


def _answer(compiled: "CompiledCase", case: "CompletedCase") -> object:
    """Return the compiled context; beside its parts what was assumed, and what the overrides changed."""
    if not case.assumptions and not case.overrides:
        return compiled.context
    import msgspec

    answer = {**msgspec.to_builtins(compiled.context), **assumed_json(case)}
    return {**answer, **_override_effects(compiled, case.overrides)} if case.overrides else answer


def _override_effects(compiled: "CompiledCase", overrides: "tuple[Override, ...]") -> dict[str, object]:
    return {
        "knobs": [{"name": override.name, "at": override.at, "change": override.words} for override in overrides],
        "moved": compiled.changes,
        "hash_moved": compiled.hash_changed,
        "refused_before": compiled.refused_before or None,
    }


def _write_prompt(context: "CompiledContext", output: CommandOutput) -> None:
    """Write the text byte for byte; on a terminal its control characters are shown escaped."""
    from contextplane.app.compile.context import prompt_text

    text = prompt_text(context)
    if output.json:
        output.answer({"prompt": text, "prefix_length": context.context_ledger.prefix_length})
    elif output.out.isatty():
        output.out.write(clean_lines(text) + "\n")
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def _write_chat(context: "CompiledContext", form: Literal["openai", "anthropic"], output: CommandOutput) -> None:
    import msgspec

    from contextplane.app.compile.context import chat_body

    body = chat_body(context, form)
    output.json_text(msgspec.json.format(msgspec.json.encode(body), indent=2).decode())
