"""Making a store, or taking over one that is there already.

The store id in `config.json` is written last: it says that everything else is in place.
"""

import os
from typing import Literal

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.files.home import NAME, Home, StoreExists
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.system import SystemIds
from contextplane.app.settings import Settings
from contextplane.model.value import Value

__all__ = ["Initialised", "adopt", "init"]


class Initialised(Value, frozen=True):
    """What `init` found and did."""

    path: str
    store_id: str
    what: Literal["created", "adopted", "completed", "present"]


def init(settings: Settings, folder: str) -> Initialised:
    """Make the store of `folder`. Running it again, or twice at once, is safe and changes nothing that is whole."""
    home = Home(path=os.path.abspath(settings.ctx_dir or os.path.join(settings.cwd, folder, NAME)))
    if os.path.lexists(home.path) and not os.path.isdir(home.path):
        raise StoreExists(
            f"something named {NAME} is here already and is not a folder", at=home.path, hint="move it away"
        )
    if not os.path.isdir(home.path):
        return Initialised(path=home.path, store_id=adopt(home), what="created")
    if not os.path.lexists(home.inside("config.json")):
        return Initialised(path=home.path, store_id=adopt(home), what="completed")
    known = home.config().store_id
    if known:
        SqliteCatalog.open(home.catalog, known).close()
        return Initialised(path=home.path, store_id=known, what="present")
    return Initialised(path=home.path, store_id=adopt(home), what="adopted")


def adopt(home: Home) -> str:
    """Add to a folder whatever a store of ours has and this one lacks; return its store id."""
    disk = Disk()
    home.lay_out(disk)
    catalog, store_id = SqliteCatalog.create(home.catalog, f"store_{SystemIds().token()}")
    catalog.close()
    home.write_config(store_id, disk)
    return store_id
