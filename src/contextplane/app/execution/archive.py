"""Packs out of a store into one file, and from such a file into a store: all that they reach, or nothing."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from contextplane.adapters.files.archive import ArchiveReader, Member, reading_archive, writing_archive
from contextplane.app.execution.pack import WatchedBatch, register, watched
from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.archive import (
    HEADER_NAME,
    MEMBERS_MOST,
    ArchiveCorrupt,
    ArchiveInvalid,
    ArchiveTooLarge,
    ArchiveTooNew,
    Header,
    entry_bytes,
    entry_name,
    header_bytes,
    object_name,
)
from contextplane.model.execution.manifest import MANIFEST_MOST
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction
from contextplane.ports.objects import Batch, ObjectReader, Objects, SourceUnreadable
from contextplane.ports.world import Progress
from contextplane.store.closure import PackIncomplete, Reach, reach
from contextplane.store.damage import PutBack, not_whole, short, telling, waits

if TYPE_CHECKING:
    from contextplane.app.handoff.archive import Incoming
    from contextplane.model.reference import HandoffRef

__all__ = ["Exported", "Imported", "TargetInside", "export_packs", "import_archive", "import_packs"]

_NOTHING = "nothing of this archive was taken"


class TargetInside(ContextPlaneError):
    """An archive would be written into the store itself."""

    code: ClassVar[str] = "archive_target_inside_store"
    family: ClassVar[Family] = "refused"


class Exported(Value, frozen=True):
    """What was written. `absent`: parents that are not in this store, so that the archive does not have them.

    `new`: no file of that name, with the very same bytes, was there before.
    """

    header: Header
    objects: int
    size: int
    new: bool
    absent: tuple[Digest, ...]


class Imported(Value, frozen=True):
    """What came, and what of it was new here. `absent`: parents that are neither in the archive nor in this store.

    `put_back`: the objects that had been damaged here, or were missing and something here refers to them; these are not
    new. `new_handoffs`: the revisions of handoff packs that were new. `older_handoffs`: those that are older than all
    that this store knows of their pack, and stayed out.
    """

    header: Header
    objects: int
    size: int
    new_packs: tuple[Digest, ...]
    new_objects: int
    absent: tuple[Digest, ...]
    put_back: tuple[PutBack, ...] = ()
    new_handoffs: "tuple[HandoffRef, ...]" = ()
    older_handoffs: "tuple[HandoffRef, ...]" = ()


def export_packs(
    platform: Platform,
    packs: Sequence[Digest],
    file: str,
    *,
    handoffs: "Sequence[HandoffRef]" = (),
    progress: Progress | None = None,
) -> Exported:
    """Write packs and all that they reach. The same packs give the same bytes. `handoffs` are at revisions."""
    _refuse_inside(file, platform.home.path)
    found = reach(packs, platform.objects)
    # What stands in the place of an object is not missing: reading it says what it is.
    found.require(lambda digest: platform.objects.has(digest) or platform.objects.check(digest).state != "missing")
    _refuse_lost(platform, found)
    header = Header(roots=tuple(sorted(set(packs))), parents=tuple(sorted(found.parents.keys() - set(packs))))
    objects: ObjectReader = platform.objects
    if handoffs:
        from contextplane.app.handoff.archive import carried, waiting

        header = replace(header, handoffs=carried(platform, handoffs))
        objects = waiting(platform, header.handoffs)
    first = header_bytes(header)
    revisions = {kept.digest for handoff in header.handoffs for kept in handoff.revisions}
    # What is only mentioned stays: a text in a parameter must not be able to send another run's contents along.
    members = sorted(found.parents.keys() | found.contents.keys() | revisions)
    if 1 + len(members) + len(header.packs) > MEMBERS_MOST:
        raise ArchiveTooLarge(f"more than {MEMBERS_MOST:,} members", hint="write the packs to several archives")
    if progress is not None:
        progress.expect(sum(map(objects.size, members)))
    with writing_archive(file) as archive:
        archive.add(HEADER_NAME, len(first), [first])
        for digest in members:
            chunks = objects.stream(digest)
            with telling(found.called(digest), "it", digest):
                size = objects.size(digest)
                archive.add(object_name(digest), size, watched(chunks, progress) if progress else chunks)
        for pack in header.packs:
            entry = entry_bytes(pack)
            archive.add(entry_name(pack), len(entry), [entry])
    return Exported(
        header=header,
        objects=len(members),
        size=archive.written,
        new=archive.new,
        absent=tuple(found.absent_parents()),
    )


def _refuse_lost(platform: Platform, found: Reach) -> None:
    """A parent that was never here is told and left out. One that is registered, and cannot be read, was lost."""
    absent = found.absent_parents()
    lost = sorted({*absent} & {*platform.entries.names()}) if absent else []
    if lost:
        child = next(pack for pack, parent in found.parents.items() if parent == lost[0])
        raise PackIncomplete(
            f"its parent {short(lost[0])} is registered here, and its manifest is missing",
            at=f"ctx://{child.hex}",
            hint="packing the log of the parent again, or importing it from where it is whole, brings it back",
            details={
                "missing": [{"ref": f"ctx://{digest.hex}", "digest": str(digest)} for digest in lost],
                "more": False,
            },
        )


def _refuse_inside(file: str, store: str) -> None:
    """A store's own files are never what an archive is written over."""
    place = os.path.join(os.path.realpath(os.path.dirname(file) or "."), os.path.basename(file))
    inside = os.path.commonpath([os.path.realpath(store), os.path.realpath(place)]) == os.path.realpath(store)
    if file != "-" and inside:
        raise TargetInside("this is a place inside the store", at=file, hint="write the archive elsewhere")


