"""`--catalog NAME`: decision catalogs that a pack draws on, in files or in the registry."""

from argparse import Namespace
from typing import TYPE_CHECKING

from contextplane.cli.registry.naming import names_file
from contextplane.cli.screen import Screen

if TYPE_CHECKING:
    from contextplane.registry.artifacts import Candidate

__all__ = ["catalogs_of"]


def catalogs_of(args: Namespace, screen: Screen) -> "tuple[Candidate, ...]":
    """The catalogs that are named; without one from the registry, no store is opened."""
    if not args.catalog:
        return ()
    from contextplane.app.authored import author_file
    from contextplane.app.registry_catalogs import published_catalogs
    from contextplane.cli.registry.acting import at_desk
    from contextplane.errors import ContextPlaneError
    from contextplane.registry.artifacts import candidate

    found = []
    for name in args.catalog:
        if names_file(name):
            try:
                found.append(candidate(author_file(name).value))
            except ContextPlaneError as error:
                raise (error if (error.at or "").startswith(name) else error.under(f"{name}: ")) from None
            continue
        with at_desk(args, screen) as desk:
            found.extend(published_catalogs(desk, [desk.named_version(name)]))
    return tuple(found)
