"""Show what this store holds, its size and its schema.

The figures come from the catalog, so the command is fast for a store of any size. 'ctx fsck' checks the files
themselves.

Examples:
  ctx status             count the contents of the store
  ctx status --tables    list the tables of the catalog, too
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean, human_size, quantity

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", action="store_true", help="list the tables of the catalog, too")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.settings import from_environment
    from contextplane.app.status import store_status, trust_root_summary
    from contextplane.cli.store import open_store

    with open_store(output) as platform:
        status = store_status(platform)
        tables = platform.catalog.tables() if args.tables else ()
        path, store_id = platform.home.path, platform.store_id
    root = trust_root_summary(from_environment(), path)
    contents, registry, catalog_size = status.contents, status.registry, status.catalog_size
    output.line(f"store     {clean(path)}")
    output.line(f"id        {store_id or '(made by another program, and not writable)'}")
    output.line(f"format    {platform.format}")
    output.line(f"catalog   schema {contents.schema}, {human_size(catalog_size)}")
    output.line(f"packs     {quantity(contents.execution_packs, 'execution pack')}")
    output.line(f"objects   {contents.objects:,} recorded, {human_size(contents.size)}")
    for tally in contents.kinds:
        output.line(f"          {tally.objects:,} {clean(tally.kind)}, {human_size(tally.size)}")
    if registry is not None:
        signed = f", last signed {registry.checkpoint}" if registry.checkpoint else ", and no checkpoint"
        output.line(f"registry  {quantity(registry.events, 'event')}{signed}")
    for key_id in root.key_ids if root is not None else ():
        output.line(f"root      key {key_id}")
    if root is not None and (checkpoint := root.checkpoint) is not None:
        signed = f", signed {checkpoint.time}" if checkpoint.time else ""
        output.line(f"root      checkpoint of {clean(checkpoint.origin)}, {quantity(checkpoint.size, 'event')}{signed}")
    for moment in contents.lost:
        lost = f"lost      the catalog was lost and started again at {clean(moment)}: earlier events may be missing"
        output.failure_line(output.paint("yellow", lost))
    for table in tables:
        output.line(f"{table.role:<9} {clean(table.name):<14} {clean(table.note)}")
    answer = {
        "path": path,
        "store_id": store_id,
        "format": platform.format,
        "schema": contents.schema,
        "catalog_size": catalog_size,
        "execution_packs": contents.execution_packs,
        "objects": contents.objects,
        "size": contents.size,
        "kinds": contents.kinds,
        "registry": registry,
        "trust_root": root,
        "lost": contents.lost,
    }
    output.answer(answer | ({"tables": tables} if args.tables else {}))
    return OK
