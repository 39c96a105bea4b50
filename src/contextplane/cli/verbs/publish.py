"""Publish an artifact that was linted, reviewed and signed.

TARGET is a file, sha256:<hash>, or id@X.Y.Z when only one draft of it is known. All gates run again over
the stored bytes, and the report is stored. The reviews must be those that it needs by what changed since
the version before, the issuer's signature must hold and be for its tenant, and the number must promise as
much change as there is. What is published never changes: other bytes under its name and number are refused
for ever, the same bytes again change nothing. A publisher of the artifact's issuer does it. --golden names
a folder of golden cases ('ctx golden'): one that drifted refuses the publication. They are kept with the
version; a rollback to it, or a refresh of it, runs them again.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import (
    act_signer,
    add_reason,
    add_signing,
    environment_description,
    registry_session,
    release_target,
)

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a file, sha256:<hash>, or id@X.Y.Z")
    parser.add_argument("--environment", metavar="FILE", help="what is known of the environment it is meant for")
    parser.add_argument("--golden", metavar="DIR", help="golden cases that it must pass; they are kept with it")
    add_reason(parser, required=False)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.release import publish
    from contextplane.cli.registry.render import print_act

    with registry_session(args, output) as session:
        result = publish(
            session, release_target(args.target), act_signer(session, args, "published"), environment_description(args)
        )
    print_act(result, output)
    return OK
