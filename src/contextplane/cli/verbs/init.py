"""Make a store here, or adopt the one that is here.

A store that another program made in the same layout is taken over as it is: its objects and packs stay
where they are, and that program can go on using it. Running this twice does no harm.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.options import complete_folders
from contextplane.cli.output import CommandOutput, clean

__all__ = ["add_arguments", "run"]

_MESSAGES = {
    "created": "Made a store at {path}",
    "adopted": "Adopted the store at {path}: what was in it is there unchanged",
    "completed": "Completed the unfinished store at {path}",
    "present": "There is a store at {path} already: nothing changed",
}


def add_arguments(parser: ArgumentParser) -> None:
    folder = parser.add_argument(
        "folder", nargs="?", help="the folder that gets a .ctx (default: CTX_DIR, else this one)"
    )
    complete_folders(folder)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.init import init
    from contextplane.app.settings import from_environment

    done = init(from_environment(), args.folder)
    output.line(_MESSAGES[done.what].format(path=clean(done.path)))
    output.answer(done)
    return OK
