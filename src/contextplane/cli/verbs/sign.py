"""Attach the issuer's signature to a reviewed artifact.

TARGET is a file, sha256:<hash>, or id@X.Y.Z if there is only one draft of it. The signature covers an in-toto statement
about exactly these bytes, their name and their kind, in a DSSE envelope. Keys of the artifact's issuer sign. If the
issuer requires several signatures, each key signs once, and the artifact can be published when there are enough.

Examples:
  ctx sign refunds.yaml --key pub    sign a file
  ctx sign support@1.0.0             sign a draft with the only key here
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, registry_session, release_target

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a file, sha256:<hash>, or id@X.Y.Z")
    add_reason(parser, required=False)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.release import sign
    from contextplane.cli.registry.render import print_act

    with registry_session(args, output) as session:
        result = sign(session, release_target(args.target), act_signer(session, args, "signed for its issuer"))
    print_act(result, output)
    return OK
