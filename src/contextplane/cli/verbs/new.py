"""Write a small, complete context pack to start from.

It describes the refund workflow of a support team: one intent, one decision, two tools that read, and one tool that
writes with approval. A FILE that ends in .yaml or .yml gets comments on every layer; any other FILE is JSON. An
existing FILE is never replaced. Edit the pack, then check it with 'ctx lint FILE'.

The first line of a YAML pack names its JSON Schema, which editors read to complete and check the file. A copy of the
schema is written beside the pack, to .ctx-schemas/context-pack.v2.schema.json; only 'ctx new' updates it.

--request writes a complete request for that pack instead, which 'ctx compile' takes at once. Two options go with it,
and the command says what each value implies:

  --mode           how the caller gets the answer: stream, batch or long_running.
  --safety-mode    the ceiling of the run: no tool above it is surfaced. From delegated on, a delegation is required.

--test writes a table of tests for a pack in refunds.yaml instead, which 'ctx test' runs. End its name in .test.yaml.

--from drafts the pack from a real service instead:

  openapi SPEC    one adapter for an OpenAPI 3.0 or 3.1 description, a capability for each operation. GET and HEAD are
                  read_only, POST, PUT and PATCH are network, DELETE is destructive with an approval gate.
  mcp CONFIG      one adapter for each MCP server that CONFIG names: {"mcpServers": {NAME: {"command", "args", "env"}}}.
                  Each is started and asked for its tools. Every tool is destructive with an approval gate; annotations
                  of the server lower that only with --trust-hints.

The draft denies everything until you write a rule, and permits only tools that read. What was not taken over is listed.

Examples:
  ctx new orders.yaml --from openapi orders.openapi.yaml   draft a pack from an API
  ctx new tools.yaml --from mcp mcp.json                   draft a pack from MCP servers
  ctx new refunds.yaml                                     write a commented pack
  ctx new request.yaml --request                           write a request for it
  ctx new r.yaml --request --safety-mode read_only         write a request that may only read
  ctx new refunds.test.yaml --test                         write tests for it
"""

import os
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean

__all__ = ["add_arguments", "run"]


_MODES = ("stream", "batch", "long_running")
_KINDS = ("openapi", "mcp")
_CEILINGS = ("read_only", "local_write", "network", "delegated", "destructive")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write, such as refunds.yaml")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--request", action="store_true", help="write a request for the pack instead")
    what.add_argument(
        "--from",
        dest="source",
        nargs=2,
        metavar=("KIND", "SOURCE"),
        help="draft the pack from a service: openapi SPEC, or mcp CONFIG",
    )
    what.add_argument("--test", action="store_true", help="write a table of tests for the pack instead")
    parser.add_argument("--mode", metavar="MODE", choices=_MODES, help="with --request: stream, batch or long_running")
    parser.add_argument(
        "--safety-mode",
        metavar="MODE",
        choices=_CEILINGS,
        help="with --request: the ceiling of the run, such as network",
    )
    parser.add_argument("--trust-hints", action="store_true", help="with --from mcp: believe the server's annotations")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.packs.files import is_yaml
    from contextplane.app.packs.template import SCHEMA_PATH, write_template

    if args.file == "-":
        # To every other verb it is standard input: a file of that name could never be read again.
        from contextplane.cli.parser import Usage

        raise Usage("- names no file", hint="ctx new refunds.yaml")
    if args.trust_hints and (args.source is None or args.source[0] != "mcp"):
        from contextplane.cli.parser import Usage

        raise Usage("--trust-hints is for MCP servers", hint="ctx new tools.yaml --from mcp mcp.json --trust-hints")
    if args.request:
        return _write_request(args, output)
    if args.mode is not None or args.safety_mode is not None:
        from contextplane.cli.parser import Usage

        raise Usage("--mode and --safety-mode are for a request", hint="ctx new request.yaml --request --mode batch")
    if args.source is not None:
        return _write_draft(args, output)
    if args.test:
        from contextplane.app.packs.template import write_table_template

        new = write_table_template(args.file)
        output.line(f"{_outcome(new)} {clean(args.file)}. Edit it, then: ctx test {clean(args.file)}")
        output.answer({"file": args.file, "new": new})
        return OK
    new = write_template(args.file)
    output.line(f"{_outcome(new)} {clean(args.file)}. Edit it, then: ctx lint {clean(args.file)}")
    if is_yaml(args.file):
        output.line(f"Editors check it against {clean(os.path.join(os.path.dirname(args.file), SCHEMA_PATH))}")
    output.answer({"file": args.file, "new": new})
    return OK


def _write_request(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.packs.template import describe_request, write_request_template

    mode, ceiling = args.mode or _MODES[0], args.safety_mode or _CEILINGS[-1]
    new = write_request_template(args.file, mode=mode, safety_mode=ceiling)
    output.line(f"{_outcome(new)} {clean(args.file)}. Edit it, then: ctx compile PACK --request {clean(args.file)}")
    implied = describe_request(mode, ceiling)
    for words in implied:
        output.line(f"  {words}.")
    output.answer({"file": args.file, "new": new, "implies": implied})
    return OK


def _write_draft(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.packs.template import write_service_template

    kind, source = args.source
    if kind not in _KINDS:
        from contextplane.cli.parser import Usage

        raise Usage(f"--from takes openapi or mcp, not {kind[:40]!r}", hint="ctx new orders.yaml --from openapi SPEC")
    draft = write_service_template(args.file, kind, source, trust_hints=args.trust_hints)
    amount = "1 capability" if draft.capabilities == 1 else f"{draft.capabilities} capabilities"
    output.line(f"{_outcome(draft.new)} {clean(args.file)}: {amount}. It denies everything until you write a rule.")
    for title, entries in (("Not taken over", draft.left_out), ("Errors left", draft.errors)):
        if entries:
            output.line(f"{title}:")
        for entry in entries:
            output.line(f"  {clean(entry)}")
    output.line(f"Work through its TODOs, then: ctx lint {clean(args.file)}")
    output.answer(
        {
            "file": args.file,
            "new": draft.new,
            "capabilities": draft.capabilities,
            "left_out": draft.left_out,
            "errors": draft.errors,
            "warnings": draft.warnings,
        }
    )
    return OK


def _outcome(new: bool) -> str:  # noqa: FBT001  the answer of the writer
    return "Wrote" if new else "Already there:"
