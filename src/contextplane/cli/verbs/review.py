"""Approve or reject an artifact, in a role.

TARGET is a file, sha256:<hash>, or id@X.Y.Z when only one draft of it is known; what is reviewed are exactly
its bytes. A pack needs the roles architecture, security, data and evaluation, each another person's key, none
of them the author's; an overlay and a decision catalog need architecture and security. The owner of a
decision that is new, changed or gone (its owner_role) must be among the reviewers. What a reviewer says last
counts; a rejection stands until its reviewer approves.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, registry_session, release_target

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a file, sha256:<hash>, or id@X.Y.Z")
    parser.add_argument("--role", metavar="ROLE", required=True, help="architecture, security, data, evaluation, ...")
    verdict = parser.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--approve", dest="verdict", action="store_const", const="approve", help="it may go on")
    verdict.add_argument("--reject", dest="verdict", action="store_const", const="reject", help="it may not")
    add_reason(parser, required=True)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.release import review
    from contextplane.cli.registry.render import print_act

    with registry_session(args, output) as session:
        result = review(session, release_target(args.target), args.role, args.verdict, act_signer(session, args))
    print_act(result, output)
    return OK
