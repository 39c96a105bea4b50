"""Run a guided tour of one refund, in a real store in its own folder.

The tour shows:
  - a contract, and what it compiles to
  - its release, with reviews and signatures
  - two runs, and how they differ
  - a handoff between two agents
  - tampering, and how it is detected

The folder is temporary unless --keep names one, which must not exist yet. It then holds the store and every file that
the tour names. Explore it with 'ctx packs', 'ctx log', 'ctx diff' and 'ctx handoff list'.

Examples:
  ctx demo                 run it in a temporary folder
  ctx demo --keep tour     keep the folder to explore it
"""

import os
from argparse import ArgumentParser, Namespace
from typing import ClassVar

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.errors import ContextPlaneError, Family

__all__ = ["FolderNotMade", "add_arguments", "run"]


class FolderNotMade(ContextPlaneError):
    """A folder that should be made is there already, or cannot be made."""

    code: ClassVar[str] = "folder_not_made"
    family: ClassVar[Family] = "conflict"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="FOLDER", help="run in this new folder, and keep it")


def run(args: Namespace, output: CommandOutput) -> int:
    import tempfile

    if args.keep is None:
        with tempfile.TemporaryDirectory(prefix="ctx-demo-") as folder:
            status = _print_chapters(folder, output)
        output.line("\nThe temporary folder is removed. 'ctx demo --keep FOLDER' keeps it to explore.")
        return status
    try:
        os.mkdir(args.keep)
    except OSError as error:
        raise FolderNotMade(
            error.strerror or str(error), at=args.keep, hint="name a new folder, in one that exists"
        ) from error
    from contextplane.app.demo.tour import recorded_runs

    status = _print_chapters(os.path.abspath(args.keep), output)
    first, later = (digest.hex[:4] for digest in recorded_runs(os.path.abspath(args.keep)))
    output.line(f"\nLook around: cd {clean(args.keep)}; then ctx log, ctx show {first}, ctx diff {first} {later}")
    return status


def _print_chapters(folder: str, output: CommandOutput) -> int:
    from contextplane.app.demo.tour import tour

    chapters = []
    for number, chapter in enumerate(tour(folder), 1):
        chapters.append(chapter)
        output.line(("" if number == 1 else "\n") + output.paint("bold", f"{number}. {chapter.title}"))
        for line in chapter.lines:
            output.line(f"   {clean(line)}")
    output.answer(chapters)
    return OK
