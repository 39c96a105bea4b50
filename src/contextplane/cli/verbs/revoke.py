"""Revoke a published version: it is blocked for new execution, and kept for audit with the reason.

VERSION is id@X.Y.Z, or id@NAME for an alias or for what an environment pins. Replay may still use it, and is
told so. It cannot be undone; no other bytes can ever be published under its name and number. A publisher of
its issuer does it.
"""

from argparse import Namespace

from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.lifecycle import add_arguments, withdraw

__all__ = ["add_arguments", "run"]


def run(args: Namespace, output: CommandOutput) -> int:
    return withdraw(args, output, "revoked")
