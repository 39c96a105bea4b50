"""The archive of packs: names of its members, the header, and the limits.

Format 1 holds execution packs. Format 2 holds handoff packs as well, and is written only when there are any. An archive
is a plain tar file; reading and writing one is the work of an adapter. The whole format: docs/spec/archive.md.
"""

import re
from itertools import pairwise
from typing import ClassVar, Literal

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.handoff import KeptRevision
from contextplane.model.ids import Digest, ExecutionRef, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.value import Document, Value

__all__ = [
    "FORMAT",
    "HEADER_NAME",
    "MAX_HEADER_BYTES",
    "MAX_MEMBERS",
    "MAX_MEMBER_BYTES",
    "ArchiveCorrupt",
    "ArchiveInvalid",
    "ArchiveTooLarge",
    "ArchiveTooNew",
    "ArchivedHandoff",
    "Header",
    "MemberKind",
    "entry_bytes",
    "entry_name",
    "header_bytes",
    "object_name",
    "parse_member_name",
    "read_header",
]

FORMAT = 2
HEADER_NAME = "contextplane-archive.json"

MAX_HEADER_BYTES = 1 << 20
"""The most bytes of the first member: some 15,000 packs, or 10,000 revisions of handoff packs."""

MAX_MEMBER_BYTES = 1 << 40
"""The most bytes of one object."""

MAX_MEMBERS = 10_000_000

MemberKind = Literal["object", "entry"]

_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})")
_ENTRY = re.compile(r"packs/([0-9a-f]{64})")
_SHOWN = 80


class ArchiveInvalid(ContextPlaneError):
    """A file that is no archive of packs, or not a whole one. Nothing of it is taken."""

    code: ClassVar[str] = "archive_invalid"
    family: ClassVar[Family] = "refused"


class ArchiveCorrupt(ContextPlaneError):
    """An object in an archive does not match its digest. Nothing is imported."""

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


class ArchivedHandoff(Value, frozen=True):
    """A handoff pack in an archive: its revisions, ascending, each with the digest of its object."""

    id: HandoffId
    revisions: tuple[KeptRevision, ...]

    @property
    def last(self) -> KeptRevision:
        return self.revisions[-1]


class Header(Value, frozen=True):
    """The packs in an archive: the requested ones, and their ancestors. Ascending, each once."""

    roots: tuple[Digest, ...]
    parents: tuple[Digest, ...] = ()
    handoffs: tuple[ArchivedHandoff, ...] = ()

    @property
    def packs(self) -> list[Digest]:
        return sorted((*self.roots, *self.parents))


class _HeaderV1(Document, frozen=True):
    format: int
    parents: tuple[str, ...]
    roots: tuple[str, ...]


class _Revision(Document, frozen=True):
    digest: str
    revision: int


class _Handoff(Document, frozen=True):
    id: str
    revisions: tuple[_Revision, ...]


class _HeaderV2(_HeaderV1, frozen=True):
    handoffs: tuple[_Handoff, ...]


class _FormatOnly(Value, frozen=True):
    format: int


def header_bytes(header: Header) -> bytes:
    """The bytes of the first member, canonical JSON. `ArchiveTooLarge` when there are too many packs."""
    parents, roots = _reference_texts(header.parents), _reference_texts(header.roots)
    wire = _HeaderV1(format=1, parents=parents, roots=roots)
    if header.handoffs:
        wire = _HeaderV2(format=2, parents=parents, roots=roots, handoffs=tuple(map(_wire_handoff, header.handoffs)))
    data = canonical(wire)
    if len(data) > MAX_HEADER_BYTES:
        packs = len(header.packs) + sum(len(handoff.revisions) for handoff in header.handoffs)
        raise ArchiveTooLarge(
            f"{packs:,} packs and revisions are too many for one archive", hint="write them to several archives"
        )
    return data


