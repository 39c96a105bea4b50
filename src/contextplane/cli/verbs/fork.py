"""Create a draft from a recorded run.

The draft is a new JSON file below .ctx/drafts/: a copy of the run's manifest, with the run as its parent. Edit it, then
make it a pack with 'ctx finalize'. Existing drafts are never replaced. Missing or damaged contents of the run are
listed: a draft that refers to one cannot be finalized until it is restored.

A draft holds digests, not texts. To change a text, write a log and pack it with 'ctx pack LOG --parent REF'.

Examples:
  ctx fork 3fa9    draft a variant of run 3fa9
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="the execution pack to copy")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.damage import damage_sentence, short_ref
    from contextplane.app.execution.fork import fork_run
    from contextplane.cli.store import open_store

    with open_store(output) as platform:
        draft = fork_run(platform, args.ref)
    output.entry(clean(draft.path), f"Draft created at {clean(draft.path)}")
    output.line(f"Edit the draft, then finalize with{_command(draft.path)}")
    for part, damage in draft.damaged:
        name = clean(short_ref(draft.parent, part))
        output.warn(f"{damage_sentence(name, damage)}: a draft that refers to it cannot be finalized")
    damaged = [{"part": part, "damage": damage} for part, damage in draft.damaged]
    output.answer({"draft": draft.path, "parent": f"ctx://{draft.parent.hex}", "damaged": damaged})
    return OK


def _command(path: str) -> str:
    """Return the command as it can be pasted into a shell."""
    import shlex

    typed = shlex.quote(path)
    return f" 'ctx finalize {clean(path)}'" if typed == path else f": ctx finalize {clean(typed)}"
