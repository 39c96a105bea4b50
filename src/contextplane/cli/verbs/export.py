"""Write execution packs, and all that they reach, to one file.

REF is ctx://<hash> or the first digits of a hash. FILE is a plain tar file: 'tar' lists it and takes it
apart, 'ctx import' takes it in. It holds the manifests, their contents, and the packs that they were forked
from; a parent that is not in this store is named. The same packs give the same bytes. A pack of which
something is missing or damaged is refused, and no file is left.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, clean, counted, human_size

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("refs", metavar="REF", nargs="+", help="the execution packs to write")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where to write, - for standard output")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.archiving import export_packs
    from contextplane.cli.naming import named_pack
    from contextplane.cli.opening import opening

    if args.output == "-":
        _must_be_free(screen)
    with opening(screen) as platform:
        packs = [named_pack(ref, platform) for ref in args.refs]
        done = export_packs(platform, packs, args.output)
    # The archive may be on standard output: then people read on the other one.
    tell = screen.note if args.output == "-" else screen.say
    for parent in done.absent:
        tell(f"parents not included  ctx://{parent.hex}  not in this store")
    told = f"{counted(len(done.header.packs), 'pack')}, {counted(done.objects, 'object')}, {human_size(done.size)}"
    tell(f"wrote {told} to {'standard output' if args.output == '-' else clean(args.output)}")
    screen.answer(
        {
            "file": args.output,
            "roots": [f"ctx://{pack.hex}" for pack in done.header.roots],
            "parents": [f"ctx://{pack.hex}" for pack in done.header.parents],
            "parents_not_included": [f"ctx://{pack.hex}" for pack in done.absent],
            "objects": done.objects,
            "size": done.size,
        }
    )
    return OK


def _must_be_free(screen: Screen) -> None:
    """Standard output takes the archive: nothing else may want it, and it is no text to look at."""
    from contextplane.cli.parser import Usage

    if screen.json:
        raise Usage("the archive and the answer both want standard output", hint="ctx export REF -o FILE --json")
    if screen.out.isatty():
        raise Usage("standard output is a terminal", hint="ctx export REF -o FILE")
