"""Revoke a published version: new runs are blocked, and it is kept for audit.

VERSION is id@X.Y.Z, or id@NAME for an alias or for the version that an environment pins. Replay may still use it, with
a warning. This cannot be undone, and no other bytes can ever be published under its id and number. A publisher of its
issuer signs.

If an environment pins the version, the command names the environment and asks first. A script confirms with --yes.

Examples:
  ctx revoke support@1.0.0 --reason "leaks order ids"          revoke a version
  ctx revoke support@1.0.0 --reason "leaks order ids" --yes    revoke it also where it is pinned
"""

from argparse import Namespace

from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.lifecycle import add_arguments, retire

__all__ = ["add_arguments", "run"]


def run(args: Namespace, output: CommandOutput) -> int:
    return retire(args, output, "revoked")
