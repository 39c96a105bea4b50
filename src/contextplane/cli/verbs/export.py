"""Write packs, and all that they reach, to one file.

REF is ctx://<hash> or the first digits of a hash; or a handoff pack, pk_<id>@3 or pk_<id> for its newest
revision, which is written with all its revisions up to that one. FILE is a plain tar file: 'tar' lists it
and takes it apart, 'ctx import' takes it in. It holds the manifests, their contents, and the packs that they
were forked from; a parent that is not in this store is named. The same packs give the same bytes. A pack of
which something is missing or damaged is refused, and no file is left. A file of that name is never replaced:
unless it has those very bytes already, it is a conflict. Versions of the registry stay where their log is:
copy the whole store to take them along.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean, counted, human_size

if TYPE_CHECKING:
    from contextplane.app.execution.archive import Exported

__all__ = ["add_arguments", "export", "run"]

_TOLD = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("refs", metavar="REF", nargs="+", help="the packs to write")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where to write, - for standard output")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.references import named_handoff

    _refuse_versions(args.refs)
    handoffs = [ref for ref in args.refs if named_handoff(ref) is not None]
    packs = [ref for ref in args.refs if ref not in handoffs]
    return export(packs, screen, handoffs=handoffs, output=args.output)


def export(packs: list[str], screen: Screen, *, handoffs: list[str], output: str) -> int:
    """Write execution packs, and handoff packs, which are named by their ids or their names."""
    if output == "-":
        _must_be_free(screen)
    _must_be_a_file(output)
    done = _with_handoffs(packs, handoffs, output, screen) if handoffs else _runs(packs, output, screen)
    _tell(done, output, screen)
    return OK


def _refuse_versions(refs: list[str]) -> None:
    """A version is nothing without the log that it is in, and that is not carried."""
    from contextplane.cli.references import NotAPack
    from contextplane.cli.registry.act import names_version

    for ref in refs:
        if names_version(ref):
            raise NotAPack(
                "a version stays where its log is, and is not exported",
                at=ref[:200],
                hint="copy the whole store to take it along; 'ctx show' tells its digest, 'ctx cat DIGEST' its bytes",
            )


def _runs(refs: list[str], output: str, screen: Screen) -> "Exported":
    from contextplane.app.execution.archive import export_packs
    from contextplane.cli.open import opening, watching
    from contextplane.cli.references import named_pack

    with opening(screen) as platform, watching(screen) as bar:
        return export_packs(platform, [named_pack(ref, platform) for ref in refs], output, progress=bar)


def _with_handoffs(refs: list[str], handoffs: list[str], output: str, screen: Screen) -> "Exported":
    from contextplane.app.execution.archive import export_packs
    from contextplane.app.platform import bring_in_step
    from contextplane.cli.handoff.read import found, opening_desk
    from contextplane.cli.open import watching
    from contextplane.cli.references import named_pack
    from contextplane.handoff.reader import not_found
    from contextplane.model.reference import HandoffRef
    from contextplane.store.find import in_step

    with opening_desk(screen) as desk:
        meant = [found(handoff, desk).pack for handoff in handoffs]
        platform = desk.platform
        if platform is None:
            raise not_found(handoffs[0])
        if refs and not in_step(platform.catalog, platform.entries):
            bring_in_step(platform)
        packs = [named_pack(ref, platform) for ref in refs]
        revisions = [HandoffRef(id=handoff_pack.handoff_id, revision=handoff_pack.revision) for handoff_pack in meant]
        with watching(screen) as bar:
            return export_packs(platform, packs, output, handoffs=revisions, progress=bar)


def _tell(done: "Exported", output: str, screen: Screen) -> None:
    # The archive may be on standard output: then people read on the other one.
    tell = screen.note if output == "-" else screen.say
    for parent in done.absent:
        tell(f"parents not included  ctx://{parent.hex}  not in this store")
    packs = len(done.header.packs) + len(done.header.handoffs)
    told = f"{counted(packs, 'pack')}, {counted(done.objects, 'object')}, {human_size(done.size)}"
    where = "standard output" if output == "-" else clean(output)
    tell(f"wrote {told} to {where}" if done.new else f"{where} was there before, with the very same {told}")
    for parent in done.header.parents[:_TOLD]:
        tell(f"parents included  ctx://{parent.hex}")
    if len(done.header.parents) > _TOLD:
        tell(f"parents included  {len(done.header.parents) - _TOLD:,} more")
    screen.answer(
        {
            "file": output,
            "handoffs": [f"{handoff.id}@{handoff.last.revision}" for handoff in done.header.handoffs],
            "roots": [f"ctx://{pack.hex}" for pack in done.header.roots],
            "parents": [f"ctx://{pack.hex}" for pack in done.header.parents],
            "parents_not_included": [f"ctx://{pack.hex}" for pack in done.absent],
            "objects": done.objects,
            "size": done.size,
            "new": done.new,
        }
    )


def _must_be_a_file(output: str) -> None:
    """What ends like a folder, or is one, is not the name of a file."""
    import os

    from contextplane.cli.parser import Usage

    if output.endswith(os.sep) or os.path.isdir(output):
        raise Usage(f"-o names a folder, not a file: {output[:200]!r}", hint="ctx export REF -o FOLDER/FILE")


def _must_be_free(screen: Screen) -> None:
    """Standard output takes the archive: nothing else may want it, and it is no text to look at."""
    from contextplane.cli.parser import Usage

    if screen.json:
        raise Usage("the archive and the answer both want standard output", hint="ctx export REF -o FILE --json")
    if screen.out.isatty():
        raise Usage("standard output is a terminal", hint="ctx export REF -o FILE")
