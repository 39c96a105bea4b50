"""`--catalog NAME`: decision catalogs that a pack draws on, in files or in the registry.

`--against OLD`: the version before, in a file or in the registry.
"""

from argparse import Namespace
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput
from contextplane.model.reference import names_file

if TYPE_CHECKING:
    from contextplane.authoring.source_file import NamedFile
    from contextplane.registry.artifacts import Candidate

__all__ = ["read_catalogs", "read_older"]


def read_catalogs(args: Namespace, output: CommandOutput) -> "tuple[Candidate, ...]":
    """The catalogs that are named; without one from the registry, no store is opened."""
    if not args.catalog:
        return ()
    from contextplane.app.packs.files import read_author_file
    from contextplane.app.registry.catalogs import published_catalogs
    from contextplane.cli.registry.act import registry_session
    from contextplane.errors import ContextPlaneError
    from contextplane.registry.artifacts import candidate

    candidates = []
    for name in args.catalog:
        if names_file(name):
            try:
                candidates.append(candidate(read_author_file(name).value))
            except ContextPlaneError as error:
                raise (error if (error.at or "").startswith(name) else error.under(f"{name}: ")) from None
            continue
        with registry_session(args, output) as session:
            candidates.extend(published_catalogs(session, [session.named_version(name)]))
    return tuple(candidates)


def read_older(args: Namespace, output: CommandOutput) -> "NamedFile | None":
    """The pack that --against names; without one, no store and no file is opened."""
    if args.against is None:
        return None
    from contextplane.model.reference import names_file

    if names_file(args.against):
        from contextplane.app.packs.files import read_pack_file

        return read_pack_file(args.against)
    from contextplane.app.registry.view import read_version
    from contextplane.cli.registry.act import registry_session

    with registry_session(args, output) as session:
        return read_version(session, args.against)
