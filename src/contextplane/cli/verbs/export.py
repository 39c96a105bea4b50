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
from contextplane.cli.output import CommandOutput, clean, quantity, human_size

if TYPE_CHECKING:
    from contextplane.app.execution.archive import ArchiveExportResult
    from contextplane.app.references import Target

__all__ = ["add_arguments", "export", "run"]

_TOLD = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("refs", metavar="REF", nargs="+", help="the packs to write")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where to write, - for standard output")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.references import HandoffTarget, resolve

    targets = [(ref, resolve(ref)) for ref in args.refs]
    _refuse_versions(targets)
    handoffs = [ref for ref, target in targets if isinstance(target, HandoffTarget)]
    packs = [ref for ref, target in targets if not isinstance(target, HandoffTarget)]
    return export(packs, output, handoffs=handoffs, path=args.output)


def export(packs: list[str], output: CommandOutput, *, handoffs: list[str], path: str) -> int:
    """Write execution packs, and handoff packs, which are named by their ids or their names."""
    if path == "-":
        _must_be_free(output)
    _must_be_a_file(path)
    done = _with_handoffs(packs, handoffs, path, output) if handoffs else _runs(packs, path, output)
    _tell(done, path, output)
    return OK


def _refuse_versions(targets: "list[tuple[str, Target]]") -> None:
    """A version is nothing without the log that it is in, and that is not carried."""
    from contextplane.app.references import NotAPack, VersionTarget

    for ref, target in targets:
        if isinstance(target, VersionTarget):
            raise NotAPack(
                "a version stays where its log is, and is not exported",
                at=ref[:200],
                hint="copy the whole store to take it along; 'ctx show' tells its digest, 'ctx cat DIGEST' its bytes",
            )


def _runs(refs: list[str], path: str, output: CommandOutput) -> "ArchiveExportResult":
    from contextplane.app.execution.archive import export_packs
    from contextplane.app.references import find_run
    from contextplane.cli.store import open_store, progress_bar

    with open_store(output) as platform, progress_bar(output) as bar:
        return export_packs(platform, [find_run(ref, platform) for ref in refs], path, progress=bar)


def _with_handoffs(refs: list[str], handoffs: list[str], path: str, output: CommandOutput) -> "ArchiveExportResult":
    from contextplane.app.execution.archive import export_packs
    from contextplane.app.platform import update_index
    from contextplane.app.references import find_run
    from contextplane.cli.handoff.read import find_pack, handoff_session
    from contextplane.cli.store import progress_bar
    from contextplane.handoff.reader import not_found
    from contextplane.model.reference import HandoffRef
    from contextplane.store.find import index_is_current

    with handoff_session(output) as session:
        meant = [find_pack(handoff, session).pack for handoff in handoffs]
        platform = session.platform
        if platform is None:
            raise not_found(handoffs[0])
        if refs and not index_is_current(platform.catalog, platform.entries):
            update_index(platform)
        packs = [find_run(ref, platform) for ref in refs]
        revisions = [HandoffRef(id=handoff_pack.handoff_id, revision=handoff_pack.revision) for handoff_pack in meant]
        with progress_bar(output) as bar:
            return export_packs(platform, packs, path, handoffs=revisions, progress=bar)


def _tell(done: "ArchiveExportResult", path: str, output: CommandOutput) -> None:
    # The archive may be on standard output: then people read on the other one.
    tell = output.note if path == "-" else output.line
    for parent in done.absent:
        tell(f"parents not included  ctx://{parent.hex}  not in this store")
    packs = len(done.header.packs) + len(done.header.handoffs)
    told = f"{quantity(packs, 'pack')}, {quantity(done.objects, 'object')}, {human_size(done.size)}"
    where = "standard output" if path == "-" else clean(path)
    tell(f"wrote {told} to {where}" if done.new else f"{where} was there before, with the very same {told}")
    for parent in done.header.parents[:_TOLD]:
        tell(f"parents included  ctx://{parent.hex}")
    if len(done.header.parents) > _TOLD:
        tell(f"parents included  {len(done.header.parents) - _TOLD:,} more")
    output.answer(
        {
            "file": path,
            "handoffs": [f"{handoff.id}@{handoff.last.revision}" for handoff in done.header.handoffs],
            "roots": [f"ctx://{pack.hex}" for pack in done.header.roots],
            "parents": [f"ctx://{pack.hex}" for pack in done.header.parents],
            "parents_not_included": [f"ctx://{pack.hex}" for pack in done.absent],
            "objects": done.objects,
            "size": done.size,
            "new": done.new,
        }
    )


def _must_be_a_file(path: str) -> None:
    """What ends like a folder, or is one, is not the name of a file."""
    import os

    from contextplane.cli.parser import Usage

    if path.endswith(os.sep) or os.path.isdir(path):
        raise Usage(f"-o names a folder, not a file: {path[:200]!r}", hint="ctx export REF -o FOLDER/FILE")


def _must_be_free(output: CommandOutput) -> None:
    """Standard output takes the archive: nothing else may want it, and it is no text to look at."""
    from contextplane.cli.parser import Usage

    if output.json:
        raise Usage("the archive and the answer both want standard output", hint="ctx export REF -o FILE --json")
    if output.out.isatty():
        raise Usage("standard output is a terminal", hint="ctx export REF -o FILE")
