"""Attach the issuer's signature to a reviewed artifact.

TARGET is a file, sha256:<hash>, or id@X.Y.Z if there is only one draft of it. The signature covers an in-toto statement
about exactly these bytes, their name and their kind, in a DSSE envelope. Keys of the artifact's issuer sign. If the
issuer requires several signatures, each key signs once, and the artifact can be published when there are enough.

Before anything is signed, the command shows the artifact: name, digest, author, gates, and what changed since the
version that it follows. At a terminal it asks. A script confirms with --yes, or with --digest and the digest that it
means; other bytes are refused.

Examples:
  ctx sign refunds.yaml --key pub    sign a file
  ctx sign support@1.0.0             sign a draft with the only key here
  ctx sign support@1.0.0 --yes       the same, and do not ask
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.confirmation import add_confirmation, confirm_release, print_lines, release_json
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, registry_session, release_target

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a file, sha256:<hash>, or id@X.Y.Z")
    add_reason(parser, required=False)
    add_confirmation(parser)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.preview import preview_release
    from contextplane.app.registry.release import sign
    from contextplane.cli.registry.render import print_act

    with registry_session(args, output) as session:
        preview, names = preview_release(session, release_target(args.target)), session.keys.names()
        unshown = confirm_release(preview, f"Sign these bytes for {clean(preview.issuer)}?", names, args, output)
        result = sign(session, str(preview.digest), act_signer(session, args, "signed for its issuer"))
    print_lines(unshown, output)
    print_act(result, output, name=preview.name, preview=release_json(preview, names))
    return OK
