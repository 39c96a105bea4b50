"""Write a small, complete context pack to start from.

It describes the refund workflow of a support team: one intent, one decision, two tools that read, and one tool that
writes with approval. A FILE that ends in .yaml or .yml gets comments on every layer; any other FILE is JSON. Existing
files are never replaced. Edit the pack, then check it with 'ctx lint FILE'.

--request writes a request for that pack instead, to compile it with.

Examples:
  ctx new refunds.yaml              write a commented pack
  ctx new request.yaml --request    write a request for it
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write, such as refunds.yaml")
    parser.add_argument("--request", action="store_true", help="write a request for the pack instead")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.packs.template import write_request_template, write_template

    if args.file == "-":
        # To every other verb it is standard input: a file of that name could never be read again.
        from contextplane.cli.parser import Usage

        raise Usage("- names no file", hint="ctx new refunds.yaml")
    new = write_request_template(args.file) if args.request else write_template(args.file)
    then = "ctx compile PACK --request" if args.request else "ctx lint"
    output.line(f"{'Wrote' if new else 'It is there:'} {clean(args.file)}. Edit it, then: {then} {clean(args.file)}")
    output.answer({"file": args.file, "new": new})
    return OK
