"""What this store holds, how large it is, which schema it has.

The figures come from the catalog, so they cost the same however much is stored. They count what was
recorded; 'ctx fsck' looks at every file.
"""

import os
from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, clean, human_size

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", action="store_true", help="list the catalog's tables: truth, or index")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.platform import opened
    from contextplane.app.settings import from_environment
    from contextplane.store.status import contents

    with opened(from_environment()) as platform:
        here = contents(platform.catalog)
        path, store_id = platform.home.path, platform.store_id
        catalog_size = os.path.getsize(platform.home.catalog)
    screen.say(f"store     {clean(path)}")
    screen.say(f"id        {store_id}")
    screen.say(f"format    {platform.format}, catalog schema {here.schema}, {human_size(catalog_size)}")
    screen.say(f"packs     {here.execution_packs:,} execution packs")
    screen.say(f"objects   {here.objects:,} recorded, {human_size(here.size)}")
    for tally in here.kinds:
        screen.say(f"          {tally.objects:>9,}  {tally.kind:<16} {human_size(tally.size):>10}")
    if args.tables:
        screen.say("tables")
        for table in here.tables:
            screen.say(f"  {table.role:<6} {table.name:<14} {table.note}")
    screen.answer(
        {"path": path, "store_id": store_id, "format": platform.format, "catalog_bytes": catalog_size, **_told(here)}
    )
    return OK


def _told(here: object) -> dict[str, object]:
    import msgspec

    told: dict[str, object] = msgspec.to_builtins(here)
    return told
