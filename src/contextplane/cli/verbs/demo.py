"""Watch the product at work: the refund story, told on a real store in a folder of its own.

The folder is temporary unless you name one with --keep, which must not exist yet; look around in it
afterwards with 'ctx log', 'ctx show', 'ctx diff' and 'ctx fsck'.
"""

import os
from argparse import ArgumentParser, Namespace
from typing import ClassVar

from contextplane.cli.exit import OK
from contextplane.cli.options import complete_folders
from contextplane.cli.output import CommandOutput, clean
from contextplane.errors import ContextPlaneError, Family

__all__ = ["FolderNotMade", "add_arguments", "run"]


class FolderNotMade(ContextPlaneError):
    """A folder that should be made is there already, or cannot be made."""

    code: ClassVar[str] = "folder_not_made"
    family: ClassVar[Family] = "conflict"


def add_arguments(parser: ArgumentParser) -> None:
    complete_folders(parser.add_argument("--keep", metavar="FOLDER", help="tell it in this new folder, and leave it"))


def run(args: Namespace, output: CommandOutput) -> int:
    import tempfile

    if args.keep is None:
        with tempfile.TemporaryDirectory(prefix="ctx-demo-") as folder:
            status = _tell(folder, output)
        output.line("\nThat folder is gone again. 'ctx demo --keep FOLDER' leaves one to look around in.")
        return status
    try:
        os.mkdir(args.keep)
    except OSError as error:
        raise FolderNotMade(
            error.strerror or str(error), at=args.keep, hint="name a folder that can be made"
        ) from error
    from contextplane.app.demo.tour import recorded_runs

    status = _tell(os.path.abspath(args.keep), output)
    first, later = (digest.hex[:4] for digest in recorded_runs(os.path.abspath(args.keep)))
    output.line(f"\nLook around: cd {clean(args.keep)}; then ctx log, ctx show {first}, ctx diff {first} {later}")
    return status


def _tell(folder: str, output: CommandOutput) -> int:
    from contextplane.app.demo.tour import tour

    chapters = []
    for number, chapter in enumerate(tour(folder), 1):
        chapters.append(chapter)
        output.line(("" if number == 1 else "\n") + output.paint("bold", f"{number}. {chapter.title}"))
        for line in chapter.lines:
            output.line(f"   {clean(line)}")
    output.answer(chapters)
    return OK
