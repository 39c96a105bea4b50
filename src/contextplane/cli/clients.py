"""The actions of `ctx mcp` for people: connect a client, disconnect it, and look at what it will see."""

import difflib
import shlex
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.cli.exit import FAILED, OK
from contextplane.cli.output import CommandOutput, clean, clean_tabbed, quantity

if TYPE_CHECKING:
    from contextplane.app.clients.client import Scope
    from contextplane.app.clients.inspection import ClientReport
    from contextplane.app.clients.installation import FileChange, InstallationPlan

__all__ = ["change_client", "check_clients"]

_COLORS = {"+": "green", "-": "red"}


def change_client(args: Namespace, output: CommandOutput) -> int:
    """Show the change of `install` or `uninstall`, ask, and make it."""
    from contextplane.app.clients.client import CLIENTS, project_folder
    from contextplane.app.clients.installation import apply_plan, plan_installation, plan_removal
    from contextplane.app.settings import client_folders, from_environment
    from contextplane.cli.registry.confirmation import confirm, print_lines

    client = CLIENTS[args.client]
    scope: Scope = "user" if args.user else "project"
    files = client.files(scope, project_folder(from_environment().cwd), client_folders())
    plans = plan_installation if args.what == "install" else plan_removal
    plan = plans(client, scope, files, skill=not args.no_skill)
    lines = [line for change in plan.changes for line in _diff_lines(change, output)]
    is_made = bool(plan.changes) and not args.dry_run
    if is_made:
        verb = "Connect" if args.what == "install" else "Disconnect"
        print_lines(confirm(f"{verb} {client.title}?", lines, args, output), output)
        apply_plan(plan)
    else:
        print_lines(lines, output)
    _print_result(plan, args, output, title=client.title, is_made=is_made)
    return OK


def _print_result(
    plan: "InstallationPlan", args: Namespace, output: CommandOutput, *, title: str, is_made: bool
) -> None:
    for change in plan.changes:
        output.entry(change.path, f"{'' if is_made else 'to be '}{_action(change)}  {clean(change.path)}")
    if not plan.changes:
        state = "is connected already" if args.what == "install" else "is not connected"
        output.line(f"{title} {state}: nothing to change")
    for note in plan.notes:
        output.note(clean(note))
    if is_made and args.what == "install":
        output.note(f"restart {title}, and see what it gets: ctx mcp check {plan.client}")
    changes = [
        {"path": change.path, "action": _action(change), "diff": "\n".join(_diff(change))} for change in plan.changes
    ]
    output.answer(
        {
            "client": plan.client,
            "scope": plan.scope,
            "applied": is_made,
            "changes": changes,
            "notes": list(plan.notes),
        }
    )


def _action(change: "FileChange") -> str:
    if change.before is None:
        return "created"
    return "removed" if change.after is None else "changed"


def _diff(change: "FileChange") -> Iterator[str]:
    """Yield the lines of a unified diff."""
    before, after = ((data or b"").decode(errors="replace").splitlines() for data in (change.before, change.after))
    old = change.path if change.before is not None else "/dev/null"
    new = change.path if change.after is not None else "/dev/null"
    yield from difflib.unified_diff(before, after, old, new, lineterm="")


def _diff_lines(change: "FileChange", output: CommandOutput) -> Iterator[str]:
    """Yield the diff for people. A page that is new or removed as a whole is one line."""
    if change.path.endswith("SKILL.md") and None in (change.before, change.after):
        sign = "+" if change.before is None else "-"
        size = len((change.after or change.before or b"").splitlines())
        yield output.paint(_COLORS[sign], f"{sign} {clean(change.path)} ({quantity(size, 'line')})")
        return
    for line in _diff(change):
        is_head = line.startswith(("+++", "---"))
        text = clean_tabbed(line)
        color = None if is_head else _COLORS.get(line[:1])
        yield output.paint(color, text) if color else text


def check_clients(args: Namespace, output: CommandOutput) -> int:
    """Start the server as the configured clients would, and show what they will see."""
    from contextplane.app.clients.inspection import inspect_clients
    from contextplane.app.settings import from_environment

    scopes: tuple[Scope, ...] = ("user",) if args.user else ("project",) if args.project else ()
    names = (args.client,) if args.client else ()
    reports = inspect_clients(names, scopes, from_environment().cwd)
    for report in reports:
        for line in _report_lines(report):
            output.line(clean(line))
        if report.problem is not None:
            output.failure_line(clean(f"  failed    {report.problem}"))
    output.answer(reports)
    return OK if all(report.problem is None for report in reports) else FAILED


def _report_lines(report: "ClientReport") -> Iterator[str]:
    yield f"{report.client} ({report.scope})"
    yield f"  file      {report.config}"
    yield f"  starts    {shlex.join(report.command)}"
    yield f"  in        {report.folder}"
    if report.problem is not None:
        return
    yield f"  answers   {report.server}, MCP {report.protocol}, after {report.milliseconds} ms"
    for tool in report.tools:
        hints = ", ".join(
            f"{name.removesuffix('Hint')} {'yes' if is_set else 'no'}" for name, is_set in tool.hints.items()
        )
        yield f"  tool      {tool.shown_as}: about {tool.tokens} tokens; {hints}"
    yield f"  schemas   about {report.tokens} tokens in every request ({report.counter})"
    yield f"  skill     {report.skill}  {report.skill_path}"
    if report.note:
        yield f"  note      {report.note}"
