"""Audits the whole registry of a store, signs a fresh checkpoint, and exports proofs of the log."""

import os
from contextlib import suppress
from typing import ClassVar

from contextplane.app.documents import open_document
from contextplane.app.registry.resolve import judge_claims
from contextplane.app.registry.session import RegistrySession
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.ports.keys import Signer
from contextplane.registry.audit import AuditInputs, AuditResult, Progress, audit
from contextplane.registry.continuity import check_log
from contextplane.registry.errors import VersionUnknown
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.reader import RegistryReader
from contextplane.registry.recent_audit import audit_since
from contextplane.registry.resign import RegistryEmpty, resign
from contextplane.registry.streams import LOG, TREE, version_stream
from contextplane.store.staged_changes import StagedChanges
from contextplane.trust.checkpoint import consistency_text, inclusion_text
from contextplane.trust.clock import seconds_behind
from contextplane.trust.dsse import encode_base64
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.merkle import (
    StreamTree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_of,
    verify_inclusion,
)
from contextplane.trust.merkle_log import (
    CheckpointBeforeRevocation,
    LogEntry,
    VerifiedCheckpoint,
    entry_body,
)

__all__ = [
    "AuditResult",
    "CheckpointBeforeRevocation",
    "ExportedProof",
    "ProofNotWritten",
    "VerifiedCheckpoint",
    "audit_registry",
    "clock_lag",
    "encode_base64",
    "log_length",
    "prove_consistency",
    "prove_inclusion",
    "read_checkpoint",
    "reject_existing",
    "renew_checkpoint",
    "write_checkpoint",
    "write_proof",
]

_MAX_NOTE = 64 * 1024


class ProofNotWritten(ContextPlaneError):
    """The file for a proof is there already, or cannot be made."""

    code: ClassVar[str] = "proof_not_written"
    family: ClassVar[Family] = "conflict"


class ExportedProof(Value, frozen=True):
    """A proof as text, and what it is checked with: the log's key, and an entry or an old root.

    `vkey`: `name+hash+key`. `entry`: the log entry, which has the digest of the event.
    """

    proof: bytes
    vkey: str
    entry: bytes = b""
    old_root: bytes = b""


def log_length(session: RegistrySession) -> int:
    """Return the number of entries of the log, which an audit verifies one by one."""
    with session.platform.catalog.read() as view:
        return view.streams.head(LOG)


def clock_lag(session: RegistrySession, checkpoint: VerifiedCheckpoint | None) -> int:
    """Return how many seconds this machine's clock is behind a checkpoint; 0 if it is less than a minute."""
    return 0 if checkpoint is None else seconds_behind(session.keys.clock, checkpoint.time)


def audit_registry(session: RegistrySession, progress: Progress, since: bytes | None = None) -> AuditResult:
    """Verify the whole registry, or what came since a checkpoint that the auditor kept, a signed note.

    The checkpoint of a sound one is saved as the highest seen.
    """
    seen, root, known = session.memory.load(), session.memory.root, TrustedKeys(origin=session.origin)
    session.memory.load_position()
    with session.platform.catalog.read() as view:
        session.memory.check_root(view.streams, session.keys.check)
        with suppress(ContextPlaneError):  # a keyring that cannot be read is reported by the audit
            _, seen = session.keys.follow_seen(view.streams, seen)
        inputs = AuditInputs(
            view=view,
            known=known,
            check=session.keys.check,
            seen=seen or root,
            fetch=session.platform.objects.get,
            judge=judge_claims,
            progress=progress,
        )
        audited = audit(inputs) if since is None else audit_since(since, inputs)
        if root is not None and audited.newest is not None:
            check_log(view.streams, audited.newest, root)
    if audited.sound:
        session.memory.save(audited.newest)
    return audited


def read_checkpoint(path: str) -> bytes:
    """Read the note of a checkpoint from a file."""
    with open_document(path, piped=False) as data:
        return bytes(data[:_MAX_NOTE])


def renew_checkpoint(session: RegistrySession, audited: AuditResult, signer: Signer) -> VerifiedCheckpoint:
    """Sign a fresh checkpoint of a registry that was audited."""
    session.memory.load_position()
    with session.platform.catalog.read() as view:
        staged = StagedChanges(view, unmoved=(LOG, KEYRING_STREAM))
        fresh = resign(
            staged,
            audited,
            known=session.keys.follow(view.streams),
            check=session.keys.check,
            signer=signer,
            now=session.keys.clock,
            origin=session.origin,
        )
    staged.commit(session.platform.catalog)
    session.memory.save(fresh)
    return fresh


def prove_inclusion(session: RegistrySession, ref: PackRef) -> ExportedProof:
    """Prove that the publication of a version is in the log."""
    with session.read() as reader:
        version = reader.version(ref)
        if not version.is_published:
            raise VersionUnknown("it was never published", at=str(ref), hint="'ctx packs' lists published versions")
        newest = _newest_checkpoint(session, reader)
        index, checkpoint = version.entry, newest.checkpoint
        path = inclusion_proof(StreamTree(reader.streams, TREE), index, checkpoint.size)
        # The proof is for exactly this event, also if event and log contradict each other.
        first = None if index < (reader.keyrings.now.sealed or 0) or newest.is_first_format else ""
        entry = entry_body(LogEntry(event=version.first, seq=1, stream=version_stream(ref), previous=first))
        verify_inclusion(leaf_hash(entry), index, checkpoint.size, root=checkpoint.root, proof=path)
        return ExportedProof(
            proof=inclusion_text(index, path, newest.note),
            vkey=str(REGISTRY_LOG.checkpoint_key(newest, reader.keyrings, session.keys.check)),
            entry=entry,
        )


def prove_consistency(session: RegistrySession, old: int) -> ExportedProof:
    """Prove that the log still begins with its first `old` entries."""
    with session.read() as reader:
        newest, tree = _newest_checkpoint(session, reader), StreamTree(reader.streams, TREE)
        path = consistency_proof(tree, old, newest.checkpoint.size)
        return ExportedProof(
            proof=consistency_text(old, path, newest.note),
            vkey=str(REGISTRY_LOG.checkpoint_key(newest, reader.keyrings, session.keys.check)),
            old_root=root_of(tree, 0, old),
        )


def write_proof(exported: ExportedProof, path: str) -> None:
    """Write a proof to a new file, and its log entry beside it."""
    _write_file(path, exported.proof)
    if exported.entry:
        _write_file(f"{path}.entry", exported.entry)


def write_checkpoint(checkpoint: VerifiedCheckpoint, path: str) -> None:
    """Write the note of a checkpoint to a new file, for an auditor to keep."""
    _write_file(path, checkpoint.note)


def reject_existing(path: str) -> None:
    """Refuse a file that is there already, before an audit whose result could not be written to it."""
    if os.path.lexists(path):
        raise ProofNotWritten("File exists", at=path, hint="name a new file")


def _write_file(path: str, data: bytes) -> None:
    try:
        with open(path, "xb") as file:
            file.write(data)
    except OSError as error:
        raise ProofNotWritten(error.strerror or str(error), at=path, hint="name a new file") from error


def _newest_checkpoint(session: RegistrySession, reader: RegistryReader) -> VerifiedCheckpoint:
    status = REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, reader.check, session.origin)
    if status is None:
        raise RegistryEmpty("nothing was ever written to it", at=LOG)
    return status
