"""Begin a context pack: a small, complete one to edit.

It is the refund workflow of a support team: one intent, one decision, two tools that read and one that writes
under approval. FILE ending in .yaml or .yml has comments on every layer; any other is JSON. An existing
file is never replaced. Judge what you made of it with 'ctx lint FILE'.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, clean

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write it, such as refunds.yaml")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.beginning import begin_pack

    new = begin_pack(args.file)
    screen.say(f"{'Wrote' if new else 'It is there:'} {clean(args.file)}. Edit it, then: ctx lint {clean(args.file)}")
    screen.answer({"file": args.file, "new": new})
    return OK
