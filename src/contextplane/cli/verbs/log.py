"""List runs, newest first; or the history of one thing.

Runs are sorted by the time they were created, then packed. Times are in UTC. A pack whose manifest was changed, is
missing or cannot be read is listed and marked. SINCE is a date (2026-05-04), a time (2026-05-04T09:30:00Z) or a span
back from now (36h, 14d); runs without a time are older than any.

--unfinished lists recordings that are not packs yet; 'ctx finalize' makes a pack of one.

With REF, the history of:
  - an execution pack: the runs that it was forked from
  - a handoff pack, pk_<id>: every revision, also if it was deleted or has expired
  - a version, id@X.Y.Z or id@NAME: every event, with who signed it and why. --quiet prints stream and number of each.

Examples:
  ctx log                            list the newest runs
  ctx log --since 14d --model m1     runs of a model in two weeks
  ctx log support@1.0.0              the history of a version
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.options import LIMIT, NO_LIMIT, limit_of
from contextplane.cli.output import CommandOutput, clean, quantity

if TYPE_CHECKING:
    from contextplane.app.execution.history import ListedRun
    from contextplane.app.platform import Platform
    from contextplane.model.catalog import PackFilter
    from contextplane.model.timestamp import Timestamp

__all__ = ["add_arguments", "run"]

_WIDEST = 40


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", nargs="?", help="list the history of ctx://<hash>, pk_<id> or id@X.Y.Z")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--limit", type=limit_of, metavar="N", help=f"at most N packs (default: {LIMIT})")
    how_many.add_argument("--all", action="store_true", help="list all")
    how_many.add_argument("--unfinished", action="store_true", help="list all recordings that are not packs yet")
    parser.add_argument("--since", metavar="SINCE", help="only runs created at that time or later")
    parser.add_argument("--model", metavar="ID", help="only runs of this model")
    parser.add_argument("--tool", metavar="NAME", help="only runs with a step that used this tool")
    parser.add_argument("--parent", metavar="REF", help="only runs that were forked from this pack")


def run(args: Namespace, output: CommandOutput) -> int:
    if args.ref is not None:
        return _history(args, output)
    if args.unfinished:
        return _list_recordings(args, output)
    from contextplane.app.execution.history import list_runs
    from contextplane.cli.store import open_store

    limit = _limit(args)
    with open_store(output) as platform:
        page = list_runs(platform, _filter(args, platform), limit)
    _print_runs(page.runs, limit, output, more=page.more)
    if not page.runs:
        output.line(
            f"None of {quantity(page.known, 'execution pack')} matches." if page.known else "No execution packs."
        )
    output.answer({"packs": [_run_json(run) for run in page.runs], "more": page.more})
    return OK


def _limit(args: Namespace) -> int:
    return NO_LIMIT if args.all else args.limit or LIMIT


def _print_runs(runs: "tuple[ListedRun, ...]", limit: int, output: CommandOutput, *, more: bool) -> None:
    widest = min(max((len(clean(run.row.model)) for run in runs), default=0), _WIDEST)
    for run in runs:
        problem = clean(run.problem)
        output.entry(f"ctx://{run.row.digest.hex}", _line(run, problem, output, widest), problem)
    if more:
        output.warn(f"{quantity(limit, 'pack')} listed, there are more: use --limit N or --all")


def _list_parents(args: Namespace, output: CommandOutput) -> int:
    """List a pack, then the one that it was forked from, and so on, as far as they are known here."""
    from contextplane.app.damage import short_ref
    from contextplane.app.execution.history import list_parents
    from contextplane.cli.store import open_store

    limit = _limit(args)
    with open_store(output) as platform:
        line = list_parents(platform, args.ref, limit)
    _print_runs(line.runs, limit, output, more=line.more)
    absent = line.absent
    if absent is not None:
        output.note(f"the history continues with {short_ref(absent)}, which is not in this store")
    output.answer(
        {
            "packs": [_run_json(run) for run in line.runs],
            "more": line.more,
            "absent_parent": f"ctx://{absent.hex}" if absent is not None else None,
        }
    )
    return OK


def _history(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.references import HandoffTarget, VersionTarget, resolve
    from contextplane.cli.parser import Usage

    target = resolve(args.ref)
    limits = ("limit", "all") if isinstance(target, VersionTarget | HandoffTarget) else ()
    for option in (*limits, "unfinished", "since", "model", "tool", "parent"):
        if getattr(args, option):
            raise Usage(f"argument --{option}: not allowed with argument REF", hint="see 'ctx log --help'")
    if isinstance(target, VersionTarget):
        from contextplane.cli.registry.render import log_version

        return log_version(args, output)
    if not isinstance(target, HandoffTarget):
        return _list_parents(args, output)
    from contextplane.cli.handoff.show import log as handoff_log

    return handoff_log(str(target.ref), output)


def _list_recordings(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.execution.record import unfinished_recordings
    from contextplane.cli.output import format_second
    from contextplane.cli.parser import Usage
    from contextplane.cli.store import open_store

    for option in ("since", "model", "tool", "parent"):
        if getattr(args, option) is not None:
            raise Usage(f"argument --unfinished: not allowed with argument --{option}", hint="see 'ctx log --help'")
    with open_store(output, following=False) as platform:
        recordings = unfinished_recordings(platform)
    for recording in recordings:
        begun = format_second(recording.begun)
        line = f"{recording.id}  {begun}  {clean(recording.model)}  {quantity(recording.steps, 'step')}"
        problem = output.paint("red", f"  [{clean(recording.problem)}]") if recording.problem else ""
        output.entry(str(recording.id), line + problem, clean(recording.problem))
    if not recordings:
        output.line("No unfinished recordings.")
    output.answer(
        {
            "recordings": [
                {
                    "id": str(recording.id),
                    "begun": str(recording.begun),
                    "model": recording.model,
                    "steps": recording.steps,
                    "problem": recording.problem or None,
                }
                for recording in recordings
            ]
        }
    )
    return OK


def _filter(args: Namespace, platform: "Platform") -> "PackFilter":
    from contextplane.app.references import find_run
    from contextplane.model.catalog import PackFilter

    return PackFilter(
        since=_since(args.since, platform) if args.since else None,
        model=args.model,
        tool=args.tool,
        parent=find_run(args.parent, platform) if args.parent else None,
    )


def _since(text: str, platform: "Platform") -> "Timestamp":
    from contextplane.cli.verbs.gc import duration
    from contextplane.model.timestamp import InvalidTimestamp, Timestamp

    try:
        return Timestamp.of(platform.clock.now() - duration(text))
    except ArgumentTypeError:
        pass
    try:
        return Timestamp.parse(text if "T" in text else f"{text}T00:00:00Z")
    except InvalidTimestamp:
        from contextplane.cli.parser import Usage

        raise Usage(
            f"argument --since: not a time: {text[:40]!r}", hint="2026-05-04, 2026-05-04T09:30:00Z, 36h or 14d"
        ) from None


def _line(run: "ListedRun", problem: str, output: CommandOutput, widest: int) -> str:
    from contextplane.cli.output import format_second

    row = run.row
    parent = f" (forked from {row.parent.hex[:12]})" if row.parent else ""
    steps = quantity(row.steps, "step")
    line = f"{row.digest.hex[:12]}  {format_second(row.created)}  {clean(row.model):<{widest}}  {steps}{parent}"
    return line + (output.paint("red", f"  [{problem}]") if problem else "")


def _run_json(run: "ListedRun") -> dict[str, object]:
    row, why = run.row, f": {run.why}" if run.why else ""
    return {
        "ref": f"ctx://{row.digest.hex}",
        "created": str(row.created),
        "model": row.model,
        "steps": row.steps,
        "tools": row.tools,
        "parent": f"ctx://{row.parent.hex}" if row.parent else None,
        "problem": f"{run.problem}{why}" or None,
        "damage": run.damage,
    }
