"""`--against OLD`: the version before, in a file or in the registry."""

from argparse import Namespace
from typing import TYPE_CHECKING

from contextplane.cli.screen import Screen

if TYPE_CHECKING:
    from contextplane.app.authored import Authored

__all__ = ["older"]


def older(args: Namespace, screen: Screen) -> "Authored | None":
    """The pack that --against names; without one, no store and no file is opened."""
    if args.against is None:
        return None
    from contextplane.cli.registry.naming import names_file

    if names_file(args.against):
        from contextplane.app.authored import pack_from

        return pack_from(args.against)
    from contextplane.app.comparing import version_from
    from contextplane.cli.registry.acting import at_desk

    with at_desk(args, screen) as desk:
        return version_from(desk, args.against)
