"""Remove a pin of an environment, or an alias.

PACK is the id of a pack or a decision catalog. Overlays that are pinned on it stay, for the version that is pinned
next; --overlay removes one of them and keeps the pack. With --alias, ENV is the alias to remove. The version itself
does not change.

Examples:
  ctx unpin staging support --reason "moved"              remove a pin
  ctx unpin stable support --alias --reason "unused"      remove an alias
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, base_id, registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="the environment; with --alias, the alias")
    parser.add_argument("pack", metavar="PACK", help="the id of the pack, without a version")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--overlay", metavar="ID", help="remove only this overlay")
    what.add_argument("--alias", action="store_true", help="remove the alias ENV")
    add_reason(parser, required=True)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import drop_alias, unpin
    from contextplane.cli.registry.render import print_pin

    with registry_session(args, output) as session:
        if args.alias:
            drop_alias(session, base_id(args.pack), args.environment, by=act_signer(session, args))
            output.line(f"No version of {clean(args.pack)} is called {clean(args.environment)} any more.")
            output.answer({"alias": args.environment, "id": args.pack})
            return OK
        result = unpin(session, args.environment, base_id(args.pack), args.overlay, act_signer(session, args))
    print_pin(result, "is no longer pinned in", output, pinned=False)
    return OK