def read_header(data: bytes) -> Header:
    """Parse the first member strictly: only what `header_bytes` writes is accepted."""
    try:
        version = msgspec.json.decode(data, type=_FormatOnly).format
        if version > FORMAT:
            raise ArchiveTooNew(f"an archive of format {version}", hint="a newer contextplane reads it")
        wire = msgspec.json.decode(data, type=_HeaderV2 if version == FORMAT else _HeaderV1)
        handoffs = tuple(map(_parse_handoff, wire.handoffs)) if isinstance(wire, _HeaderV2) else ()
        header = Header(roots=_parse_references(wire.roots), parents=_parse_references(wire.parents), handoffs=handoffs)
        sound = bool(header.roots or handoffs) and _is_ascending(header.packs) and header_bytes(header) == data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, JsonRefused) as error:
        raise ArchiveInvalid(f"not the header of an archive: {error}", at=f"#{HEADER_NAME}") from error
    if not (sound and _is_ascending(header.roots) and _is_ascending(header.parents) and _are_ordered(handoffs)):
        raise ArchiveInvalid("not the header of an archive as 'ctx export' writes it", at=f"#{HEADER_NAME}")
    return header


def object_name(digest: Digest) -> str:
    return f"objects/{digest.hex[:2]}/{digest.hex[2:]}"


def entry_name(digest: Digest) -> str:
    return f"packs/{digest.hex}"


def entry_bytes(digest: Digest) -> bytes:
    """The content of an entry. Unpacked, it registers the pack for the reference program as well."""
    return str(digest).encode()


def parse_member_name(name: str) -> tuple[MemberKind, Digest]:
    """The kind and the digest of a member after the first. Two forms of names exist and no other."""
    match = _OBJECT.fullmatch(name)
    if match:
        return "object", Digest(match[1] + match[2])
    match = _ENTRY.fullmatch(name)
    if match:
        return "entry", Digest(match[1])
    raise ArchiveInvalid(f"a member of another name: {name[:_SHOWN]!r}", hint="nothing was imported")


def _reference_texts(packs: tuple[Digest, ...]) -> tuple[str, ...]:
    return tuple(str(ExecutionRef(pack)) for pack in packs)


def _parse_references(texts: tuple[str, ...]) -> tuple[Digest, ...]:
    try:
        return tuple(ExecutionRef.parse(text).digest for text in texts)
    except ContextPlaneError as error:
        raise ArchiveInvalid(error.message, at=f"#{HEADER_NAME}", hint=error.hint) from error


def _wire_handoff(handoff: ArchivedHandoff) -> _Handoff:
    revisions = tuple(
        _Revision(digest=str(revision.digest), revision=revision.revision) for revision in handoff.revisions
    )
    return _Handoff(id=handoff.id.text, revisions=revisions)


def _parse_handoff(wire: _Handoff) -> ArchivedHandoff:
    try:
        revisions = tuple(
            KeptRevision(revision=revision.revision, digest=Digest.parse(revision.digest))
            for revision in wire.revisions
        )
        return ArchivedHandoff(id=HandoffId(wire.id), revisions=revisions)
    except ContextPlaneError as error:
        raise ArchiveInvalid(error.message, at=f"#{HEADER_NAME}", hint=error.hint) from error


def _are_ordered(handoffs: tuple[ArchivedHandoff, ...]) -> bool:
    """Whether packs and their revisions ascend and no object occurs twice.

    Every pack has a revision, and revisions begin at 1 or later.
    """
    digests = [revision.digest for handoff in handoffs for revision in handoff.revisions]
    return (
        all(handoff.id < other.id for handoff, other in pairwise(handoffs))
        and all(handoff.revisions and handoff.revisions[0].revision >= 1 for handoff in handoffs)
        and all(a.revision < b.revision for handoff in handoffs for a, b in pairwise(handoff.revisions))
        and len(set(digests)) == len(digests)
    )


def _is_ascending(packs: list[Digest] | tuple[Digest, ...]) -> bool:
    """Whether each digest is larger than the one before it: sorted, and none twice."""
    return all(digest < other for digest, other in pairwise(packs))
