"""Taking in the packs of another server: what is understood and new is stored, everything else is reported.

A pack keeps its id, its revision and its times. Taking the same ones in again changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.handoff.document import read_document
from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.freshness import available
from contextplane.handoff.reader import HandoffLimits
from contextplane.handoff.storage import append_revision, ensure_page_key, history_of, record_revision
from contextplane.model.handoff import SCHEMA_VERSION, HandoffPack, pack_bytes
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.objects import Objects
from contextplane.ports.world import Ids

__all__ = ["Offer", "Taken", "read_offer", "take"]

_AT_ONCE = 64
_MOST_REVISION = 2**53 - 1
_Verdict = Literal["new", "known"]


class Offer(Value, frozen=True):
    """A pack that was understood, and the bytes that it will be stored as."""

    pack: HandoffPack
    data: bytes
    digest: Digest


class Taken(Value, frozen=True):
    """The ids of the packs that were stored, and why each of the others was not, by its name."""

    stored: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}


class _Meta(Value, frozen=True):
    """What a file says of a pack beside its document."""

    id: str
    revision: int
    created_at: str
    updated_at: str
    expires_at: str
    schema_version: int


def read_offer(handoff_id: HandoffId, data: bytes, *, now: Timestamp, limits: HandoffLimits) -> Offer:
    """A pack from a file of another server. `HandoffInvalid` says why it is none, or is not taken."""
    if len(data) > limits.max_pack_bytes:
        raise HandoffInvalid(f"larger than {limits.max_pack_bytes} bytes")
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
    if not available(times[2], now, limits.grace_seconds):
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
    return Offer(pack=pack, data=stored, digest=Digest.of(stored))


def take(catalog: Catalog, objects: Objects, offers: Sequence[Offer], ids: Ids) -> Taken:
    """Store what is new of these packs, durably."""
    stored: list[str] = []
    refused: dict[str, str] = {}
    for start in range(0, len(offers), _AT_ONCE):
        some = _sorted_out(catalog, offers[start : start + _AT_ONCE], refused)
        if not some:
            continue
        with objects.batch() as batch:
            for offer in some:
                batch.put(offer.data)
            # Before anything is visible: what a killed process leaves behind is then known, and can be collected.
            with catalog.write(survives="crash") as tx:
                for offer in some:
                    record_revision(tx, offer.digest, len(offer.data))
            batch.commit()
            # Within the batch: until an event speaks of them, nothing else keeps them from being collected.
            with catalog.write() as tx:
                for offer in some:
                    # Another process may have taken it in, or written to it, since we looked.
                    if _verdict(tx, offer) == "new":
                        append_revision(tx, pack=offer.pack, digest=offer.digest, size=len(offer.data), kind="imported")
                        stored.append(offer.pack.id)
                ensure_page_key(tx, ids)
    return Taken(stored=tuple(stored), refused=refused)


def _sorted_out(catalog: Catalog, offers: Sequence[Offer], refused: dict[str, str]) -> list[Offer]:
    new = []
    with catalog.read() as view:
        for offer in offers:
            verdict = _verdict(view, offer)
            if verdict == "new":
                new.append(offer)
            elif verdict != "known":
                refused[offer.pack.id] = verdict
    return new


def _verdict(view: View | Transaction, offer: Offer) -> _Verdict | str:
    """Whether it is new or known; else why ours stays."""
    try:
        history = history_of(view.streams, offer.pack.handoff_id)
    except ContextPlaneError as error:
        return error.message
    revision = offer.pack.revision
    if revision <= history.last:
        others = {event.digest for event in history.happened if event.revision == revision} - {None}
        return f"conflict: another revision {revision} is kept here" if others - {offer.digest} else "known"
    if history.happened and not history.alive:
        return "deleted here"
    if history.happened and history.happened[-1].kind != "imported":
        return f"conflict: it went on to revision {revision} there and to {history.last} here"
    return "new"
