"""Write a small, complete context pack to start from.

It describes the refund workflow of a support team: one intent, one decision, two tools that read, and one tool that
writes with approval. A FILE that ends in .yaml or .yml gets comments on every layer; any other FILE is JSON. An
existing FILE is never replaced. Edit the pack, then check it with 'ctx lint FILE'.

The first line of a YAML pack names its JSON Schema, which editors read to complete and check the file. A copy of the
schema is written beside the pack, to .ctx-schemas/context-pack.v2.schema.json; only 'ctx new' updates it.

--request writes a request for that pack instead, to compile it with.

Examples:
  ctx new refunds.yaml              write a commented pack
  ctx new request.yaml --request    write a request for it
"""

import os
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write, such as refunds.yaml")
    parser.add_argument("--request", action="store_true", help="write a request for the pack instead")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.packs.files import is_yaml
    from contextplane.app.packs.template import SCHEMA_PATH, write_request_template, write_template

    if args.file == "-":
        # To every other verb it is standard input: a file of that name could never be read again.
        from contextplane.cli.parser import Usage

        raise Usage("- names no file", hint="ctx new refunds.yaml")
    new = write_request_template(args.file) if args.request else write_template(args.file)
    done, then = "Wrote" if new else "Already there:", "ctx compile PACK --request" if args.request else "ctx lint"
    output.line(f"{done} {clean(args.file)}. Edit it, then: {then} {clean(args.file)}")
    if is_yaml(args.file) and not args.request:
        output.line(f"Editors check it against {clean(os.path.join(os.path.dirname(args.file), SCHEMA_PATH))}")
    output.answer({"file": args.file, "new": new})
    return OK
