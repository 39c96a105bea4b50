"""Store an agent's log as an execution pack, and print its identity.

LOG is a JSON file, or - for standard input:
  model {identifier, parameters}, system_prompt, prompts [{role, content}],
  inputs [{name, content | content_base64 | path}],
  steps [{index, type, tool, parameters, output, deterministic, timestamp}],
  outputs [{name, content | content_base64 | path}],
  environment {os, runtime, tool_versions}, created
A path is read below the folder of the log (or --root), and nowhere else. The same log gives the same
pack; packing it again says so. What looks like a secret is stored as it is, and told. --sidecars writes,
for every output whose file lies at its name below the same folder, a file that 'ctx verify' checks it by.
"""

import os
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.parsing import complete_folders
from contextplane.cli.screen import Screen, clean

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="the log to pack, - for standard input")
    parser.add_argument("--sidecars", action="store_true", help="write FILE.ctx.json beside the outputs that lie there")
    parser.add_argument("--parent", metavar="REF", help="the execution pack that this run was forked from")
    complete_folders(
        parser.add_argument("--root", metavar="FOLDER", help="where paths in the log lie (default: beside it)")
    )


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.documents import document
    from contextplane.app.packing import pack_log
    from contextplane.app.sidecars import write_sidecars
    from contextplane.cli.naming import named_pack
    from contextplane.cli.opening import opening

    root = args.root or ("." if args.log == "-" else os.path.dirname(args.log) or ".")
    with opening(screen) as platform, document(args.log) as log:
        parent = named_pack(args.parent, platform) if args.parent else None
        packed = pack_log(platform, log, root=root, parent=parent)
        beside = write_sidecars(platform, packed, root) if args.sidecars else None
    for at, kind in packed.suspects:
        screen.note(f"{clean(at)} looks like it holds a secret ({kind}); it was stored as it is")
    for path in beside.kept if beside else ():
        screen.note(f"{clean(path)} is of another pack, and was left as it is")
    if not packed.new:
        screen.note("this very run was packed before; nothing changed")
    if not screen.json:
        screen.out.write(f"ctx://{packed.digest.hex}\n")
    screen.answer(
        {
            "ref": f"ctx://{packed.digest.hex}",
            "new": packed.new,
            "sidecars": beside.written if beside else (),
            "suspects": [{"at": at, "kind": kind} for at, kind in packed.suspects],
        }
    )
    return OK
