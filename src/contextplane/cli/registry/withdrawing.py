"""What deprecating and revoking have in common: a version, a reason, who signs, and what is told."""

from argparse import ArgumentParser, Namespace
from typing import Literal

from contextplane.cli.exit import OK
from contextplane.cli.registry.acting import add_reason, add_signing, at_desk, by
from contextplane.cli.screen import Screen

__all__ = ["add_arguments", "withdraw"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", help="id@X.Y.Z, or id@NAME")
    add_reason(parser, required=True)
    add_signing(parser)


def withdraw(args: Namespace, screen: Screen, how: Literal["deprecated", "revoked"]) -> int:
    from contextplane.app.registry_release import withdrawn
    from contextplane.cli.registry.telling import tell_act, tell_still_pinned

    with at_desk(args, screen) as desk:
        acted = withdrawn(desk, desk.named_version(args.version), how, by(desk, args))
        tell_still_pinned(desk, acted.ref, screen)
    tell_act(acted, screen)
    return OK