def import_packs(platform: Platform, file: str) -> Imported:
    """Take the packs of an archive into a store."""
    return import_archive(file, lambda _: nullcontext(platform))


def import_archive(
    file: str, store: Callable[[Header], AbstractContextManager[Platform]], progress: Progress | None = None
) -> Imported:
    """Take the packs of an archive into the store that is opened when its header is known."""
    if os.path.isdir(file):
        raise SourceUnreadable("is a folder, not an archive", at=file, hint="name the file that 'ctx export' wrote")
    if progress is not None and os.path.isfile(file):
        progress.expect(os.path.getsize(file))
    try:
        with reading_archive(file) as archive, store(archive.header) as platform:
            return _import(platform, archive, progress)
    except (ArchiveInvalid, ArchiveCorrupt, ArchiveTooNew, SourceUnreadable) as error:
        raise error.under(file) from None


def _import(platform: Platform, archive: ArchiveReader, progress: Progress | None) -> Imported:
    """Nothing is visible before all of it is verified."""
    with platform.objects.batch() as batch:
        taking = _Taking(archive, WatchedBatch(batch, progress) if progress else batch, platform.objects)
        taking.take()
        if taking.handoffs is not None:
            with platform.catalog.read() as view:
                taking.handoffs.foresee(view)
        # Before anything is visible: what a killed process leaves behind is then known, and can be collected.
        with platform.catalog.write(survives="crash") as tx:
            missed = [digest for digest in taking.not_here if _missed(tx, digest)]
            tx.objects.record_blobs(taking.contents())
            if taking.handoffs is not None:
                taking.handoffs.record(tx)
        batch.commit()
        # Within the batch: until these refer to it, nothing else keeps what came from being collected.
        new_revisions, older = taking.handoffs.take(platform) if taking.handoffs is not None else ((), ())
        packs = archive.header.packs
        new = tuple(pack for pack in packs if register(platform, pack, platform.objects.get(pack)))
    return Imported(
        header=archive.header,
        objects=len(taking.taken),
        size=taking.size,
        new_packs=new,
        new_objects=len(taking.not_here) - len(missed),
        put_back=(*taking.damaged, *(PutBack(digest=digest, damage="missing") for digest in missed)),
        absent=tuple(
            absent_parent for absent_parent in taking.reach.absent_parents() if not platform.objects.has(absent_parent)
        ),
        new_handoffs=new_revisions,
        older_handoffs=older,
    )


