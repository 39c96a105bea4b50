"""Importing the handoff packs of an archive.

They are checked against its header, and the new ones are stored. A pack is imported with its id, its revision numbers
and its times, and its history says that it was imported. An import never replaces anything.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.handoff.document import read_document
from contextplane.handoff.storage import ensure_page_key
from contextplane.model.archive import ArchivedHandoff, ArchiveInvalid, object_name
from contextplane.model.handoff import SCHEMA_VERSION, HandoffHistory, HandoffPack, KeptRevision, pack_bytes, read_pack
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.reference import HandoffRef
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.objects import ObjectReader
from contextplane.ports.world import Ids
from contextplane.store.handoff_stream import append_revision, history_of, record_revision

__all__ = ["HandoffDiverged", "IncomingHandoffs"]


_NOTHING = "nothing was imported"


class HandoffDiverged(ContextPlaneError):
    """The archive has another history of a handoff pack than this store. Neither replaces the other."""

    code: ClassVar[str] = "handoff_history_diverged"
    family: ClassVar[Family] = "conflict"


class IncomingHandoffs:
    """The handoff packs of one archive that is being imported: checked one by one, then stored together."""

    def __init__(self, packs: Sequence[ArchivedHandoff]) -> None:
        self._packs = packs
        self._expected = {kept.digest: (pack.id, kept) for pack in packs for kept in pack.revisions}
        self._updated: dict[Digest, Timestamp] = {}
        self._sizes: dict[Digest, int] = {}

    @property
    def missing(self) -> list[str]:
        """The revisions that the header names and the archive does not have."""
        return [
            f"{handoff_id}@{kept.revision}"
            for digest, (handoff_id, kept) in self._expected.items()
            if digest not in self._sizes
        ]

    def check(self, digest: Digest, data: bytes) -> None:
        """Refuse an object that is not the revision that the header says, in canonical form."""
        handoff_id, kept = self._expected[digest]
        try:
            pack = read_pack(data)
            read_document(msgspec.json.decode(data))
            self._updated[digest], _, _ = pack.updated, pack.expires, Timestamp.parse(pack.created_at)
            sound = pack_bytes(pack) == data and pack.schema_version == SCHEMA_VERSION
        except (ValueError, RecursionError, ContextPlaneError) as error:
            raise _invalid(digest, f"not a handoff pack: {getattr(error, 'message', error)}") from error
        if (pack.id, pack.revision) != (handoff_id.text, kept.revision):
            raise _invalid(digest, f"it is {pack.id}@{pack.revision}, and the header says {handoff_id}@{kept.revision}")
        if not sound:
            raise _invalid(digest, "a handoff pack whose bytes are not in the form that is known")
        self._sizes[digest] = len(data)

    def check_chains(self) -> None:
        """Refuse a pack whose revisions go back in time."""
        for pack in self._packs:
            times = [self._updated[kept.digest] for kept in pack.revisions]
            if times != sorted(times):
                raise ArchiveInvalid(f"the revisions of {pack.id} go back in time", hint=_NOTHING)

    def check_history(self, view: View) -> None:
        """Refuse a pack that has another history in this store."""
        for pack in self._packs:
            _split_revisions(view, pack)

    def record(self, tx: Transaction) -> None:
        """Record the kind of the objects, before they are visible."""
        for digest, size in self._sizes.items():
            record_revision(tx, digest, size)

    def store_new(
        self, catalog: Catalog, objects: ObjectReader, ids: Ids
    ) -> tuple[tuple[HandoffRef, ...], tuple[HandoffRef, ...]]:
        """Append the new revisions in one transaction; their objects are stored already.

        Return the new revisions, and those that are older than all that this store knows of their pack.
        """
        new: list[HandoffRef] = []
        old: list[HandoffRef] = []
        with catalog.write() as tx:
            for archived in self._packs:
                fresh, too_old = _split_revisions(tx, archived)
                for kept in fresh:
                    pack: HandoffPack = read_pack(objects.get(kept.digest))
                    size = self._sizes[kept.digest]
                    append_revision(tx, pack=pack, digest=kept.digest, size=size, kind="imported")
                new += [HandoffRef(id=archived.id, revision=kept.revision) for kept in fresh]
                old += [HandoffRef(id=archived.id, revision=kept.revision) for kept in too_old]
            ensure_page_key(tx, ids)
        return tuple(new), tuple(old)


def _split_revisions(view: View | Transaction, pack: ArchivedHandoff) -> tuple[list[KeptRevision], list[KeptRevision]]:
    """Return the revisions that are new here, and those older than the history here.

    `HandoffDiverged` if the two histories contradict each other.
    """
    history = history_of(view.streams, pack.id)
    here = {event.revision: event.digest for event in history.events if event.digest is not None}
    for kept in pack.revisions:
        if here.get(kept.revision, kept.digest) != kept.digest:
            raise _divergence(pack.id, f"another revision {kept.revision} is kept here")
    fresh = [kept for kept in pack.revisions if kept.revision > history.last]
    if fresh and here:
        _reject_gap(pack, history)
    return fresh, [kept for kept in pack.revisions if kept.revision < min(here, default=0)]


def _reject_gap(pack: ArchivedHandoff, history: HandoffHistory) -> None:
    """Refuse new revisions that do not follow the last one here, or that revive a pack which ended here."""
    if not history.alive:
        raise _divergence(pack.id, "it was deleted or collected here, and went on elsewhere")
    if history.last not in {kept.revision for kept in pack.revisions}:
        raise _divergence(pack.id, f"the archive does not have revision {history.last}, at which it is here")


def _divergence(handoff_id: HandoffId, why: str) -> HandoffDiverged:
    return HandoffDiverged(
        why, at=str(handoff_id), hint=f"{_NOTHING}; 'ctx handoff log {handoff_id}' lists what is here"
    )


def _invalid(digest: Digest, why: str) -> ArchiveInvalid:
    return ArchiveInvalid(why, at=f"#{object_name(digest)}", hint=_NOTHING)
