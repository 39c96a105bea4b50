"""What `fsck`, `gc` and rebuild do with the registry and the keyring of a store.

The names of streams are repeated here, so that a store without a registry loads none of its code.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import ROOT
from contextplane.model.ids import Digest
from contextplane.ports.catalog import View
from contextplane.store.damage import Comparison, FsckFinding

if TYPE_CHECKING:
    from contextplane.app.registry.keys import KeyStore
    from contextplane.store.rebuild import IndexBuilder
    from contextplane.trust.checkpoint import Checkpoint

__all__ = ["registry_comparison", "registry_indexing", "registry_retention"]

_KEYRING, _REGISTRY = "trust/keyring", "registry/"


def registry_indexing(platform: Platform) -> "IndexBuilder":
    """Return the function that rebuilds the index of the registry from its streams."""
    from contextplane.registry.writer import rebuild_index

    def size_of(digest: Digest) -> int:
        try:
            return platform.objects.size(digest)
        except ContextPlaneError:
            return 0  # fsck reports it

    return lambda tx: rebuild_index(tx, size_of)


def registry_retention(platform: Platform) -> Comparison:
    """Compare: every object that its events name is a root. It is all that `gc` needs to know."""
    with platform.catalog.read() as view:
        if next(view.streams.names(_REGISTRY), None) is None:
            return lambda _view: iter(())
    from contextplane.registry.writer import compare_objects

    def compare(view: View) -> Iterator[FsckFinding]:
        for what, why in compare_objects(view):
            if ROOT not in view.objects.roles_of(Digest.parse(what)):
                yield FsckFinding(state="index", what=what, why=why)

    return compare


def registry_comparison(platform: Platform) -> Comparison:
    """Compare what is signed with what is stored: keyring, length and root of the log, stream heads.

    What this client remembers is loaded here, before the view that is compared with it is opened.
    """
    with platform.catalog.read() as view:
        exists = view.streams.head(_KEYRING) > 0 or next(view.streams.names(_REGISTRY), None) is not None
    if not exists and not os.path.lexists(platform.client_state.path):
        return lambda _view: iter(())
    try:
        # Loaded only where there is a registry, or was one: signatures take a library that no other check needs.
        from contextplane.app.registry.keys import KeyStore

        key_store = KeyStore(platform, lambda: None)
        seen = key_store.memory.load()
        key_store.memory.load_position()
    except ContextPlaneError as error:
        unreadable = FsckFinding(state="unreadable", what=error.at or "keys", why=_error_text(error))
        return lambda _view: iter([unreadable])
    return lambda view: _compare_registry(view, key_store, seen)


def _compare_registry(view: View, key_store: "KeyStore", seen: "Checkpoint | None") -> Iterator[FsckFinding]:
    from contextplane.registry.open import open_registry
    from contextplane.registry.stream_heads import HeadsDamaged
    from contextplane.registry.writer import compare_drafts, compare_ends, compare_objects

    try:
        keys, seen = key_store.follow_seen(view.streams, seen)
    except ContextPlaneError as error:
        yield FsckFinding(state="corrupt", what=_KEYRING, why=_error_text(error))
        return
    try:
        opened = open_registry(
            view, keys, key_store.check, origin=key_store.origin, seen=seen, root=key_store.memory.root
        )
    except ContextPlaneError as error:
        # A registry that needs a fresh checkpoint is closed: nothing of it is compared, and no damage is known.
        closed = "renewable" in error.details
        yield FsckFinding(
            state="unreadable" if closed else "corrupt", what=error.at or _REGISTRY, why=_error_text(error)
        )
        return
    for problem in compare_ends(view, opened.newest):
        mended = problem.code == HeadsDamaged.code  # a rebuild mends these; what is signed it cannot mend
        yield FsckFinding(state="index" if mended else "corrupt", what=problem.at, why=problem.message)
    for what, why in compare_objects(view):
        yield FsckFinding(state="index", what=what, why=why)
    try:
        for what, why in compare_drafts(view, opened.reader):
            yield FsckFinding(state="index", what=what, why=why)
    except HeadsDamaged:
        pass  # reported above
    except ContextPlaneError as error:
        yield FsckFinding(state="corrupt", what=error.at or _REGISTRY, why=_error_text(error))


def _error_text(error: ContextPlaneError) -> str:
    """Return code, message and hint of an error in one line."""
    return f"{error.code}: {error.message}" + (f" ({error.hint})" if error.hint else "")
