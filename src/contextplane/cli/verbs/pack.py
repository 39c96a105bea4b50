"""Store an agent's log as an execution pack, and print its identity.

LOG is a JSON file, or - for standard input:
  model {identifier, parameters}, system_prompt, prompts [{role, content}],
  inputs [{name, content | content_base64 | path | handoff}],
  steps [{index, type, tool, parameters, output, deterministic, timestamp}],
  outputs [{name, content | content_base64 | path}],
  environment {os, runtime, tool_versions}, created
It must tell the model's identifier, the system prompt, the os and the runtime; of a step its type and its
tool (reasoning has none), of an output its name. Times are as in 2026-05-04T09:31:42Z; created is by
default the last timestamp of a step.
A path is read below the folder of the log (or --root), and nowhere else, nor from a store there. A handoff
is pk_<id>@3, a finalized revision of a handoff pack: its very bytes are the input, and their digest is that
of the revision.
What is wrong with a log is told together: its JSON as far as that can be read, its form and its contents;
of more than ten such places --json lists all.
The same log gives the same pack; packing it again says so, and puts back what of it was missing or damaged.
What looks like a secret is stored as it is, and told; of each content the first 256 KiB are searched for
that, and contents of which there is more are told too.
--sidecars writes, for every output whose file lies at its name below the same folder with the very bytes of
the output, FILE.ctx.json, which 'ctx verify FILE' checks it by. The sidecar of another run is replaced. A
FILE.ctx.json that is no sidecar, or to which people added something, is left alone. A file with other bytes
gets no sidecar, and keeps the one it has. Each such file is named; the pack is stored all the same, and the
status is 1.
"""

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import FAILED, OK
from contextplane.cli.options import complete_folders, folder
from contextplane.cli.output import CommandOutput, clean, quantity

if TYPE_CHECKING:
    from contextplane.app.execution.pack import PackResult
    from contextplane.app.execution.sidecars import WrittenSidecars
    from contextplane.app.platform import Platform
    from contextplane.model.ids import Digest

__all__ = ["add_arguments", "run"]

_LISTED = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="the log to pack, - for standard input")
    parser.add_argument("--sidecars", action="store_true", help="write FILE.ctx.json beside the outputs that lie there")
    parser.add_argument("--parent", metavar="REF", help="the execution pack that this run was forked from")
    complete_folders(
        parser.add_argument(
            "--root", type=folder, metavar="FOLDER", help="where paths in the log lie (default: beside it)"
        )
    )


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.documents import open_document
    from contextplane.app.execution.pack import pack_log
    from contextplane.cli.output import has_time
    from contextplane.cli.render.execution import locate_log_errors, print_suspicions, repair_json, repair_summary
    from contextplane.cli.store import open_store, progress_bar

    root = args.root or ("." if args.log == "-" else os.path.dirname(args.log) or ".")
    with open_store(output) as platform, open_document(args.log) as log:
        parent = _parent(args.parent, platform) if args.parent else None
        with locate_log_errors(args.log, root), progress_bar(output) as bar:
            packed = pack_log(platform, log, root=root, parent=parent, progress=bar)
        sidecars = _write_sidecars(platform, packed, root) if args.sidecars else None
    print_suspicions(output, packed.suspects, packed.unsearched)
    if packed.new and not has_time(packed.manifest.created):
        output.note("the log tells no time (give created, or a timestamp of a step)")
    if not packed.new or packed.put_back:
        repairs = repair_summary(packed.put_back) if packed.put_back else "all of it is here"
        output.note(f"this very run was packed before; {repairs}")
    if sidecars:
        _note_sidecars(sidecars, root, output)
    if not output.json:
        output.out.write(f"ctx://{packed.digest.hex}\n")
    output.answer(
        {
            "ref": f"ctx://{packed.digest.hex}",
            "new": packed.new,
            "put_back": repair_json(packed.put_back),
            "created": packed.manifest.created,
            "tells_time": has_time(packed.manifest.created),
            "sidecars": sidecars.written if sidecars else (),
            "sidecars_replaced": sidecars.replaced if sidecars else (),
            "sidecars_kept": sidecars.kept if sidecars else (),
            "sidecars_unwritten": sidecars.unwritten if sidecars else (),
            "outputs_absent": sidecars.absent if sidecars else (),
            "suspects": [{"at": at, "kind": kind} for at, kind in packed.suspects],
            "unsearched": packed.unsearched,
        }
    )
    for error in sidecars.failed if sidecars else ():
        output.error(error)
    return FAILED if sidecars and sidecars.failed else OK


def _write_sidecars(platform: "Platform", packed: "PackResult", root: str) -> "WrittenSidecars":
    from contextplane.app.execution.sidecars import write_sidecars

    return write_sidecars(platform, packed, root)


def _note_sidecars(sidecars: "WrittenSidecars", root: str, output: CommandOutput) -> None:
    """Note which sidecars were written, and which outputs have no file; the JSON lists all of them."""
    for path in sidecars.written[:_LISTED]:
        replaced = ", where one of another run was" if path in sidecars.replaced else ""
        output.note(f"wrote {clean(path)}{replaced}")
    if len(sidecars.written) > _LISTED:
        output.note(f"wrote {quantity(len(sidecars.written) - _LISTED, 'more sidecar')}")
    absent = ", ".join(map(clean, sidecars.absent[:_LISTED]))
    more = f" and {len(sidecars.absent) - _LISTED:,} more" if len(sidecars.absent) > _LISTED else ""
    if sidecars.absent:
        output.note(f"no sidecar for what does not lie below {clean(root)}: {absent}{more}")
    elif not sidecars.written and not sidecars.failed:
        output.note("no sidecar: this run put out no file")


def _parent(text: str, platform: "Platform") -> "Digest":
    """Return the pack that a text names. It is loaded: a run is not forked from one that is damaged."""
    from contextplane.app.execution.load import load_run

    return load_run(platform, text).digest
