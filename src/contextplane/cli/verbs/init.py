"""Create a store in this folder, or adopt an existing one.

The store is the folder .ctx. A store that another program made in the same layout is adopted unchanged: its objects
and packs stay where they are, and that program can keep using it. Running 'ctx init' again changes nothing.

--trust-root names what you got by another way than the store: the id of a key that signed its keyring, or a file with
a checkpoint of its registry. A store that does not show it is refused. It is kept outside of the store, for this user.

Examples:
  ctx init                           create .ctx in this folder
  ctx init project                   create project/.ctx
  ctx init --trust-root good.ckpt    and hold its registry to that checkpoint
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean

__all__ = ["add_arguments", "run"]

_MESSAGES = {
    "created": "Created a store at {path}",
    "adopted": "Adopted the store at {path}, unchanged",
    "completed": "Completed the unfinished store at {path}",
    "present": "There is already a store at {path}: nothing changed",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", help="the folder for .ctx (default: CTX_DIR, else this folder)")
    parser.add_argument(
        "--trust-root",
        action="append",
        default=[],
        metavar="KEY_ID|FILE",
        help="the id of an owner's key, or a checkpoint, that the store must show; may be repeated",
    )


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.init import init
    from contextplane.app.settings import from_environment

    done = init(from_environment(), args.folder, args.trust_root)
    output.line(_MESSAGES[done.what].format(path=clean(done.path)))
    if args.trust_root:
        output.line("The trust root is stored: 'ctx status' shows it")
    output.answer(done)
    return OK
