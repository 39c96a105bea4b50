"""Store an agent's log as an execution pack, and print its identity.

LOG is a JSON file, or - for standard input:
  model          {identifier, parameters}
  system_prompt  text
  prompts        [{role, content}]
  inputs         [{name, content | content_base64 | path | handoff}]
  steps          [{index, type, tool, parameters, output, deterministic, timestamp}]
  outputs        [{name, content | content_base64 | path}]
  environment    {os, runtime, tool_versions}
  created        a time such as 2026-05-04T09:31:42Z (default: the last timestamp of a step)

Required are the model's identifier, the system prompt, the os and the runtime; the type and tool of each step
(reasoning has no tool); and the name of each output. A path is read below the folder of the log, or below --root, and
never from a store. A handoff is pk_<id>@3, a finalized revision of a handoff pack: its bytes are the input.

All problems of a log are listed together; beyond ten, --json lists the rest. The same log always gives the same pack.
Packing it again says so, and restores objects that were missing or damaged. Contents that look like secrets are
stored, with a warning. The first 256 KiB of each content are searched for them; longer contents are named.

--sidecars writes FILE.ctx.json beside each output file that has the recorded bytes; 'ctx verify FILE' checks the file
by it. It replaces the sidecar of another run. It skips, names, and ends with status 1 for:
  - a file with other bytes
  - a FILE.ctx.json that is not a sidecar, or that was edited

Examples:
  ctx pack run.json                     store a log
  ctx pack run.json --sidecars          and write sidecars of its outputs
  ctx pack next.json --parent 3fa9      store a run that was forked from 3fa9
"""

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import FAILED, OK
from contextplane.cli.options import folder
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
    parser.add_argument("--sidecars", action="store_true", help="write FILE.ctx.json beside each output file")
    parser.add_argument("--parent", metavar="REF", help="the execution pack that this run was forked from")
    parser.add_argument(
        "--root", type=folder, metavar="FOLDER", help="the folder for paths in the log (default: its own)"
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
        output.note("the log has no time (add created, or the timestamp of a step)")
    if not packed.new or packed.put_back:
        repairs = repair_summary(packed.put_back) if packed.put_back else "complete"
        output.note(f"already packed, {repairs}")
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
        replaced = ", replacing the sidecar of another run" if path in sidecars.replaced else ""
        output.note(f"wrote {clean(path)}{replaced}")
    if len(sidecars.written) > _LISTED:
        output.note(f"wrote {quantity(len(sidecars.written) - _LISTED, 'more sidecar')}")
    absent = ", ".join(map(clean, sidecars.absent[:_LISTED]))
    more = f" and {len(sidecars.absent) - _LISTED:,} more" if len(sidecars.absent) > _LISTED else ""
    if sidecars.absent:
        output.note(f"no sidecar for outputs that are not below {clean(root)}: {absent}{more}")
    elif not sidecars.written and not sidecars.failed:
        output.note("no sidecar: this run has no output files")


def _parent(text: str, platform: "Platform") -> "Digest":
    """Return the pack that a text names. It is loaded: a run is not forked from one that is damaged."""
    from contextplane.app.execution.load import load_run

    return load_run(platform, text).digest
