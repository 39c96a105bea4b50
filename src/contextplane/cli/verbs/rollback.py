"""Pin an earlier version again, at once.

Without VERSION it is the version that was pinned before. A second rollback goes further back, and never to a version
that was rolled back from. To go forward again, name VERSION or use 'ctx pin'.

A rollback passes over versions that no new run would get, such as deprecated and revoked ones, and prints each with the
reason. It refuses such a VERSION before anything changes. The golden cases of the version run after the rollback. Their
result and the duration of the rollback are recorded, and never stop it.

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
