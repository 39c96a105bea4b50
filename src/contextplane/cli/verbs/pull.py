"""Copy a published version from another store, with its proofs.

STORE_FOLDER is the folder of the other store, or the folder that contains its .ctx. If that store has its catalog in a
PostgreSQL database, CTX_OTHER_DATABASE_URL names it (default: CTX_DATABASE_URL). The version is verified against the
trust root for that store: --trust-root, which is remembered for it, else the one of this store. Here the version can be
compiled, run and shown, and not be acted upon. Pull it again to see a revocation or a new pin.

Examples:
  ctx pull ../registry support@1.0.0                        copy a version from another store
  ctx pull ../registry support@1.0.0 --trust-root KEY_ID    name a key of its owner
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.mirror import add_transfer, print_import, transfer_request
from contextplane.cli.registry.session import registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    add_transfer(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.settings import from_environment
    from contextplane.app.transfer import pull_version

    with registry_session(args, output) as session:
        result = pull_version(session, transfer_request(args), from_environment())
    return print_import(result, output)
