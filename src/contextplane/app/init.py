"""Creates a store, or adopts one that another program made.

The store id in `config.json` is written last: it says that everything else is in place.
"""

import os
from collections.abc import Sequence
from typing import Literal

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.files.store_dir import NAME, StoreDirectory, StoreExists
from contextplane.app.catalog import make_catalog, open_catalog
from contextplane.app.settings import Settings
from contextplane.model.value import Value

__all__ = ["InitResult", "adopt", "init"]


class InitResult(Value, frozen=True):
    """The store that `init` made or found, and what it did."""

    path: str
    store_id: str
    what: Literal["created", "adopted", "completed", "present"]


def init(settings: Settings, folder: str | None = None, trust_root: Sequence[str] = ()) -> InitResult:
    """Create the store of `folder`. Idempotent, also when two processes run it at once.

    `trust_root`: what this client holds the store to, as a user typed it; none leaves what was stored before.
    """
    if not trust_root:
        return _init(settings, folder)
    from contextplane.app.trust_root import read_trust_root, store_trust_root

    root = read_trust_root(trust_root, settings)  # read first: nothing is made if it is refused
    done = _init(settings, folder)
    store_trust_root(root, settings, done.path)
    return done


def _init(settings: Settings, folder: str | None) -> InitResult:
    home = StoreDirectory(path=_store_path(settings, folder))
    if os.path.lexists(home.path) and not os.path.isdir(home.path):
        raise StoreExists("something that is not a folder has this name already", at=home.path, hint="move it away")
    if not os.path.isdir(home.path):
        store_id = adopt(home, settings.database_url)
        home.hide_from_git(Disk())
        _forget_earlier_store(settings, home.path)
        return InitResult(path=home.path, store_id=store_id, what="created")
    home.reject_links()
    if not home.has_config():
        if not home.looks_like_store():
            raise StoreExists(
                "this folder holds other things, and no store", at=home.path, hint=f"name one that ends in {NAME}"
            )
        return InitResult(path=home.path, store_id=adopt(home, settings.database_url), what="completed")
    known = home.config()
    if known.store_id:
        open_catalog(home, known, settings.database_url).close()
        return InitResult(path=home.path, store_id=known.store_id, what="present")
    return InitResult(path=home.path, store_id=adopt(home, settings.database_url), what="adopted")


def _forget_earlier_store(settings: Settings, path: str) -> None:
    """Forget what this client knew of a store that was here before. What its user trusts stays."""
    from contextplane.adapters.files.client_state import ClientState, StoreMemory

    state = ClientState(settings.state_dir, path)
    if os.path.lexists(state.path):
        state.update(lambda memory: StoreMemory(path=memory.path, trust_root=memory.trust_root))


def adopt(home: StoreDirectory, database_url: str | None) -> str:
    """Add to a folder all that a store needs and that is missing there; return the store id."""
    disk = Disk()
    home.lay_out(disk)
    return make_catalog(home, database_url, disk)


def _store_path(settings: Settings, folder: str | None) -> str:
    """Return the path of the store. A named folder wins over `CTX_DIR`; `.ctx` is the store itself."""
    if folder is None and settings.ctx_dir:
        return os.path.abspath(os.path.join(settings.cwd, settings.ctx_dir))
    place = os.path.abspath(os.path.join(settings.cwd, folder or "."))
    return place if os.path.basename(place) == NAME else os.path.join(place, NAME)
