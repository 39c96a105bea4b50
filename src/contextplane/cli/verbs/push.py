"""Copy a published version into another store, with its proofs.

STORE_FOLDER is the folder of the other store, or the folder that contains its .ctx. If that store has its catalog in a
PostgreSQL database, CTX_OTHER_DATABASE_URL names it (default: CTX_DATABASE_URL). The other store verifies the
version against its trust root for this one: --trust-root, which is remembered for it, else its own. There the version
can be compiled, run and shown, and not be acted upon.

Examples:
  ctx push ../runner support@1.0.0    copy a version to another store
  ctx push ../runner support@prod     copy what prod pins
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
    from contextplane.app.transfer import push_version

    with registry_session(args, output) as session:
        result = push_version(session, transfer_request(args), from_environment())
    return print_import(result, output)
