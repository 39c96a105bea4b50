"""Publish an artifact that was linted, reviewed and signed.

TARGET is a file, sha256:<hash>, or id@X.Y.Z if there is only one draft of it. A publisher of the artifact's issuer
signs. Publishing checks, on the stored bytes:
  - all gates, and the report is stored
  - the reviews that the changes since the previous version need
  - the issuer's signature, and that it is for the artifact's tenant
  - that the version number promises as much change as there is

A published version never changes: other bytes under the same id and number are refused for ever. Publishing the same
bytes again changes nothing.

--golden names a folder of golden cases ('ctx golden'). A case that drifted refuses the publication. The cases are kept
with the version; a rollback or a refresh runs them again.

Before anything is signed, the command shows the artifact: name, digest, author, gates, and what changed since the
version that it follows. At a terminal it asks. A script confirms with --yes, or with --digest and the digest that it
means; other bytes are refused.

Examples:
  ctx publish refunds.yaml --key pub             publish a file
  ctx publish support@1.0.0 --golden golden      require its golden cases
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.confirmation import add_confirmation, confirm_release, print_lines, release_json
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
    parser.add_argument("--environment", metavar="FILE", help="a description of the target environment")
    parser.add_argument("--golden", metavar="DIR", help="golden cases that it must pass; they are kept with it")
    add_reason(parser, required=False)
    add_confirmation(parser)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.preview import preview_release
    from contextplane.app.registry.release import publish
    from contextplane.cli.registry.render import print_act

    with registry_session(args, output) as session:
        environment = environment_description(args)
        preview = preview_release(session, release_target(args.target), environment)
        names = session.keys.names()
        unshown = confirm_release(preview, "Publish these bytes?", names, args, output)
        result = publish(session, str(preview.digest), act_signer(session, args, "published"), environment)
    print_lines(unshown, output)
    print_act(result, output, name=preview.name, preview=release_json(preview, names))
    return OK
