"""Withdraw a draft that is not published.

TARGET is a file, sha256:<hash>, or id@X.Y.Z if there is only one draft of it. A withdrawn draft cannot be reviewed,
signed or published, and 'ctx packs --drafts' does not list it. If there were two drafts of id@X.Y.Z, that name then
stands for the other one. The author of the draft signs, or a publisher of its issuer.

The registry keeps the draft and its history. Recording the same bytes again starts a new draft of them, without
reviews and signatures. To withdraw a published version, use 'ctx deprecate' or 'ctx revoke'.

Examples:
  ctx withdraw support@1.1.0 --reason "superseded"     withdraw the only draft of a version
  ctx withdraw old.yaml --reason "the wrong file"      withdraw the draft with the bytes of a file
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, registry_session, release_target

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="a file, sha256:<hash>, or id@X.Y.Z")
    add_reason(parser, required=True)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.release import withdraw_draft
    from contextplane.cli.registry.render import print_act

    with registry_session(args, output) as session:
        result = withdraw_draft(session, release_target(args.target), act_signer(session, args))
    print_act(result, output)
    return OK
