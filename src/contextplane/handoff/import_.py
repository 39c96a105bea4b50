"""Importing the packs of another server: what is valid and new is stored, everything else is reported.

A pack keeps its id, its revision and its times. Importing the same packs again changes nothing.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.handoff.document import read_document
from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.freshness import is_available
from contextplane.handoff.reader import HandoffLimits
from contextplane.handoff.storage import ensure_page_key
from contextplane.model.handoff import SCHEMA_VERSION, HandoffPack, pack_bytes
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.objects import Objects
from contextplane.ports.world import Ids
from contextplane.store.event_stream import commit_recorded
from contextplane.store.handoff_stream import append_revision, history_of, record_revision

__all__ = ["MAX_IMPORT_BYTES", "ImportCandidate", "ImportResult", "import_candidates", "read_candidate"]

MAX_IMPORT_BYTES = 10 << 20
"""The largest file that is imported: no server accepts a longer message. The limit for writing does not count here."""

_AT_ONCE = 64
_MOST_REVISION = 2**53 - 1
_Verdict = Literal["new", "known"]


class ImportCandidate(Value, frozen=True):
    """A valid pack, and the bytes that it will be stored as."""

    pack: HandoffPack
    data: bytes
    digest: Digest


class ImportResult(Value, frozen=True):
    """The ids of the packs that were stored, and for each refused one, by name, why it was not."""

    stored: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}


class _Meta(Value, frozen=True):
    """The fields of a pack in a file beside its document."""

    id: str
    revision: int
    created_at: str
    updated_at: str
    expires_at: str
    schema_version: int


def read_candidate(handoff_id: HandoffId, data: bytes, *, now: Timestamp, limits: HandoffLimits) -> ImportCandidate:
    """Read a pack from a file of another server. `HandoffInvalid` says why it cannot be imported."""
    if len(data) > MAX_IMPORT_BYTES:
        raise HandoffInvalid(f"larger than {MAX_IMPORT_BYTES} bytes")
    try:
        value = msgspec.json.decode(data)
        meta = msgspec.convert(value, _Meta)
        times = [Timestamp.parse(text) for text in (meta.created_at, meta.updated_at, meta.expires_at)]
    except (ValueError, RecursionError) as error:
        raise HandoffInvalid(f"not a handoff pack: {error}") from error
    except ContextPlaneError as error:
        raise HandoffInvalid(f"not a handoff pack: {error.message}") from error
    if meta.schema_version != SCHEMA_VERSION:
        raise HandoffInvalid(f"schema_version {meta.schema_version}, and only {SCHEMA_VERSION} is understood")
    if meta.id != handoff_id.text:
        raise HandoffInvalid("the id in it is not that of its file")
    if not 1 <= meta.revision < _MOST_REVISION:
        raise HandoffInvalid("its revision is not a number that can be counted on")
    if not is_available(times[2], now, limits.grace_seconds):
        raise HandoffInvalid(f"expired at {meta.expires_at}")
    document = read_document(value)
    pack = HandoffPack(
        id=meta.id,
        name=document.name,
        title=document.title,
        brief=document.brief,
        status=document.status,
        tags=document.tags,
        sections=document.sections,
        revision=meta.revision,
        created_at=meta.created_at,
        updated_at=meta.updated_at,
        expires_at=meta.expires_at,
    )
    stored = pack_bytes(pack)
    return ImportCandidate(pack=pack, data=stored, digest=Digest.of(stored))


def import_candidates(
    catalog: Catalog, objects: Objects, candidates: Sequence[ImportCandidate], ids: Ids
) -> ImportResult:
    """Store those of these packs that are new, durably."""
    stored: list[str] = []
    refused: dict[str, str] = {}
    for start in range(0, len(candidates), _AT_ONCE):
        new = _new_candidates(catalog, candidates[start : start + _AT_ONCE], refused)
        if not new:
            continue
        with objects.batch() as batch:
            for candidate in new:
                batch.put(candidate.data)
            commit_recorded(batch, catalog, partial(_record_candidates, new))
            # Within the batch: until an event names them, nothing else keeps them from being collected.
            with catalog.write() as tx:
                for candidate in new:
                    # Another process may have imported it, or written to it, since it was checked.
                    if _verdict(tx, candidate) == "new":
                        append_revision(
                            tx, pack=candidate.pack, digest=candidate.digest, size=len(candidate.data), kind="imported"
                        )
                        stored.append(candidate.pack.id)
                ensure_page_key(tx, ids)
    return ImportResult(stored=tuple(stored), refused=refused)


def _record_candidates(candidates: Sequence[ImportCandidate], tx: Transaction) -> None:
    for candidate in candidates:
        record_revision(tx, candidate.digest, len(candidate.data))


def _new_candidates(
    catalog: Catalog, candidates: Sequence[ImportCandidate], refused: dict[str, str]
) -> list[ImportCandidate]:
    """The candidates that are not in the store yet. Why others are refused is added to `refused`."""
    new = []
    with catalog.read() as view:
        for candidate in candidates:
            verdict = _verdict(view, candidate)
            if verdict == "new":
                new.append(candidate)
            elif verdict != "known":
                refused[candidate.pack.id] = verdict
    return new


def _verdict(view: View | Transaction, candidate: ImportCandidate) -> _Verdict | str:
    """Whether a candidate is `new` or `known`; else why it conflicts with the pack in this store."""
    try:
        history = history_of(view.streams, candidate.pack.handoff_id)
    except ContextPlaneError as error:
        return error.message
    revision = candidate.pack.revision
    if revision <= history.last:
        others = {event.digest for event in history.events if event.revision == revision} - {None}
        return f"conflict: another revision {revision} is kept here" if others - {candidate.digest} else "known"
    if history.events and not history.alive:
        return "deleted here"
    if history.events and history.events[-1].kind != "imported":
        return f"conflict: it went on to revision {revision} there and to {history.last} here"
    return "new"
