"""Handoff packs in archives: which revisions travel, whether those that come are what they say, and taking them in.

A pack travels with all its revisions up to the one that is named. It comes with its id, its numbers and its times, and
its history here says that it was imported. Nothing that is here is ever replaced.
"""

import os
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from contextplane.adapters.system import SystemIds
from contextplane.app.handoff.store import handoff_store
from contextplane.app.platform import Platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError, Family
from contextplane.handoff.document import read_document
from contextplane.handoff.errors import HandoffNotFound
from contextplane.handoff.storage import append_revision, ensure_page_key, history_of, read_revision, record_revision
from contextplane.model.archive import ArchiveInvalid, Carried, object_name
from contextplane.model.handoff import SCHEMA_VERSION, HandoffHistory, HandoffPack, Kept, pack_bytes, read_pack
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.reference import HandoffRef
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Transaction, View
from contextplane.ports.objects import ObjectReader
from contextplane.store.index import AtHand

__all__ = ["HandoffDiverged", "Incoming", "at_handoffs", "carried", "waiting"]

_NOTHING = "nothing of this archive was taken"


class HandoffDiverged(ContextPlaneError):
    """The archive has another history of a handoff pack than this store. Neither replaces the other."""

    code: ClassVar[str] = "handoff_history_diverged"
    family: ClassVar[Family] = "conflict"


def at_handoffs(settings: Settings) -> Settings:
    """Settings that lead to the store of handoff packs; where there is none yet, to the one that we are in."""
    path, _ = handoff_store(settings)
    return msgspec.structs.replace(settings, ctx_dir=path) if os.path.isdir(path) else settings


def carried(platform: Platform, refs: Iterable[HandoffRef]) -> tuple[Carried, ...]:
    """The revisions that travel with these, each at a number, all of them read. Of a pack twice, the higher counts."""
    last: dict[HandoffId, int] = {}
    for ref in refs:
        last[ref.id] = max(last.get(ref.id, 0), ref.revision or 0)
    return tuple(_one(platform, handoff_id, last[handoff_id]) for handoff_id in sorted(last))


def _one(platform: Platform, handoff_id: HandoffId, last: int) -> Carried:
    with platform.catalog.read() as view:
        history = history_of(view.streams, handoff_id)
    kept = tuple(revision for revision in history.revisions if revision.revision <= last)
    if not kept or kept[-1].revision != last:
        raise HandoffNotFound(
            "there is no such revision", at=f"{handoff_id}@{last}", hint="'ctx handoff log' lists them"
        )
    for one in kept:
        read_revision(platform.catalog, platform.objects, one.digest, handoff_id=handoff_id, revision=one.revision)
    return Carried(id=handoff_id, revisions=kept)


def waiting(platform: Platform, packs: Iterable[Carried]) -> ObjectReader:
    """The objects, also those revisions that could not become files so far, in a store that cannot be written."""
    with platform.catalog.read() as view:
        found = {kept.digest: view.pending.get(kept.digest) for pack in packs for kept in pack.revisions}
    contents = {digest: data for digest, data in found.items() if data is not None}
    sizes = {digest: len(data) for digest, data in contents.items()}
    return AtHand(platform.objects, sizes=sizes, contents=contents)


class Incoming:
    """The handoff packs of one archive on their way in."""

    def __init__(self, packs: Sequence[Carried]) -> None:
        self._packs = packs
        self._said = {kept.digest: (pack.id, kept) for pack in packs for kept in pack.revisions}
        self._updated: dict[Digest, Timestamp] = {}
        self._sizes: dict[Digest, int] = {}

    @property
    def missing(self) -> list[str]:
        """The revisions that the header names and that did not come."""
        return [
            f"{handoff_id}@{kept.revision}"
            for digest, (handoff_id, kept) in self._said.items()
            if digest not in self._sizes
        ]

    def check(self, digest: Digest, data: bytes) -> None:
        """Refuse an object that is not the revision that the header says, in the one form that a pack has."""
        handoff_id, kept = self._said[digest]
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

    def foresee(self, view: View) -> None:
        """Refuse what this store has another history of."""
        for pack in self._packs:
            _sorted_out(view, pack)

    def record(self, tx: Transaction) -> None:
        """Say what the objects are, before they are visible."""
        for digest, size in self._sizes.items():
            record_revision(tx, digest, size)

    def take(self, platform: Platform) -> tuple[tuple[HandoffRef, ...], tuple[HandoffRef, ...]]:
        """Write down what is new, in one transaction, and tell it, and what is too old. The objects are stored."""
        new: list[HandoffRef] = []
        old: list[HandoffRef] = []
        with platform.catalog.write() as tx:
            for one in self._packs:
                fresh, too_old = _sorted_out(tx, one)
                for kept in fresh:
                    pack: HandoffPack = read_pack(platform.objects.get(kept.digest))
                    size = self._sizes[kept.digest]
                    append_revision(tx, pack=pack, digest=kept.digest, size=size, kind="imported")
                new += [HandoffRef(id=one.id, revision=kept.revision) for kept in fresh]
                old += [HandoffRef(id=one.id, revision=kept.revision) for kept in too_old]
            ensure_page_key(tx, SystemIds())
        return tuple(new), tuple(old)


def _sorted_out(view: View | Transaction, one: Carried) -> tuple[list[Kept], list[Kept]]:
    """What is new of a pack, and what is older than its history here; `HandoffDiverged` when the two do not agree."""
    history = history_of(view.streams, one.id)
    here = {event.revision: event.digest for event in history.happened if event.digest is not None}
    for kept in one.revisions:
        if here.get(kept.revision, kept.digest) != kept.digest:
            raise _diverged(one.id, f"another revision {kept.revision} is kept here")
    fresh = [kept for kept in one.revisions if kept.revision > history.last]
    if fresh and here:
        _refuse_gap(one, history)
    return fresh, [kept for kept in one.revisions if kept.revision < min(here, default=0)]


def _refuse_gap(one: Carried, history: HandoffHistory) -> None:
    """What is new goes on where the history here ends, and does not bring back what was ended here."""
    if not history.alive:
        raise _diverged(one.id, "it was deleted or collected here, and went on elsewhere")
    if history.last not in {kept.revision for kept in one.revisions}:
        raise _diverged(one.id, f"the archive does not have revision {history.last}, at which it is here")


def _diverged(handoff_id: HandoffId, why: str) -> HandoffDiverged:
    return HandoffDiverged(
        why, at=str(handoff_id), hint=f"{_NOTHING}; 'ctx handoff log {handoff_id}' tells what is here"
    )


def _invalid(digest: Digest, why: str) -> ArchiveInvalid:
    return ArchiveInvalid(why, at=f"#{object_name(digest)}", hint=_NOTHING)
