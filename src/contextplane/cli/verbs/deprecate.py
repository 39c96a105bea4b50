"""Deprecate a published version: replay may use it, new runs may not.

VERSION is id@X.Y.Z, or id@NAME for an alias or for the version that an environment pins. Its bytes do not change. It
can no longer be pinned, and where it is pinned new runs are refused. This cannot be undone. A publisher of its issuer
signs.

If an environment pins the version, the command names the environment and asks first. A script confirms with --yes.

Examples:
  ctx deprecate support@1.0.0 --reason "superseded"    deprecate a version
"""

from argparse import Namespace

from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.lifecycle import add_arguments, retire

__all__ = ["add_arguments", "run"]


def run(args: Namespace, output: CommandOutput) -> int:
    return retire(args, output, "deprecated")
