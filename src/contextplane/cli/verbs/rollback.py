"""Pin an earlier version again, at once.

Without VERSION it is the version that was pinned before, skipping revoked versions and those that were rolled back. A
second rollback therefore goes further back. To go forward again, name VERSION or use 'ctx pin'.

A rollback may go to a deprecated version, and says so; never to a revoked one. The golden cases of the version run
afterwards. Their result and the duration of the rollback are recorded, and never stop it.

Examples:
  ctx rollback prod support --reason "wrong refunds"        go back one version
  ctx rollback prod support 1.0.0 --reason "known good"     go back to a version
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, base_id, registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="the environment")
    parser.add_argument("pack", metavar="PACK", help="the id of the pack, without a version")
    parser.add_argument("version", metavar="VERSION", nargs="?", help="X.Y.Z (default: the version pinned before)")
    add_reason(parser, required=True)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import roll_back
    from contextplane.cli.registry.render import print_pin

    with registry_session(args, output) as session:
        result = roll_back(session, args.environment, base_id(args.pack), args.version, act_signer(session, args))
    print_pin(result, "is pinned again in", output)
    return OK
