"""Take execution packs from a file that 'ctx export' wrote, verified.

Every object must have the bytes that its name says, every pack must be there with all that it reaches, and
nothing else may be in the file: otherwise nothing of it is taken. A compressed file is refused: decompress
it first. Taking the same file again changes nothing and says so.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, counted, human_size

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to take, - for standard input")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.archiving import import_packs
    from contextplane.cli.opening import opening

    with opening(screen) as platform:
        done = import_packs(platform, args.file)
    for pack in done.new_packs:
        screen.say(f"new  ctx://{pack.hex}")
    for parent in done.absent:
        screen.say(f"parents not included  ctx://{parent.hex}  not in this store either")
    whole = f"{counted(len(done.header.packs), 'pack')}, {counted(done.objects, 'object')}, {human_size(done.size)}"
    if done.new_packs or done.new_objects:
        new = f"{counted(len(done.new_packs), 'pack')} and {counted(done.new_objects, 'object')}"
        screen.say(f"verified {whole}; new here: {new}")
    else:
        screen.say(f"verified {whole}; nothing new: all of it was here before")
    screen.answer(
        {
            "roots": [f"ctx://{pack.hex}" for pack in done.header.roots],
            "parents": [f"ctx://{pack.hex}" for pack in done.header.parents],
            "parents_not_included": [f"ctx://{pack.hex}" for pack in done.absent],
            "new_packs": [f"ctx://{pack.hex}" for pack in done.new_packs],
            "new_objects": done.new_objects,
            "objects": done.objects,
            "size": done.size,
        }
    )
    return OK
