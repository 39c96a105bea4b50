"""Make an edited draft, or an unfinished recording, an execution pack, and print its identity.

What is wrong with a draft is told together, each with its place: its JSON as far as that can be read, its
form, and what it refers to, which must be in the store; when some of that was tampered with, the status is
11, and packing or importing the run heals it. Its parent is kept, its time becomes the time now, the sizes
of inputs are those of their contents. Something must have been changed. The same draft gives the same pack;
finalizing it again says so. A draft below .ctx/drafts/ is removed at the end, one that lies elsewhere is
left.

rec_<id> names a recording ('ctx log --unfinished' lists them): what it recorded so far becomes the pack,
and a process that still records it is refused from then on. While a content of it is missing or damaged,
nothing is made and everything is kept. A file is what has a / or an extension in its name.
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
    parser.add_argument(
        "draft", metavar="DRAFT|RECORDING", help="the edited draft, - for standard input; or an unfinished recording"
    )


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.store import open_store

    recording = _recording(args.draft)
    with open_store(output) as platform:
        told = _draft(args.draft, platform, output) if recording is None else _finish(recording, platform, output)
    if not output.json:
        output.out.write(f"{told['ref']}\n")
    output.answer(told)
    return OK


def _recording(text: str) -> "RecordingId | None":
    """The recording that was named, None for a draft."""
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


def _draft(path: str, platform: "Platform", output: CommandOutput) -> dict[str, object]:
    from contextplane.app.execution.fork import finalize

    done = finalize(platform, path)
    if not done.new:
        output.note("this very draft was finalized before; nothing changed")
    return {
        "ref": f"ctx://{done.digest.hex}",
        "parent": f"ctx://{done.manifest.parent.removeprefix('sha256:')}",
        "created": done.manifest.created,
        "new": done.new,
        "removed": done.removed,
    }


def _finish(recording_id: "RecordingId", platform: "Platform", output: CommandOutput) -> dict[str, object]:
    from contextplane.app.execution.record import recording_context
    from contextplane.audit.load import load_pack
    from contextplane.record.recorder import Recording

    recording = Recording.resume(recording_context(platform), recording_id)
    new = recording.digest is None
    manifest = load_pack(recording.finish(), platform.objects).manifest
    print_suspicions(output, recording.suspects, recording.unsearched)
    if not new:
        output.note("this recording was finished before; nothing changed")
    if not recording.remembered:
        output.note("what in it looks like a secret was told then, and is not known any more")
    return {
        "ref": recording.reference,
        "recording": recording.id,
        "parent": f"ctx://{manifest.parent.removeprefix('sha256:')}" if manifest.parent else None,
        "created": manifest.created,
        "new": new,
        "suspects": [{"at": at, "kind": kind} for at, kind in recording.suspects] if recording.remembered else None,
        "unsearched": recording.unsearched if recording.remembered else None,
    }
