"""Begin a context pack: a small, complete one to edit.

It is the refund workflow of a support team: one intent, one decision, two tools that read and one that writes
under approval. FILE ending in .yaml or .yml has comments on every layer; any other is JSON. An existing
file is never replaced. Judge what you made of it with 'ctx lint FILE'. --request writes a request for that
pack instead, with all that is compiled with it: 'ctx compile PACK --request FILE'.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write it, such as refunds.yaml")
    parser.add_argument("--request", action="store_true", help="begin a request to compile the pack with")


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
