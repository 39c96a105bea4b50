"""The archive of packs: what its members are called, what they may hold, and how many there may be.

Format 1 holds execution packs; format 2 handoff packs as well, and is written only where there are any.

It is a plain tar file; how one is read and written is no matter here. docs/spec/archive.md is the whole of it.
"""

import re
from itertools import pairwise
from typing import ClassVar, Literal

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.handoff import Kept
from contextplane.model.ids import Digest, ExecutionRef, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.value import Document, Value

__all__ = [
    "FORMAT",
    "HEADER_MOST",
    "HEADER_NAME",
    "MEMBERS_MOST",
    "MEMBER_MOST",
    "ArchiveCorrupt",
    "ArchiveInvalid",
    "ArchiveTooLarge",
    "ArchiveTooNew",
    "Carried",
    "Header",
    "Kind",
    "entry_bytes",
    "entry_name",
    "header_bytes",
    "named",
    "object_name",
    "read_header",
]

FORMAT = 2
HEADER_NAME = "contextplane-archive.json"

HEADER_MOST = 1 << 20
"""The most bytes of the first member: some 15,000 packs, or 10,000 revisions of handoff packs."""

MEMBER_MOST = 1 << 40
"""The most bytes of one object."""

MEMBERS_MOST = 10_000_000

Kind = Literal["object", "entry"]

_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})")
_ENTRY = re.compile(r"packs/([0-9a-f]{64})")
_SHOWN = 80


class ArchiveInvalid(ContextPlaneError):
    """A file that is no archive of packs, or not a whole one. Nothing of it is taken."""

    code: ClassVar[str] = "archive_invalid"
    family: ClassVar[Family] = "refused"


class ArchiveCorrupt(ContextPlaneError):
    """An object in an archive does not have the bytes that its name says. Nothing of the archive is taken."""

    code: ClassVar[str] = "archive_corrupt"
    family: ClassVar[Family] = "untrusted"


class ArchiveTooNew(ContextPlaneError):
    """An archive of a later format. An old program refuses it rather than guess."""

    code: ClassVar[str] = "archive_format_newer"
    family: ClassVar[Family] = "refused"


class ArchiveTooLarge(ContextPlaneError):
    """More than one archive may hold."""

    code: ClassVar[str] = "archive_too_large"
    family: ClassVar[Family] = "refused"


class Carried(Value, frozen=True):
    """A handoff pack in an archive: each revision of it, ascending, with the digest of its object."""

    id: HandoffId
    revisions: tuple[Kept, ...]

    @property
    def last(self) -> Kept:
        return self.revisions[-1]


class Header(Value, frozen=True):
    """The packs in an archive: those that were asked for, and those that these descend from. Ascending, each once."""

    roots: tuple[Digest, ...]
    parents: tuple[Digest, ...] = ()
    handoffs: tuple[Carried, ...] = ()

    @property
    def packs(self) -> list[Digest]:
        return sorted((*self.roots, *self.parents))


class _Wire(Document, frozen=True):
    format: int
    parents: tuple[str, ...]
    roots: tuple[str, ...]


class _Revision(Document, frozen=True):
    digest: str
    revision: int


class _Handoff(Document, frozen=True):
    id: str
    revisions: tuple[_Revision, ...]


class _Wire2(_Wire, frozen=True):
    handoffs: tuple[_Handoff, ...]


class _Versioned(Value, frozen=True):
    format: int


def header_bytes(header: Header) -> bytes:
    """The bytes of the first member, canonical JSON."""
    parents, roots = _written(header.parents), _written(header.roots)
    wire = _Wire(format=1, parents=parents, roots=roots)
    if header.handoffs:
        wire = _Wire2(format=2, parents=parents, roots=roots, handoffs=tuple(map(_carried, header.handoffs)))
    data = canonical(wire)
    if len(data) > HEADER_MOST:
        packs = len(header.packs) + sum(len(handoff.revisions) for handoff in header.handoffs)
        raise ArchiveTooLarge(
            f"{packs:,} packs and revisions are too many for one archive", hint="write them to several archives"
        )
    return data


