"""Take packs from a file that 'ctx export' wrote, verified.

Every object must have the bytes that its name says, every pack must be there with all that it reaches, and
nothing else may be in the file: otherwise nothing of it is taken. A compressed file is refused: decompress
it first. Taking the same file again changes nothing and says so, except that it puts back what was missing
or damaged here, which is told.
A handoff pack comes with all its revisions, into the store of handoff packs; a revision that is here already
is known, and when it is another one of the same number the status is 14, and nothing is taken.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, quantity, human_size

if TYPE_CHECKING:
    from contextplane.app.execution.archive import ArchiveImportResult
    from contextplane.model.reference import HandoffRef

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to take, - for standard input")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.execution.archive import import_archive
    from contextplane.cli.store import open_store, progress_bar
    from contextplane.cli.render.execution import repair_json, repair_summary

    with progress_bar(output) as bar:
        done = import_archive(args.file, lambda header: open_store(output, handoffs=bool(header.handoffs)), bar)
    for pack in done.header.packs:
        if output.quiet or pack in done.new_packs:
            output.entry(f"ctx://{pack.hex}", f"new  ctx://{pack.hex}")
    for parent in done.absent:
        output.line(f"parents not included  ctx://{parent.hex}  not in this store either")
    for ref in _here(done) if output.quiet else done.new_handoffs:
        output.entry(str(ref), f"new  {ref}")
    for ref in done.older_handoffs:
        output.failure_line(f"not taken  {ref}  what is here of this pack begins later")
    packs = len(done.header.packs) + len(done.header.handoffs)
    whole = f"{quantity(packs, 'pack')}, {quantity(done.objects, 'object')}, {human_size(done.size)}"
    if done.new_packs or done.new_objects or done.new_handoffs:
        came = [quantity(len(done.new_packs), "pack")] if done.new_packs or not done.new_handoffs else []
        came += [quantity(len(done.new_handoffs), "revision")] if done.new_handoffs else []
        new = f"{', '.join(came)} and {quantity(done.new_objects, 'object')}"
        healed = f"; {repair_summary(done.put_back)}" if done.put_back else ""
        output.line(f"verified {whole}; new here: {new}{healed}")
    elif done.put_back:
        output.line(f"verified {whole}; nothing new; {repair_summary(done.put_back)}")
    else:
        output.line(f"verified {whole}; nothing new: all of it is here")
    output.answer(
        {
            "roots": [f"ctx://{pack.hex}" for pack in done.header.roots],
            "parents": [f"ctx://{pack.hex}" for pack in done.header.parents],
            "parents_not_included": [f"ctx://{pack.hex}" for pack in done.absent],
            "handoffs": [f"{handoff.id}@{handoff.last.revision}" for handoff in done.header.handoffs],
            "new_handoffs": [str(ref) for ref in done.new_handoffs],
            "handoffs_not_taken": [str(ref) for ref in done.older_handoffs],
            "new_packs": [f"ctx://{pack.hex}" for pack in done.new_packs],
            "new_objects": done.new_objects,
            "put_back": repair_json(done.put_back),
            "objects": done.objects,
            "size": done.size,
        }
    )
    return OK


def _here(done: "ArchiveImportResult") -> "list[HandoffRef]":
    """Every revision of a handoff pack that came and is here now."""
    from contextplane.model.reference import HandoffRef

    came = [
        HandoffRef(id=handoff.id, revision=kept.revision)
        for handoff in done.header.handoffs
        for kept in handoff.revisions
    ]
    return [ref for ref in came if ref not in done.older_handoffs]
