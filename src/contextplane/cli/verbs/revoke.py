"""Revoke a published version: it is blocked for new execution, and kept for audit with the reason.

VERSION is id@X.Y.Z, or id@NAME for an alias or for what an environment pins. Replay may still use it, and is
told so. It cannot be undone; no other bytes can ever be published under its name and number. A publisher of
its issuer does it.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.registry.acting import add_reason, add_signing, at_desk, by
from contextplane.cli.screen import Screen

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", help="id@X.Y.Z, or id@NAME")
    add_reason(parser, required=True)
    add_signing(parser)


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.registry_release import withdrawn
    from contextplane.cli.registry.telling import tell_act, tell_still_pinned

    with at_desk(args, screen) as desk:
        acted = withdrawn(desk, desk.named_version(args.version), "revoked", by(desk, args))
        tell_still_pinned(desk, acted.ref, screen)
    tell_act(acted, screen)
    return OK
