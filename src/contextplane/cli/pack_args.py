"""`--catalog NAME`: decision catalogs that a pack draws on, in files or in the registry.

`--against OLD`: the version before, in a file or in the registry.
"""

from argparse import Namespace
from typing import TYPE_CHECKING

from contextplane.cli.output import Screen
from contextplane.cli.registry.act import names_file

if TYPE_CHECKING:
    from contextplane.authoring.source_file import Authored
    from contextplane.registry.artifacts import Candidate

__all__ = ["catalogs_of", "older"]


def catalogs_of(args: Namespace, screen: Screen) -> "tuple[Candidate, ...]":
    """The catalogs that are named; without one from the registry, no store is opened."""
    if not args.catalog:
        return ()
    from contextplane.app.packs.files import author_file
    from contextplane.app.registry.catalogs import published_catalogs
    from contextplane.cli.registry.act import at_desk
    from contextplane.errors import ContextPlaneError
    from contextplane.registry.artifacts import candidate

    candidates = []
    for name in args.catalog:
        if names_file(name):
            try:
                candidates.append(candidate(author_file(name).value))
            except ContextPlaneError as error:
                raise (error if (error.at or "").startswith(name) else error.under(f"{name}: ")) from None
            continue
        with at_desk(args, screen) as desk:
            candidates.extend(published_catalogs(desk, [desk.named_version(name)]))
    return tuple(candidates)


def older(args: Namespace, screen: Screen) -> "Authored | None":
    """The pack that --against names; without one, no store and no file is opened."""
    if args.against is None:
        return None
    from contextplane.cli.registry.act import names_file

    if names_file(args.against):
        from contextplane.app.packs.files import pack_from

        return pack_from(args.against)
    from contextplane.app.registry.view import version_from
    from contextplane.cli.registry.act import at_desk

    with at_desk(args, screen) as desk:
        return version_from(desk, args.against)
