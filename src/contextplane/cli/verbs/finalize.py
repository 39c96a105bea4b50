"""Make an edited draft an execution pack, and print its identity.

Everything that is wrong with the draft is told at once, each with its place. Its parent is kept, its time
becomes the time now, the sizes of inputs are those of their contents. Everything it refers to must be in
the store, and something must have been changed. A draft below .ctx/drafts/ is removed at the end, one that
lies elsewhere is left.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("draft", metavar="DRAFT", help="the edited draft, - for standard input")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.forking import finalize
    from contextplane.cli.opening import opening

    with opening(screen) as platform:
        done = finalize(platform, args.draft)
    if not screen.json:
        screen.out.write(f"ctx://{done.digest.hex}\n")
    screen.answer(
        {
            "ref": f"ctx://{done.digest.hex}",
            "parent": f"ctx://{done.manifest.parent.removeprefix('sha256:')}",
            "created": done.manifest.created,
            "removed": done.removed,
        }
    )
    return OK
