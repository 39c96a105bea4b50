"""Remove a pin of an environment, or an alias.

PACK is the id of a pack or a decision catalog. Overlays that are pinned on it stay, for the version that is pinned
next; --overlay removes one of them and keeps the pack. With --alias, ENV is the alias to remove. The version itself
does not change.

The command shows the version that ENV loses, and asks first. A script confirms with --yes.

Examples:
  ctx unpin staging support --reason "moved" --yes        remove a pin
  ctx unpin stable support --alias --reason "unused"      remove an alias
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.confirmation import add_confirmation, confirm, print_lines, version_json, version_lines
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, base_id, registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="the environment; with --alias, the alias")
    parser.add_argument("pack", metavar="PACK", help="the id of the pack, without a version")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--overlay", metavar="ID", help="remove only this overlay")
    what.add_argument("--alias", action="store_true", help="remove the alias ENV")
    add_reason(parser, required=True)
    add_confirmation(parser, digest=False)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import drop_alias, find_pinned, unpin
    from contextplane.app.registry.preview import preview_version
    from contextplane.cli.registry.render import print_pin

    with registry_session(args, output) as session:
        if args.alias:
            drop_alias(session, base_id(args.pack), args.environment, by=act_signer(session, args))
            output.line(f"No version of {clean(args.pack)} is called {clean(args.environment)} any more.")
            output.answer({"alias": args.environment, "id": args.pack})
            return OK
        ref = find_pinned(session, args.environment, base_id(args.pack), args.overlay)
        preview, names = preview_version(session, ref), session.keys.names()
        unshown = confirm("Remove this pin?", (*version_lines(preview, names), _loss(args)), args, output)
        result = unpin(session, args.environment, base_id(args.pack), args.overlay, act_signer(session, args))
    print_lines(unshown, output)
    print_pin(result, "is no longer pinned in", output, pinned=False, preview=version_json(preview, names))
    return OK


def _loss(args: Namespace) -> str:
    """Return what the environment loses."""
    environment = clean(args.environment)
    if args.overlay:
        return f"pinned in   {environment}: new runs there are no longer narrowed by it"
    return f"pinned in   {environment}: new runs there are refused until another version is pinned"
