"""Make an edited draft or an unfinished recording an execution pack, and print its identity.

A draft must differ from its parent. All its problems are listed together, each with its place. Everything that it
refers to must be in the store; if some of that was changed, the status is 11, and packing or importing the run again
restores it. The parent is kept, the time is set to now, and sizes of inputs are computed from their contents. The same
draft gives the same pack. A draft below .ctx/drafts/ is then removed; any other file is kept.

A recording is rec_<id>; 'ctx log --unfinished' lists them. What it recorded so far becomes the pack, and a process that
still writes to it is refused from then on. If a content is missing or damaged, no pack is made and everything is kept.

Examples:
  ctx finalize .ctx/drafts/3fa9.json      finalize a draft
  ctx finalize rec_0123456789abcdef       finalize a recording
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.render.execution import print_suspicions

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.model.ids import RecordingId

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("draft", metavar="DRAFT|RECORDING", help="an edited draft, - for standard input, or rec_<id>")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.store import open_store

    recording = _recording_id(args.draft)
    with open_store(output) as platform:
        if recording is None:
            answer = _finalize_draft(args.draft, platform, output)
        else:
            answer = _finish_recording(recording, platform, output)
    if not output.json:
        output.out.write(f"{answer['ref']}\n")
    output.answer(answer)
    return OK


def _recording_id(text: str) -> "RecordingId | None":
    """Return the recording that a text names; None if it is the file of a draft."""
    from contextplane.cli.parser import Usage
    from contextplane.model.ids import RecordingId
    from contextplane.model.reference import FORMS, FilePath, InvalidReference, parse_reference

    if text == "-":
        return None
    try:
        reference = parse_reference(text)
    except InvalidReference as error:
        if error.hint == FORMS:
            error.hint = f"write ./{text[:80]} if it is a file; 'ctx log --unfinished' lists recordings"
        raise
    if isinstance(reference.target, RecordingId) and not reference.selector:
        return reference.target
    if isinstance(reference.target, FilePath):
        return None
    raise Usage(f"neither a draft nor a recording: {text[:80]!r}", hint=f"write ./{text[:80]} if it is a file")


def _finalize_draft(path: str, platform: "Platform", output: CommandOutput) -> dict[str, object]:
    from contextplane.app.execution.fork import finalize

    done = finalize(platform, path)
    if not done.new:
        output.note("already finalized; nothing changed")
    return {
        "ref": f"ctx://{done.digest.hex}",
        "parent": f"ctx://{done.manifest.parent.removeprefix('sha256:')}",
        "created": done.manifest.created,
        "new": done.new,
        "removed": done.removed,
    }


def _finish_recording(recording_id: "RecordingId", platform: "Platform", output: CommandOutput) -> dict[str, object]:
    from contextplane.app.execution.record import finish_recording

    recording = finish_recording(platform, recording_id)
    parent, suspects = recording.manifest.parent, recording.suspects
    print_suspicions(output, suspects or (), recording.unsearched or ())
    if not recording.new:
        output.note("this recording was already finalized; nothing changed")
    if suspects is None:
        output.note("warnings about possible secrets were shown then, and are not repeated")
    return {
        "ref": f"ctx://{recording.digest.hex}",
        "recording": recording.id,
        "parent": f"ctx://{parent.removeprefix('sha256:')}" if parent else None,
        "created": recording.manifest.created,
        "new": recording.new,
        "suspects": [{"at": at, "kind": kind} for at, kind in suspects] if suspects is not None else None,
        "unsearched": recording.unsearched,
    }
