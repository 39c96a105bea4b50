"""What this store holds, how large it is, which schema it has.

The figures come from the catalog, so they cost the same however much is stored. They count what was
recorded; 'ctx fsck' looks at every file.
"""

import os
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean, quantity, human_size

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", action="store_true", help="list the catalog's tables: truth, or index")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.fsck import registry_summary
    from contextplane.cli.store import open_store
    from contextplane.store.status import store_contents

    with open_store(output) as platform:
        here, registry = store_contents(platform.catalog), registry_summary(platform)
        tables = platform.catalog.tables() if args.tables else ()
        path, store_id = platform.home.path, platform.store_id
        on_disk = os.path.exists(platform.home.catalog)
        catalog_size = os.path.getsize(platform.home.catalog) if on_disk else 0
    output.line(f"store     {clean(path)}")
    output.line(f"id        {store_id or '(another program made this store, and it cannot be written)'}")
    output.line(f"format    {platform.format}")
    output.line(f"catalog   schema {here.schema}, {human_size(catalog_size)}")
    output.line(f"packs     {quantity(here.execution_packs, 'execution pack')}")
    output.line(f"objects   {here.objects:,} recorded, {human_size(here.size)}")
    for tally in here.kinds:
        output.line(f"          {tally.objects:,} {clean(tally.kind)}, {human_size(tally.size)}")
    if registry is not None:
        signed = f", last signed {registry.checkpoint}" if registry.checkpoint else ", and no checkpoint"
        output.line(f"registry  {quantity(registry.events, 'event')}{signed}")
    for moment in here.lost:
        lost = f"lost      the catalog was lost and begun anew at {clean(moment)}: what happened before may be missing"
        output.failure_line(output.paint("yellow", lost))
    for table in tables:
        output.line(f"{table.role:<9} {clean(table.name):<14} {clean(table.note)}")
    answer = {
        "path": path,
        "store_id": store_id,
        "format": platform.format,
        "schema": here.schema,
        "catalog_size": catalog_size,
        "execution_packs": here.execution_packs,
        "objects": here.objects,
        "size": here.size,
        "kinds": here.kinds,
        "registry": registry,
        "lost": here.lost,
    }
    output.answer(answer | ({"tables": tables} if args.tables else {}))
    return OK