def _missed(tx: Transaction, digest: Digest) -> bool:
    """Whether an object was lost here: a pack that is in the list, or something that another object consists of."""
    if waits(tx.pending, digest) is not None:
        return False
    return tx.packs.row(digest) is not None or bool(tx.objects.wanted_as(digest) - {"parent"})


def _incoming(header: Header) -> "Incoming | None":
    if not header.handoffs:
        return None
    from contextplane.app.handoff.archive import Incoming

    return Incoming(header.handoffs)


class _Taking:
    """One archive on its way into a batch, which is committed by whoever opened it when all of this went well."""

    def __init__(self, archive: ArchiveReader, batch: Batch, objects: Objects) -> None:
        self._archive = archive
        self._batch = batch
        self._objects = objects
        self._packs = set(archive.header.packs)
        self.reach = Reach()
        self.handoffs = _incoming(archive.header)
        self._revisions = {kept.digest for handoff in archive.header.handoffs for kept in handoff.revisions}
        self.taken: dict[Digest, int] = {}
        self.size = 0
        self.not_here: list[Digest] = []
        self.damaged: list[PutBack] = []

    def take(self) -> None:
        entries = set()
        for member in self._archive.members():
            if member.kind == "object":
                self._object(member)
            else:
                _check_entry(member)
                entries.add(member.digest)
        self._check(entries)

    def contents(self) -> Iterator[tuple[Digest, int]]:
        """Every object but the manifests and the revisions of handoff packs, with its size."""
        others = ((digest, size) for digest, size in self.taken.items() if digest not in self._packs)
        return ((digest, size) for digest, size in others if digest not in self._revisions)

    def _object(self, member: Member) -> None:
        """Put one object. That of a pack is a document, and small enough to be read whole."""
        digest = member.digest
        if digest not in self._packs and digest not in self._revisions:
            got = self._batch.put_stream(member.chunks).digest
        elif member.size > MANIFEST_MOST:
            raise ArchiveInvalid("larger than any manifest", at=f"#{object_name(digest)}")
        else:
            document = b"".join(member.chunks)
            got = self._batch.put(document)
            if got == digest:
                self._document(digest, document)
        if got != digest:
            raise ArchiveCorrupt(f"its bytes have the digest {got}", at=f"#{object_name(digest)}", hint=_NOTHING)
        self.taken[digest] = member.size
        self.size += member.size
        for put_back in not_whole([digest], self._objects):
            if put_back.damage == "missing":
                self.not_here.append(digest)
            else:
                self.damaged.append(put_back)

    def _document(self, digest: Digest, document: bytes) -> None:
        if digest in self._packs:
            self.reach.add(digest, document)
        if self.handoffs is not None and digest in self._revisions:
            self.handoffs.check(digest, document)

    def _check(self, entries: set[Digest]) -> None:
        """What came must be what the header says, all that its packs reach, and nothing else."""
        refused = [f"ctx://{pack.hex} is not in it" for pack in self._packs - self.taken.keys()]
        refused += [f"its entries and its header differ in ctx://{pack.hex}" for pack in self._packs ^ entries]
        stray = self._packs - self.reach.line(self._archive.header.roots)
        refused += [f"no pack in it descends from ctx://{pack.hex}" for pack in stray]
        reached = self._packs | self._revisions | self.reach.contents.keys()
        refused += [f"no pack in it reaches {digest}" for digest in self.taken.keys() - reached]
        refused += [f"{revision} is not in it" for revision in self.handoffs.missing] if self.handoffs else []
        if refused:
            raise ArchiveInvalid(min(refused), hint=_NOTHING)
        if self.handoffs is not None:
            self.handoffs.check_chains()
        self.reach.require(lambda digest: digest in self.taken or self._objects.check(digest).state == "whole")


def _check_entry(member: Member) -> None:
    expected = entry_bytes(member.digest)
    if member.size != len(expected) or b"".join(member.chunks) != expected:
        raise ArchiveInvalid("an entry of other bytes", at=f"#{entry_name(member.digest)}", hint=_NOTHING)