def read_header(data: bytes) -> Header:
    """The first member, read strictly: only what `header_bytes` writes is accepted."""
    try:
        version = msgspec.json.decode(data, type=_Versioned).format
        if version > FORMAT:
            raise ArchiveTooNew(f"an archive of format {version}", hint="a newer contextplane reads it")
        wire = msgspec.json.decode(data, type=_Wire2 if version == FORMAT else _Wire)
        handoffs = tuple(map(_handoff, wire.handoffs)) if isinstance(wire, _Wire2) else ()
        header = Header(roots=_read(wire.roots), parents=_read(wire.parents), handoffs=handoffs)
        sound = bool(header.roots or handoffs) and _ascending(header.packs) and header_bytes(header) == data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, JsonRefused) as error:
        raise ArchiveInvalid(f"not the header of an archive: {error}", at=f"#{HEADER_NAME}") from error
    if not (sound and _ascending(header.roots) and _ascending(header.parents) and _in_order(handoffs)):
        raise ArchiveInvalid("not the header of an archive as 'ctx export' writes it", at=f"#{HEADER_NAME}")
    return header


def object_name(digest: Digest) -> str:
    return f"objects/{digest.hex[:2]}/{digest.hex[2:]}"


def entry_name(digest: Digest) -> str:
    return f"packs/{digest.hex}"


def entry_bytes(digest: Digest) -> bytes:
    """What an entry holds. Unpacked, it registers the pack for the reference program, too."""
    return str(digest).encode()


def named(name: str) -> tuple[Kind, Digest]:
    """What a member after the first one is, by its name, which has one of two forms and no other."""
    match = _OBJECT.fullmatch(name)
    if match:
        return "object", Digest(match[1] + match[2])
    match = _ENTRY.fullmatch(name)
    if match:
        return "entry", Digest(match[1])
    raise ArchiveInvalid(f"a member of another name: {name[:_SHOWN]!r}", hint="nothing of this archive was taken")


def _written(packs: tuple[Digest, ...]) -> tuple[str, ...]:
    return tuple(str(ExecutionRef(pack)) for pack in packs)


def _read(texts: tuple[str, ...]) -> tuple[Digest, ...]:
    try:
        return tuple(ExecutionRef.parse(text).digest for text in texts)
    except ContextPlaneError as error:
        raise ArchiveInvalid(error.message, at=f"#{HEADER_NAME}", hint=error.hint) from error


def _carried(one: Carried) -> _Handoff:
    revisions = tuple(_Revision(digest=str(kept.digest), revision=kept.revision) for kept in one.revisions)
    return _Handoff(id=one.id.text, revisions=revisions)


def _handoff(wire: _Handoff) -> Carried:
    try:
        kept = tuple(
            Kept(revision=revision.revision, digest=Digest.parse(revision.digest)) for revision in wire.revisions
        )
        return Carried(id=HandoffId(wire.id), revisions=kept)
    except ContextPlaneError as error:
        raise ArchiveInvalid(error.message, at=f"#{HEADER_NAME}", hint=error.hint) from error


def _in_order(handoffs: tuple[Carried, ...]) -> bool:
    """Whether packs and their revisions ascend from 1 at the least, each with a revision, and no object is two."""
    digests = [kept.digest for handoff in handoffs for kept in handoff.revisions]
    return (
        all(one.id < other.id for one, other in pairwise(handoffs))
        and all(handoff.revisions and handoff.revisions[0].revision >= 1 for handoff in handoffs)
        and all(a.revision < b.revision for handoff in handoffs for a, b in pairwise(handoff.revisions))
        and len(set(digests)) == len(digests)
    )


def _ascending(packs: list[Digest] | tuple[Digest, ...]) -> bool:
    """Whether each is larger than the one before it: in order, and none twice."""
    return all(digest < other for digest, other in pairwise(packs))
