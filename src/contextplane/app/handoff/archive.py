"""Exports handoff packs to an archive: which revisions, and their objects.

A pack is exported with all its revisions up to the named one. `handoff.archive` imports them.
"""

import os
from collections.abc import Iterable

import msgspec

from contextplane.app.handoff.place import handoff_paths
from contextplane.app.platform import Platform
from contextplane.app.settings import Settings
from contextplane.handoff.errors import HandoffNotFound
from contextplane.handoff.storage import read_revision
from contextplane.model.archive import ArchivedHandoff
from contextplane.model.ids import HandoffId
from contextplane.model.reference import HandoffRef
from contextplane.ports.objects import ObjectReader
from contextplane.store.handoff_stream import history_of
from contextplane.store.index import CachedObjectReader

__all__ = ["handoff_store_settings", "objects_with_pending", "revisions_to_export"]


def handoff_store_settings(settings: Settings) -> Settings:
    """Return settings for the store of handoff packs; if it does not exist, for the current store."""
    path, _ = handoff_paths(settings)
    return msgspec.structs.replace(settings, ctx_dir=path) if os.path.isdir(path) else settings


def revisions_to_export(platform: Platform, refs: Iterable[HandoffRef]) -> tuple[ArchivedHandoff, ...]:
    """Collect the revisions to export with these, each verified by reading it.

    If a pack is named twice, the higher revision counts.
    """
    last: dict[HandoffId, int] = {}
    for ref in refs:
        last[ref.id] = max(last.get(ref.id, 0), ref.revision or 0)
    return tuple(_archived_handoff(platform, handoff_id, last[handoff_id]) for handoff_id in sorted(last))


def _archived_handoff(platform: Platform, handoff_id: HandoffId, last: int) -> ArchivedHandoff:
    with platform.catalog.read() as view:
        history = history_of(view.streams, handoff_id)
    revisions = tuple(revision for revision in history.revisions if revision.revision <= last)
    if not revisions or revisions[-1].revision != last:
        raise HandoffNotFound(
            "there is no such revision", at=f"{handoff_id}@{last}", hint="'ctx handoff log' lists them"
        )
    for entry in revisions:
        read_revision(platform.catalog, platform.objects, entry.digest, handoff_id=handoff_id, revision=entry.revision)
    return ArchivedHandoff(id=handoff_id, revisions=revisions)


def objects_with_pending(platform: Platform, packs: Iterable[ArchivedHandoff]) -> ObjectReader:
    """Return the objects, with the revisions that are still pending because the store cannot be written."""
    with platform.catalog.read() as view:
        pending = {kept.digest: view.pending.get(kept.digest) for pack in packs for kept in pack.revisions}
    contents = {digest: data for digest, data in pending.items() if data is not None}
    sizes = {digest: len(data) for digest, data in contents.items()}
    return CachedObjectReader(platform.objects, sizes=sizes, contents=contents)
