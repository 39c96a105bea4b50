"""Print the JSON Schema of a kind of document.

NAME is a kind of document, such as context-pack. Every member has a description, and the schema is closed where the
document is. Editors and other programs check the form of a document with it; 'ctx lint' checks everything. Without
NAME, all kinds are listed. The same files are in the installed package, in contextplane/schemas.

Examples:
  ctx schema                  list all kinds of documents
  ctx schema context-pack     print the schema of context packs
  ctx schema execution-log    print the schema of logs
"""

import sys
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a kind of document (default: list all)")


def run(args: Namespace, output: CommandOutput) -> int:
    return _print_names(output) if args.name is None else _print_schema(args.name, output)


def _print_names(output: CommandOutput) -> int:
    from contextplane.app.schemas import list_schemas

    entries = list_schemas()
    wide = max(len(entry.name) for entry in entries)
    for entry in entries:
        output.entry(entry.name, f"{entry.name:<{wide}}  {entry.version}  {entry.description}")
    output.answer({"schemas": entries})
    return OK


def _print_schema(name: str, output: CommandOutput) -> int:
    import msgspec

    from contextplane.app.schemas import read_schema

    schema = read_schema(name)
    if output.json:
        output.answer(msgspec.json.decode(schema))
    else:
        sys.stdout.write(schema.decode())
    return OK
