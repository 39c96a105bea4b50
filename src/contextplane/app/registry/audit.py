"""Verifying the registry of a store wholly, signing it anew, and carrying proofs of it away."""

from typing import ClassVar

from contextplane.app.registry.session import RegistryDesk
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.registry.audit import Audit, Progress, audit
from contextplane.registry.authority import Keyrings
from contextplane.registry.errors import VersionUnknown
from contextplane.registry.log import Entry, Standing, entry_body, newest
from contextplane.registry.reader import Reader
from contextplane.registry.resign import RegistryEmpty, renew
from contextplane.registry.streams import LOG, TREE, version_stream
from contextplane.trust.checkpoint import NoteKey, NoteUnsigned, consistency_text, inclusion_text, opened
from contextplane.trust.merkle import (
    StreamTree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_of,
    verify_inclusion,
)

__all__ = ["Exported", "ProofNotWritten", "consistency", "inclusion", "renewed", "signed_by", "verified", "write_proof"]


class ProofNotWritten(ContextPlaneError):
    """The file for a proof is there already, or cannot be made."""

    code: ClassVar[str] = "proof_not_written"
    family: ClassVar[Family] = "conflict"


class Exported(Value, frozen=True):
    """A proof as a text, and what it is checked with: the log's key (`name+hash+key`), and an entry or an old root.

    `entry` is what is in the log; the entry and not the event, whose digest it has.
    """

    proof: bytes
    vkey: str
    entry: bytes = b""
    old_root: bytes = b""


def verified(desk: RegistryDesk, progress: Progress) -> Audit:
    """Verify all of it. What is found sound is what this client knows of it from now on."""
    seen, known = desk.memory.recalled(), desk.keys.memory.known()
    with desk.platform.catalog.read() as view:
        found = audit(view, known, desk.keys.check, origin=desk.origin, seen=seen, progress=progress)
    if found.sound:
        desk.memory.keep(found.standing)
    return found


def renewed(desk: RegistryDesk, found: Audit, signer: Signer) -> Standing:
    """Sign a fresh checkpoint of what was verified."""
    known = desk.keys.keyring
    with desk.platform.catalog.write() as tx:
        fresh = renew(
            tx, found, known=known, check=desk.keys.check, signer=signer, now=desk.keys.clock, origin=desk.origin
        )
    desk.memory.keep(fresh)
    return fresh


def inclusion(desk: RegistryDesk, ref: PackRef) -> Exported:
    """That the publication of a version is in the log."""
    with desk.reading() as reader:
        version = reader.version(ref)
        if not version.is_published:
            raise VersionUnknown("it was never published", at=str(ref), hint="'ctx packs' lists what was")
        standing = _standing(desk, reader)
        index, shown = version.entry, standing.checkpoint
        path = inclusion_proof(StreamTree(reader.streams, TREE), index, shown.size)
        # What is handed on is about this very event, whatever the event and the log say of each other.
        entry = entry_body(Entry(event=version.first, seq=1, stream=version_stream(ref)))
        verify_inclusion(leaf_hash(entry), index, shown.size, root=shown.root, proof=path)
        return Exported(
            proof=inclusion_text(index, path, standing.note),
            vkey=str(signed_by(standing, reader.keyrings, desk.keys.check)),
            entry=entry,
        )


def consistency(desk: RegistryDesk, old: int) -> Exported:
    """That the log begins with its first `old` entries as they were."""
    with desk.reading() as reader:
        standing, tree = _standing(desk, reader), StreamTree(reader.streams, TREE)
        path = consistency_proof(tree, old, standing.checkpoint.size)
        return Exported(
            proof=consistency_text(old, path, standing.note),
            vkey=str(signed_by(standing, reader.keyrings, desk.keys.check)),
            old_root=root_of(tree, 0, old),
        )


def write_proof(exported: Exported, path: str) -> None:
    """Write a proof to a new file, and the entry that it is about beside it."""
    for name, data in ((path, exported.proof), (f"{path}.entry", exported.entry)):
        try:
            if data:
                with open(name, "xb") as file:
                    file.write(data)
        except OSError as error:
            raise ProofNotWritten(error.strerror or str(error), at=name, hint="name a new file") from error


def signed_by(standing: Standing, keyrings: Keyrings, check: SignatureCheck) -> NoteKey:
    """The key that signed a checkpoint, under the log's name."""
    for key in keyrings.good_at(standing.time):
        named = NoteKey(name=standing.checkpoint.origin, key=key)
        try:
            opened(standing.note, [named], check)
        except NoteUnsigned:
            continue
        return named
    raise NoteUnsigned("signed by nobody whom we trust for it", at=LOG)


def _standing(desk: RegistryDesk, reader: Reader) -> Standing:
    status = newest(reader.streams, reader.keyrings, reader.check, desk.origin)
    if status is None:
        raise RegistryEmpty("nothing was ever written to it", at=LOG)
    return status
