"""Import packs from a file that 'ctx export' wrote, after verifying it.

Every object must match its digest, every pack must be complete, and the file may hold nothing else; otherwise nothing
is imported. A compressed file is refused: decompress it first. Importing a file again changes nothing and says so,
except that it restores objects that are missing or damaged here, and lists them.

A handoff pack is imported with all its revisions. If another revision with the same number is here, the status is 14
and nothing is imported.

A published version of another store (ctx export id@X.Y.Z) is verified against a trust root for that store:
--trust-root, which is remembered for it, else the one of this store ('ctx init --trust-root', CTX_TRUST_ROOT). It can
then be compiled, run and shown here, and not be acted upon. A file that is older than one that was imported before from
the same store is refused.

Examples:
  ctx import runs.tar    import the packs of a file
  ctx import -           import from standard input: packs, or a published version
  ctx import support.json --trust-root KEY_ID    import a published version
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, human_size, quantity

if TYPE_CHECKING:
    from contextplane.app.execution.archive import ArchiveImportResult
    from contextplane.model.reference import HandoffRef

__all__ = ["add_arguments", "run"]

_BUNDLE = b'{"checkpoint":'
"""How the file of a published version begins. An archive of packs begins with a name."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to import, - for standard input")
    parser.add_argument(
        "--trust-root",
        metavar="KEY_ID|FILE",
        action="append",
        default=[],
        help="for a published version: the trust root for its store; it is remembered",
    )


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.documents import first_bytes
    from contextplane.app.execution.archive import import_archive
    from contextplane.cli.render.execution import repair_json, repair_summary
    from contextplane.cli.store import open_store, progress_bar

    first = first_bytes(args.file, len(_BUNDLE))
    taken = first if args.file == "-" else b""
    if first == _BUNDLE:
        from contextplane.cli.registry.mirror import import_version

        return import_version(args, output, taken)
    with progress_bar(output) as bar:
        result = import_archive(
            args.file, lambda header: open_store(output, handoffs=bool(header.handoffs)), bar, taken
        )
    for pack in result.header.packs:
        if output.quiet or pack in result.new_packs:
            output.entry(f"ctx://{pack.hex}", f"new  ctx://{pack.hex}")
    for parent in result.absent:
        output.line(f"parents not included  ctx://{parent.hex}  not in this store, either")
    for ref in _revisions_here(result) if output.quiet else result.new_handoffs:
        output.entry(str(ref), f"new  {ref}")
    for ref in result.older_handoffs:
        output.failure_line(f"not imported  {ref}  the revisions here begin later")
    packs = len(result.header.packs) + len(result.header.handoffs)
    totals = f"{quantity(packs, 'pack')}, {quantity(result.objects, 'object')}, {human_size(result.size)}"
    if result.new_packs or result.new_objects or result.new_handoffs:
        added = [quantity(len(result.new_packs), "pack")] if result.new_packs or not result.new_handoffs else []
        added += [quantity(len(result.new_handoffs), "revision")] if result.new_handoffs else []
        new = f"{', '.join(added)} and {quantity(result.new_objects, 'object')}"
        healed = f"; {repair_summary(result.put_back)}" if result.put_back else ""
        output.line(f"verified {totals}; new here: {new}{healed}")
    elif result.put_back:
        output.line(f"verified {totals}; nothing new; {repair_summary(result.put_back)}")
    else:
        output.line(f"verified {totals}; nothing new, complete")
    output.answer(
        {
            "roots": [f"ctx://{pack.hex}" for pack in result.header.roots],
            "parents": [f"ctx://{pack.hex}" for pack in result.header.parents],
            "parents_not_included": [f"ctx://{pack.hex}" for pack in result.absent],
            "handoffs": [f"{handoff.id}@{handoff.last.revision}" for handoff in result.header.handoffs],
            "new_handoffs": [str(ref) for ref in result.new_handoffs],
            "handoffs_not_taken": [str(ref) for ref in result.older_handoffs],
            "new_packs": [f"ctx://{pack.hex}" for pack in result.new_packs],
            "new_objects": result.new_objects,
            "put_back": repair_json(result.put_back),
            "objects": result.objects,
            "size": result.size,
        }
    )
    return OK


def _revisions_here(result: "ArchiveImportResult") -> "list[HandoffRef]":
    """Return every revision of the archive that is in the store now."""
    from contextplane.model.reference import HandoffRef

    revisions = [
        HandoffRef(id=handoff.id, revision=kept.revision)
        for handoff in result.header.handoffs
        for kept in handoff.revisions
    ]
    return [ref for ref in revisions if ref not in result.older_handoffs]
