"""Exports packs from a store to an archive file, and imports them: all that they reach, or nothing."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from contextplane.adapters.files.archive import ArchiveMember, ArchiveReader, archive_reader, archive_writer
from contextplane.adapters.system import SystemIds
from contextplane.app.execution.pack import register
from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.archive import (
    HEADER_NAME,
    MAX_MEMBERS,
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
from contextplane.model.execution.references import MAX_MANIFEST_BYTES
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction
from contextplane.ports.objects import Batch, ObjectReader, Objects, SourceUnreadable
from contextplane.ports.world import Progress
from contextplane.store.closure import PackClosure, PackIncomplete, pack_closure
from contextplane.store.damage import RepairedObject, damage_context, damaged_among, short_ref
from contextplane.store.event_stream import pending_bytes
from contextplane.store.progress import ProgressBatch, report_chunks

if TYPE_CHECKING:
    from contextplane.handoff.archive import IncomingHandoffs
    from contextplane.model.reference import HandoffRef

__all__ = [
    "ArchiveExportResult",
    "ArchiveImportResult",
    "TargetInside",
    "export_packs",
    "import_archive",
    "import_packs",
    "reject_target_inside",
]

_NOTHING = "nothing was imported"


class TargetInside(ContextPlaneError):
    """An archive would be written into the store itself."""

    code: ClassVar[str] = "archive_target_inside_store"
    family: ClassVar[Family] = "refused"


class ArchiveExportResult(Value, frozen=True):
    """The archive that was written.

    `absent`: parents that are not in this store, and so not in the archive. `new`: there was no file of this name with
    the same bytes before.
    """

    header: Header
    objects: int
    size: int
    new: bool
    absent: tuple[Digest, ...]


class ArchiveImportResult(Value, frozen=True):
    """The contents of the archive, and which of them are new in this store.

    - `absent`: parents that are neither in the archive nor in this store.
    - `put_back`: objects that were damaged here, or missing although something here refers to them. They are not new.
    - `new_handoffs`: the revisions of handoff packs that are new.
    - `older_handoffs`: revisions that are older than all that this store knows of their pack. They are not imported.
    """

    header: Header
    objects: int
    size: int
    new_packs: tuple[Digest, ...]
    new_objects: int
    absent: tuple[Digest, ...]
    put_back: tuple[RepairedObject, ...] = ()
    new_handoffs: "tuple[HandoffRef, ...]" = ()
    older_handoffs: "tuple[HandoffRef, ...]" = ()


def export_packs(
    platform: Platform,
    packs: Sequence[Digest],
    file: str,
    *,
    handoffs: "Sequence[HandoffRef]" = (),
    progress: Progress | None = None,
) -> ArchiveExportResult:
    """Write packs and all that they reach to an archive. The same packs give the same bytes.

    `handoffs`: each is at a revision.
    """
    reject_target_inside(file, platform.home.path)
    closure = pack_closure(packs, platform.objects)
    # A damaged object is not missing: reading it reports the damage.
    closure.require(lambda digest: platform.objects.has(digest) or platform.objects.check(digest).state != "missing")
    _reject_lost_parents(platform, closure)
    header = Header(roots=tuple(sorted(set(packs))), parents=tuple(sorted(closure.parents.keys() - set(packs))))
    objects: ObjectReader = platform.objects
    if handoffs:
        from contextplane.app.handoff.archive import objects_with_pending, revisions_to_export

        header = replace(header, handoffs=revisions_to_export(platform, handoffs))
        objects = objects_with_pending(platform, header.handoffs)
    first = header_bytes(header)
    revisions = {kept.digest for handoff in header.handoffs for kept in handoff.revisions}
    # A digest that is only mentioned is not followed: a text in a parameter must not export another run's contents.
    members = sorted(closure.parents.keys() | closure.contents.keys() | revisions)
    if 1 + len(members) + len(header.packs) > MAX_MEMBERS:
        raise ArchiveTooLarge(f"more than {MAX_MEMBERS:,} members", hint="write the packs to several archives")
    if progress is not None:
        progress.expect(sum(map(objects.size, members)))
    with archive_writer(file) as archive:
        archive.add(HEADER_NAME, len(first), [first])
        for digest in members:
            chunks = objects.stream(digest)
            with damage_context(closure.display_name(digest), "it", digest):
                size = objects.size(digest)
                archive.add(object_name(digest), size, report_chunks(chunks, progress) if progress else chunks)
        for pack in header.packs:
            entry = entry_bytes(pack)
            archive.add(entry_name(pack), len(entry), [entry])
    return ArchiveExportResult(
        header=header,
        objects=len(members),
        size=archive.written,
        new=archive.new,
        absent=tuple(closure.absent_parents()),
    )


def _reject_lost_parents(platform: Platform, closure: PackClosure) -> None:
    """Refuse to export if a registered parent lost its manifest. A parent that was never here is left out."""
    absent = closure.absent_parents()
    lost = sorted({*absent} & {*platform.entries.names()}) if absent else []
    if lost:
        child = next(pack for pack, parent in closure.parents.items() if parent == lost[0])
        raise PackIncomplete(
            f"its parent {short_ref(lost[0])} is registered here, and its manifest is missing",
            at=f"ctx://{child.hex}",
            hint="pack the log of the parent again, or import it",
            details={
                "missing": [{"ref": f"ctx://{digest.hex}", "digest": str(digest)} for digest in lost],
                "more": False,
            },
        )


def reject_target_inside(file: str, store: str) -> None:
    """Refuse a target inside the store: an archive must not overwrite its files."""
    place = os.path.join(os.path.realpath(os.path.dirname(file) or "."), os.path.basename(file))
    inside = os.path.commonpath([os.path.realpath(store), os.path.realpath(place)]) == os.path.realpath(store)
    if file != "-" and inside:
        raise TargetInside("this is a place inside the store", at=file, hint="write the archive elsewhere")


def import_packs(platform: Platform, file: str) -> ArchiveImportResult:
    """Import the packs of an archive into an open store."""
    return import_archive(file, lambda _: nullcontext(platform))


def import_archive(
    file: str,
    store: Callable[[Header], AbstractContextManager[Platform]],
    progress: Progress | None = None,
    taken: bytes = b"",
) -> ArchiveImportResult:
    """Import the packs of an archive into the store that `store` opens for its header.

    `taken`: what was read of standard input before.
    """
    if os.path.isdir(file):
        raise SourceUnreadable("is a folder, not an archive", at=file, hint="name the file that 'ctx export' wrote")
    if progress is not None and os.path.isfile(file):
        progress.expect(os.path.getsize(file))
    try:
        with archive_reader(file, taken) as archive, store(archive.header) as platform:
            return _import(platform, archive, progress)
    except (ArchiveInvalid, ArchiveCorrupt, ArchiveTooNew, SourceUnreadable) as error:
        raise error.under(file) from None


def _import(platform: Platform, archive: ArchiveReader, progress: Progress | None) -> ArchiveImportResult:
    """Import an open archive. Nothing is visible before all of it is verified."""
    with platform.objects.batch() as batch:
        intake = _ArchiveIntake(archive, ProgressBatch(batch, progress) if progress else batch, platform.objects)
        intake.put_all()
        if intake.handoffs is not None:
            with platform.catalog.read() as view:
                intake.handoffs.check_history(view)
        # Recorded before anything is visible: what a killed process leaves behind can be collected.
        with platform.catalog.write(survives="crash") as tx:
            lost = [digest for digest in intake.absent_before if _was_lost(tx, digest)]
            tx.objects.record_blobs(intake.contents())
            if intake.handoffs is not None:
                intake.handoffs.record(tx)
        batch.commit()
        # Within the batch: until these refer to them, nothing else keeps the new objects from being collected.
        new_revisions, older = _store_handoffs(platform, intake.handoffs)
        packs = archive.header.packs
        new = tuple(pack for pack in packs if register(platform, pack, platform.objects.get(pack)))
    return ArchiveImportResult(
        header=archive.header,
        objects=len(intake.object_sizes),
        size=intake.size,
        new_packs=new,
        new_objects=len(intake.absent_before) - len(lost),
        put_back=(*intake.damaged, *(RepairedObject(digest=digest, damage="missing") for digest in lost)),
        absent=tuple(parent for parent in intake.closure.absent_parents() if not platform.objects.has(parent)),
        new_handoffs=new_revisions,
        older_handoffs=older,
    )


def _was_lost(tx: Transaction, digest: Digest) -> bool:
    """Whether an object was lost here: an indexed pack, or a part of another object."""
    if pending_bytes(tx.pending, digest) is not None:
        return False
    return tx.packs.row(digest) is not None or bool(tx.objects.roles_of(digest) - {"parent"})


def _store_handoffs(
    platform: Platform, handoffs: "IncomingHandoffs | None"
) -> "tuple[tuple[HandoffRef, ...], tuple[HandoffRef, ...]]":
    if handoffs is None:
        return (), ()
    return handoffs.store_new(platform.catalog, platform.objects, SystemIds())


def _incoming_handoffs(header: Header) -> "IncomingHandoffs | None":
    if not header.handoffs:
        return None
    from contextplane.handoff.archive import IncomingHandoffs

    return IncomingHandoffs(header.handoffs)


class _ArchiveIntake:
    """Verifies one archive and puts its objects into a batch. The caller commits the batch."""

    def __init__(self, archive: ArchiveReader, batch: Batch, objects: Objects) -> None:
        self._archive = archive
        self._batch = batch
        self._objects = objects
        self._packs = set(archive.header.packs)
        self.closure = PackClosure()
        self.handoffs = _incoming_handoffs(archive.header)
        self._revisions = {kept.digest for handoff in archive.header.handoffs for kept in handoff.revisions}
        self.object_sizes: dict[Digest, int] = {}
        self.size = 0
        self.absent_before: list[Digest] = []
        self.damaged: list[RepairedObject] = []

    def put_all(self) -> None:
        entries = set()
        for member in self._archive.members():
            if member.kind == "object":
                self._object(member)
            else:
                _check_entry(member)
                entries.add(member.digest)
        self._check(entries)

    def contents(self) -> Iterator[tuple[Digest, int]]:
        """Yield every object, with its size, except manifests and revisions of handoff packs."""
        others = ((digest, size) for digest, size in self.object_sizes.items() if digest not in self._packs)
        return ((digest, size) for digest, size in others if digest not in self._revisions)

    def _object(self, member: ArchiveMember) -> None:
        """Put one object. A manifest or a revision is small enough to be read whole, and is checked."""
        digest = member.digest
        if digest not in self._packs and digest not in self._revisions:
            actual = self._batch.put_stream(member.chunks).digest
        elif member.size > MAX_MANIFEST_BYTES:
            raise ArchiveInvalid("larger than any manifest", at=f"#{object_name(digest)}")
        else:
            document = b"".join(member.chunks)
            actual = self._batch.put(document)
            if actual == digest:
                self._document(digest, document)
        if actual != digest:
            raise ArchiveCorrupt(f"its bytes have the digest {actual}", at=f"#{object_name(digest)}", hint=_NOTHING)
        self.object_sizes[digest] = member.size
        self.size += member.size
        for put_back in damaged_among([digest], self._objects):
            if put_back.damage == "missing":
                self.absent_before.append(digest)
            else:
                self.damaged.append(put_back)

    def _document(self, digest: Digest, document: bytes) -> None:
        if digest in self._packs:
            self.closure.add(digest, document)
        if self.handoffs is not None and digest in self._revisions:
            self.handoffs.check(digest, document)

    def _check(self, entries: set[Digest]) -> None:
        """Check that the archive has what the header says: all that its packs reach, and nothing else."""
        refused = [f"ctx://{pack.hex} is not in it" for pack in self._packs - self.object_sizes.keys()]
        refused += [f"its entries and its header differ in ctx://{pack.hex}" for pack in self._packs ^ entries]
        stray = self._packs - self.closure.line(self._archive.header.roots)
        refused += [f"no pack in it descends from ctx://{pack.hex}" for pack in stray]
        reached = self._packs | self._revisions | self.closure.contents.keys()
        refused += [f"no pack in it reaches {digest}" for digest in self.object_sizes.keys() - reached]
        refused += [f"{revision} is not in it" for revision in self.handoffs.missing] if self.handoffs else []
        if refused:
            raise ArchiveInvalid(min(refused), hint=_NOTHING)
        if self.handoffs is not None:
            self.handoffs.check_chains()
        self.closure.require(lambda digest: digest in self.object_sizes or self._objects.check(digest).state == "whole")


def _check_entry(member: ArchiveMember) -> None:
    expected = entry_bytes(member.digest)
    if member.size != len(expected) or b"".join(member.chunks) != expected:
        raise ArchiveInvalid("an entry of other bytes", at=f"#{entry_name(member.digest)}", hint=_NOTHING)
