"""Making a store, or taking over one that is there already.

The store id in `config.json` is written last: it says that everything else is in place.
"""

import os
from typing import Literal

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.files.store_dir import NAME, Home, StoreExists
from contextplane.app.catalog import make_catalog, open_catalog
from contextplane.app.settings import Settings
from contextplane.model.value import Value

__all__ = ["Initialised", "adopt", "init"]


class Initialised(Value, frozen=True):
    """What `init` found and did. `inside`: the store of a folder above, which this one hides from here on."""

    path: str
    store_id: str
    what: Literal["created", "adopted", "completed", "present"]


def init(settings: Settings, folder: str | None = None) -> Initialised:
    """Make the store of `folder`. Running it again, or twice at once, is safe and changes nothing that is whole."""
    home = Home(path=_where(settings, folder))
    if os.path.lexists(home.path) and not os.path.isdir(home.path):
        raise StoreExists("something that is not a folder has this name already", at=home.path, hint="move it away")
    if not os.path.isdir(home.path):
        store_id = adopt(home, settings.database_url)
        home.hide_from_git(Disk())
        return Initialised(path=home.path, store_id=store_id, what="created")
    if not home.has_config():
        if not home.looks_like_a_store():
            raise StoreExists(
                "this folder holds other things, and no store", at=home.path, hint=f"name one that ends in {NAME}"
            )
        return Initialised(path=home.path, store_id=adopt(home, settings.database_url), what="completed")
    known = home.config()
    if known.store_id:
        open_catalog(home, known, settings.database_url).close()
        return Initialised(path=home.path, store_id=known.store_id, what="present")
    return Initialised(path=home.path, store_id=adopt(home, settings.database_url), what="adopted")


def adopt(home: Home, database_url: str | None) -> str:
    """Add to a folder whatever a store of ours has and this one lacks; return its store id."""
    disk = Disk()
    home.lay_out(disk)
    return make_catalog(home, database_url, disk)


def _where(settings: Settings, folder: str | None) -> str:
    """A folder that was named wins over `CTX_DIR`; a folder that is a store's own is meant as that."""
    if folder is None and settings.ctx_dir:
        return os.path.abspath(os.path.join(settings.cwd, settings.ctx_dir))
    place = os.path.abspath(os.path.join(settings.cwd, folder or "."))
    return place if os.path.basename(place) == NAME else os.path.join(place, NAME)
