"""Begin a draft from a recorded run.

The draft is a new JSON file below .ctx/drafts/, a copy of the run's manifest with the run as its parent. Edit
it, then make it a pack with 'ctx finalize'. No draft ever takes the place of another.
What of the run is not kept whole is told: until it is put back, no draft that refers to it becomes a pack.
A draft holds digests, no texts: to change a text, write a log and pack it with 'ctx pack LOG --parent REF'.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="the execution pack to begin from")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.execution.fork import damaged_parts, fork
    from contextplane.audit.load import load
    from contextplane.cli.open import opening
    from contextplane.cli.references import named_pack
    from contextplane.store.damage import said, short

    with opening(screen) as platform:
        digest = named_pack(args.ref, platform)
        damaged = damaged_parts(platform, load(digest, platform.objects).manifest)
        path = fork(platform, digest)
    screen.entry(clean(path), f"Draft created at {clean(path)}")
    screen.say(f"Edit the draft, then finalize with{_command(path)}")
    for part, damage in damaged:
        screen.warn(f"{said(clean(short(digest, part)), damage)}: a draft that refers to it cannot be finalized")
    told = [{"part": part, "damage": damage} for part, damage in damaged]
    screen.answer({"draft": path, "parent": f"ctx://{digest.hex}", "damaged": told})
    return OK


def _command(path: str) -> str:
    """What to type, as it can be pasted into a shell."""
    import shlex

    typed = shlex.quote(path)
    return f" 'ctx finalize {clean(path)}'" if typed == path else f": ctx finalize {clean(typed)}"
