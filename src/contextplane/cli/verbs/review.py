"""Approve or reject an artifact, in a role.

TARGET is a file, sha256:<hash>, or id@X.Y.Z if there is only one draft of it. A review is for exactly these bytes.

  - A pack needs the roles architecture, security, data and evaluation.
  - An overlay or a decision catalog needs architecture and security.
  - If a decision is added, changed or removed, its owner (owner_role) must also review.

Each of these roles needs another reviewer, and none may be the author. A reviewer whose key also holds the owner_role
approves for the owner, too. The last verdict of a reviewer counts. A rejection stands until its reviewer approves.

Before anything is signed, the command shows the artifact: name, digest, author, gates, and what changed since the
version that it follows. At a terminal it asks. A script confirms with --yes, or with --digest and the digest that it
means; other bytes are refused.

Examples:
  ctx review a.yaml --role data --approve --reason "ok"        approve a file
  ctx review a@1.2.0 --role data --reject --reason "leak"      reject a draft
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.confirmation import add_confirmation, confirm_release, print_lines, release_json
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, registry_session, release_target

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a file, sha256:<hash>, or id@X.Y.Z")
    parser.add_argument(
        "--role", metavar="ROLE", required=True, help="the role: architecture, security, data, evaluation, ..."
    )
    verdict = parser.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--approve", dest="verdict", action="store_const", const="approve", help="approve it")
    verdict.add_argument("--reject", dest="verdict", action="store_const", const="reject", help="reject it")
    add_reason(parser, required=True)
    add_confirmation(parser)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.preview import preview_release
    from contextplane.app.registry.release import review
    from contextplane.cli.registry.render import print_act

    question = f"{args.verdict.capitalize()} these bytes as {clean(args.role)}?"
    with registry_session(args, output) as session:
        preview, names = preview_release(session, release_target(args.target)), session.keys.names()
        unshown = confirm_release(preview, question, names, args, output)
        result = review(session, str(preview.digest), args.role, args.verdict, act_signer(session, args))
    print_lines(unshown, output)
    print_act(result, output, name=preview.name, preview=release_json(preview, names))
    return OK
