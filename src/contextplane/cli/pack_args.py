"""The documents that a pack is judged with, of files or the registry: `--catalog` and `--against`."""

from argparse import Namespace
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput
from contextplane.model.reference import names_file

if TYPE_CHECKING:
    from contextplane.app.packs.files import NamedFile
    from contextplane.app.registry.catalogs import Candidate

__all__ = ["read_catalogs", "read_older"]


def read_catalogs(args: Namespace, output: CommandOutput) -> "tuple[Candidate, ...]":
    """Read the decision catalogs that --catalog names. A store is opened only for one of the registry."""
    if not args.catalog:
        return ()
    from contextplane.app.registry.catalogs import catalog_in_file, published_catalogs
    from contextplane.cli.registry.session import registry_session

    candidates = []
    for name in args.catalog:
        if names_file(name):
            candidates.append(catalog_in_file(name))
            continue
        with registry_session(args, output) as session:
            candidates.extend(published_catalogs(session, [session.named_version(name)]))
    return tuple(candidates)


def read_older(args: Namespace, output: CommandOutput) -> "NamedFile | None":
    """Read the version before, which --against names; None if it names none."""
    if args.against is None:
        return None
    if names_file(args.against):
        from contextplane.app.packs.files import read_pack_file

        return read_pack_file(args.against)
    from contextplane.app.registry.view import read_version
    from contextplane.cli.registry.session import registry_session

    with registry_session(args, output) as session:
        return read_version(session, args.against)
