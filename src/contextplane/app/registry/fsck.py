"""The registry and the keyring in the care of a store: what a check compares of them, and their index made anew.

The names of streams stand here once more, so that a store without a registry loads none of its code.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.adapters.files.key_files import FileKeys
from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import ROOT
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import View
from contextplane.ports.keys import SignatureCheck
from contextplane.store.damage import Comparison, Finding

if TYPE_CHECKING:
    from contextplane.store.rebuild import Indexing
    from contextplane.trust.checkpoint import Checkpoint
    from contextplane.trust.keyring import TrustedKeys

__all__ = ["RegistrySummary", "registry_comparison", "registry_indexing", "registry_kept", "registry_summary"]

_KEYRING, _REGISTRY = "trust/keyring", "registry/"
_LOG, _CHECKPOINTS = "registry/log", "registry/checkpoints"


class RegistrySummary(Value, frozen=True):
    """How many events the registry has, and of when its newest checkpoint says to be. Nobody verified that here."""

    events: int
    checkpoint: str | None


def registry_summary(platform: Platform) -> RegistrySummary | None:
    """None when nothing was ever written to it."""
    with platform.catalog.read() as view:
        events, head = view.streams.head(_LOG), view.streams.head(_CHECKPOINTS)
        last = next(view.streams.read(_CHECKPOINTS, after=head - 1), None) if head else None
    if not events and last is None:
        return None
    from contextplane.registry.log import read_note

    try:
        time = str(read_note(last.body)[1]) if last is not None else None
    except ContextPlaneError:
        time = None
    return RegistrySummary(events=events, checkpoint=time)


def registry_indexing(platform: Platform) -> "Indexing":
    """Their index, made anew from the streams."""
    from contextplane.registry.writer import index_registry

    def size_of(digest: Digest) -> int:
        try:
            return platform.objects.size(digest)
        except ContextPlaneError:
            return 0  # a check tells of it

    return lambda tx: index_registry(tx, size_of)


def registry_kept(platform: Platform) -> Comparison:
    """Everything that its events name is kept: what whoever collects must know, and no more than that."""
    with platform.catalog.read() as view:
        if next(view.streams.names(_REGISTRY), None) is None:
            return lambda _view: iter(())
    from contextplane.registry.writer import compare_objects

    def compared(view: View) -> Iterator[Finding]:
        for what, why in compare_objects(view):
            if ROOT not in view.objects.wanted_as(Digest.parse(what)):
                yield Finding(state="index", what=what, why=why)

    return compared


def registry_comparison(platform: Platform) -> Comparison:
    """What is signed, compared with what is there: the keyring, the log's length and root, the ends of streams.

    What this client knew of them is recalled here, before the view is opened that is compared with it.
    """
    files = FileKeys(platform.home.inside("keys"))
    with platform.catalog.read() as view:
        there = view.streams.head(_KEYRING) > 0 or next(view.streams.names(_REGISTRY), None) is not None
    if not there and not any(os.path.lexists(files.memory(of)) for of in ("keyring", "registry")):
        return lambda _view: iter(())
    try:
        # Loaded only where there is a registry, or was one: signatures take a library that no other check needs.
        from contextplane.app.registry.keys import KeyDesk
        from contextplane.app.registry.memory import RegistryMemory

        desk = KeyDesk(platform, lambda: None)
        known, seen = desk.memory.known(), RegistryMemory(files).recalled()
    except ContextPlaneError as error:
        unreadable = Finding(state="unreadable", what=error.at or "keys", why=_told(error))
        return lambda _view: iter([unreadable])
    return lambda view: _compared(view, platform.store_id, desk.check, known, seen)


def _compared(
    view: View, store_id: str, check: SignatureCheck, known: "TrustedKeys", seen: "Checkpoint | None"
) -> Iterator[Finding]:
    from contextplane.registry.open import open_registry
    from contextplane.registry.stream_heads import HeadsDamaged
    from contextplane.registry.streams import origin_of
    from contextplane.registry.writer import compare_ends, compare_objects
    from contextplane.trust.keyring import TrustedKeys
    from contextplane.trust.keyring_stream import followed

    try:
        followed(view.streams, TrustedKeys(), check)
        keys = followed(view.streams, known, check)
    except ContextPlaneError as error:
        yield Finding(state="corrupt", what=_KEYRING, why=_told(error))
        return
    try:
        opened = open_registry(view, keys, check, origin=origin_of(store_id), seen=seen)
    except ContextPlaneError as error:
        # A registry that waits for a fresh checkpoint is closed: nothing of it is compared, and nothing known damaged.
        closed = "renewable" in error.details
        yield Finding(state="unreadable" if closed else "corrupt", what=error.at or _REGISTRY, why=_told(error))
        return
    for trouble in compare_ends(view, opened.standing):
        mended = trouble.code == HeadsDamaged.code  # by a rebuild; what is signed is not
        yield Finding(state="index" if mended else "corrupt", what=trouble.at, why=trouble.message)
    for what, why in compare_objects(view):
        yield Finding(state="index", what=what, why=why)


def _told(error: ContextPlaneError) -> str:
    """Why, and the way out."""
    return f"{error.code}: {error.message}" + (f" ({error.hint})" if error.hint else "")
