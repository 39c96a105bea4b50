"""Deprecate a published version: it serves replay, and no new traffic.

VERSION is id@X.Y.Z, or id@NAME for an alias or for what an environment pins. Not a byte of it changes. It
cannot be undone, and it can no longer be pinned; where it is pinned, new runs are refused from now on. A
publisher of its issuer does it.
"""

from argparse import Namespace

from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.lifecycle import add_arguments, withdraw

__all__ = ["add_arguments", "run"]


def run(args: Namespace, output: CommandOutput) -> int:
    return withdraw(args, output, "deprecated")
