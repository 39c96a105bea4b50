"""Pin again, at once, a version that was pinned in an environment before.

Without VERSION it is the last other version that is not revoked and was not rolled back from. So a second
rollback goes further back; to go forward again, name the VERSION or pin it. A deprecated
version will do, because it is an emergency, and that is said; a revoked one never. Golden cases run
behind it: what they say is recorded, with how long the rollback took, and never stops it.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, base_id, registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="where")
    parser.add_argument("pack", metavar="PACK", help="the id, without a version")
    parser.add_argument("version", metavar="VERSION", nargs="?", help="X.Y.Z; else the one before")
    add_reason(parser, required=True)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import roll_back
    from contextplane.cli.registry.render import print_pin

    with registry_session(args, output) as session:
        result = roll_back(session, args.environment, base_id(args.pack), args.version, act_signer(session, args))
    print_pin(result, "is pinned again in", output)
    return OK
