"""Manage refresh triggers and incidents.

  open TRIGGER NAME          ask for a refresh of every version in use that depends on NAME; * stands for every pack.
  run VERSION                run the actions of its open refreshes and store their reports. An action that cannot run
                             stays open.
  list                       list the open refreshes and incidents.
  incident VERSION INCIDENT  record that something went wrong with a version. It is not promoted until that is settled.
  settle VERSION INCIDENT    close an incident.

Triggers, and what NAME is for each:
  POLICY_BUNDLE_UPDATED      a bundle_id
  ONTOLOGY_UPDATED           a namespace
  ADAPTER_SCHEMA_UPDATED     an adapter_id
  DECISION_CATALOG_UPDATED   the catalog, id@X.Y.Z
  MEMORY_POLICY_UPDATED      a tenant
  EVALUATOR_UPDATED          a metric
  MODEL_CONFIG_UPDATED       a tenant

Examples:
  ctx refresh open EVALUATOR_UPDATED accuracy --reason "v2"    ask for refreshes
  ctx refresh run support@1.0.0                                run what is open
  ctx refresh list                                             list what is open
  ctx refresh incident a@1.0.0 INC-7 --reason "wrong sum"      record an incident
  ctx refresh settle a@1.0.0 INC-7 --reason "rule fixed"       close it
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.session import (
    act_signer,
    add_reason,
    add_signing,
    environment_description,
    registry_session,
)

if TYPE_CHECKING:
    from contextplane.app.registry.session import RegistrySession

__all__ = ["add_arguments", "run"]

_NAMES = {"open": ("TRIGGER", "NAME"), "run": ("VERSION",), "list": (), "incident": ("VERSION", "INCIDENT")}
_NAMES["settle"] = _NAMES["incident"]
_NEEDS_REASON = frozenset({"open", "incident", "settle"})


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(_NAMES), help="the action")
    parser.add_argument("names", metavar="NAME", nargs="*", help="TRIGGER NAME; VERSION; or VERSION INCIDENT")
    parser.add_argument("--environment", metavar="FILE", help="run: a description of the environment")
    add_reason(parser, required=False)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.parser import Usage

    if len(args.names) != len(_NAMES[args.what]):
        taken = " ".join(_NAMES[args.what]) or "nothing more"
        raise Usage(f"{args.what} takes {taken}", hint="see 'ctx refresh --help'")
    if args.what in _NEEDS_REASON and not args.reason:
        raise Usage("the following arguments are required: --reason", hint="see 'ctx refresh --help'")
    with registry_session(args, output) as session:
        if args.what == "list":
            return _list(session, output)
        if args.what == "open":
            return _open(session, args, output)
        return _run(session, args, output) if args.what == "run" else _incident(session, args, output)


def _open(session: "RegistrySession", args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.refresh import REQUIRED_ACTIONS, open_refresh
    from contextplane.cli.parser import Usage

    trigger, dependency = args.names
    known = next((name for name in REQUIRED_ACTIONS if name == trigger), None)
    if known is None:
        raise Usage(f"no such trigger: {trigger[:60]!r}", hint=f"one of {', '.join(REQUIRED_ACTIONS)}")
    result = open_refresh(session, known, dependency, act_signer(session, args))
    for ref in result.opened:
        output.line(f"{ref}  must be refreshed: {', '.join(REQUIRED_ACTIONS[known])}")
    for ref in result.before:
        output.line(f"{ref}  already open")
    for ref in result.left:
        output.line(f"{ref}  depends on it, but only a publisher of its issuer can open its refresh")
    if not (result.opened or result.before or result.left):
        output.line(f"No version in use depends on {clean(dependency)}.")
    versions = {"opened": result.opened, "before": result.before, "left": result.left}
    output.answer(
        {
            "trigger": trigger,
            "dependency": dependency,
            **{key: [str(ref) for ref in refs] for key, refs in versions.items()},
        }
    )
    return OK


def _run(session: "RegistrySession", args: Namespace, output: CommandOutput) -> int:
    """Run the refreshes of a version. The status is 0 if none is open any more."""
    from contextplane.app.registry.refresh import run_refresh

    ref = session.named_version(args.names[0])
    outcomes = run_refresh(session, ref, act_signer(session, args, "refresh"), environment_description(args))
    state = {True: ("green", "passed"), False: ("red", "failed"), None: ("yellow", "did not run")}
    widest = max((len(outcome.trigger) for outcome in outcomes), default=0)
    for outcome in outcomes:
        color, word = state[outcome.passed]
        print_line = output.line if outcome.passed else output.failure_line
        print_line(
            f"{outcome.trigger:<{widest}}  {outcome.action}: {output.paint(color, word)} ({clean(outcome.words)})"
        )
    done = all(outcome.passed for outcome in outcomes)
    output.line("No refresh is open." if done else "It stays open.")
    output.answer(
        {
            "ref": str(ref),
            "closed": done,
            "actions": [
                {
                    "trigger": outcome.trigger,
                    "action": outcome.action,
                    "passed": outcome.passed,
                    "words": outcome.words,
                }
                for outcome in outcomes
            ],
        }
    )
    return OK if done else REFUSED


def _list(session: "RegistrySession", output: CommandOutput) -> int:
    from contextplane.app.registry.refresh import versions_with_open_refresh

    versions = versions_with_open_refresh(session)
    widest = max((len(str(version.ref)) for version in versions), default=0)
    for version in versions:
        lines = [
            f"{version.ref!s:<{widest}}  {refresh.trigger} ({clean(refresh.dependency)}): "
            + ", ".join(refresh.outstanding)
            for refresh in version.open_refreshes
        ]
        output.entry(str(version.ref), "\n".join(lines))
    if not versions:
        output.line("No refresh is open.")
    output.answer(
        {
            "open": [
                {
                    "ref": str(version.ref),
                    "trigger": refresh.trigger,
                    "dependency": refresh.dependency,
                    "outstanding": refresh.outstanding,
                }
                for version in versions
                for refresh in version.open_refreshes
            ]
        }
    )
    return OK


def _incident(session: "RegistrySession", args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.refresh import close_incident, open_incident

    ref, incident = session.named_version(args.names[0]), args.names[1]
    is_open = args.what == "incident"
    (open_incident if is_open else close_incident)(session, ref, incident, act_signer(session, args))
    output.line(f"Incident {clean(incident)} of {ref} is {'open' if is_open else 'closed'}.")
    output.answer({"ref": str(ref), "incident": incident, "open": is_open})
    return OK
