"""Whether a handoff pack is what was written: its history whole, and every revision the bytes that its event names."""

from collections.abc import Iterator
from typing import Literal

from contextplane.audit.verify import Answer, Trouble, answer_of
from contextplane.errors import ContextPlaneError
from contextplane.handoff.keeping import history_of, revision_bytes
from contextplane.handoff.names import not_found
from contextplane.handoff.refusals import HandoffNotFound
from contextplane.model.handoff import SCHEMA_VERSION, HandoffPack, pack_bytes, read_pack
from contextplane.model.handoff_events import HandoffHistory, Happened, Kept, root_name, stream_name
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog
from contextplane.ports.handoff_index import HandoffRow
from contextplane.ports.objects import ObjectCorrupt, Objects

__all__ = ["HandoffVerdict", "verify_handoff"]


class HandoffVerdict(Value, frozen=True):
    """What checking showed. `revisions`: those whose bytes are what their events say."""

    id: HandoffId
    answer: Answer
    revisions: tuple[Kept, ...]
    events: int
    size: int
    troubles: tuple[Trouble, ...]


def verify_handoff(
    handoff_id: HandoffId, revision: int | None, *, catalog: Catalog, objects: Objects
) -> HandoffVerdict:
    """Check all that is kept of a pack, or one of its revisions; of its history always all of it."""
    with catalog.read() as view:
        history = history_of(view.streams, handoff_id)
        seqs = [event.seq for event in view.streams.read(stream_name(handoff_id))]
        row = view.handoffs.row(handoff_id)
        roots = dict(view.objects.roots(f"{stream_name(handoff_id)}/"))
    if not history.happened:
        raise not_found(handoff_id.text)
    wanted = [one for one in history.revisions if revision in (None, one.revision)]
    if not wanted and revision is not None:
        raise HandoffNotFound(
            "this revision was collected" if history.collected and revision <= history.last else "no such revision",
            at=f"{handoff_id}@{revision}",
            hint=f"'ctx handoff log {handoff_id}' lists them",
        )
    check = _Check(catalog, objects, handoff_id)
    check.troubles += _chain(handoff_id, history, seqs)
    check.troubles += _listed(handoff_id, history, row)
    said = {one.revision: one.at for one in history.happened if one.digest is not None}
    for one in wanted:
        if roots.get(root_name(handoff_id, one.revision)) != one.digest:
            check.note("unchecked", f"{handoff_id}@{one.revision}", "nothing keeps it from being collected")
        check.revision(one, said[one.revision])
    if not wanted:
        check.note("unknown", str(handoff_id), "all its revisions were collected")
    return HandoffVerdict(
        id=handoff_id,
        answer=answer_of(check.troubles),
        revisions=tuple(check.whole),
        events=len(history.happened),
        size=check.size,
        troubles=tuple(check.troubles),
    )


def _chain(handoff_id: HandoffId, history: HandoffHistory, seqs: list[int]) -> Iterator[Trouble]:
    """No event is missing: they are numbered without a gap, and every write made the revision after the last one."""
    if seqs != list(range(1, len(seqs) + 1)):
        yield Trouble(answer="modified", what=f"history of {handoff_id}", why="events are missing from it")
    last, before = 0, None
    for one in history.happened:
        if one.digest is None:
            continue
        if one.kind != "imported" and one.revision != last + 1:
            yield Trouble(answer="modified", what=f"history of {handoff_id}", why=_gap(one, last))
        if before is not None and one.at < before:
            yield Trouble(answer="modified", what=f"{handoff_id}@{one.revision}", why="it is older than the one before")
        last, before = one.revision, one.at


def _listed(handoff_id: HandoffId, history: HandoffHistory, row: HandoffRow | None) -> Iterator[Trouble]:
    """The list shows the newest revision. One that it shows and that no event made was cut off from the history."""
    newest = history.newest if history.alive else None
    if row is not None and row.revision > history.last:
        yield Trouble(answer="modified", what=f"history of {handoff_id}", why="its last events are missing")
    elif (row and (row.revision, row.digest)) != (newest and (newest.revision, newest.digest)):
        yield Trouble(
            answer="unchecked", what=str(handoff_id), why="it is listed otherwise than its history says: see 'ctx fsck'"
        )


def _gap(one: Happened, last: int) -> str:
    return f"revision {one.revision} was written after {last}: what is between them is missing"


class _Check:
    """Looks at revisions, and notes what is wrong instead of stopping."""

    def __init__(self, catalog: Catalog, objects: Objects, handoff_id: HandoffId) -> None:
        self._catalog = catalog
        self._objects = objects
        self._id = handoff_id
        self.troubles: list[Trouble] = []
        self.whole: list[Kept] = []
        self.size = 0

    def revision(self, kept: Kept, at: Timestamp) -> None:
        what = f"{self._id}@{kept.revision} {kept.digest}"
        try:
            data = revision_bytes(self._catalog, self._objects, kept.digest)
        except ObjectCorrupt as error:
            self.note("modified", what, error.message)
        except ContextPlaneError as error:
            self.note("unchecked", what, error.message)
        else:
            self.size += len(data)
            self._pack(what, kept, data, at)

    def _pack(self, what: str, kept: Kept, data: bytes, at: Timestamp) -> None:
        """Look at bytes that have the right digest."""
        try:
            pack = read_pack(data)
            why = self._differs(pack, data, kept.revision, at)
        except (ValueError, ContextPlaneError) as error:
            why = f"not a handoff pack: {error}"
        else:
            if pack.schema_version != SCHEMA_VERSION:
                self.note("unchecked", what, f"schema_version {pack.schema_version} is not understood")
                return
        if why:
            self.note("modified", what, why)
        else:
            self.whole.append(kept)

    def _differs(self, pack: HandoffPack, data: bytes, revision: int, at: Timestamp) -> str:
        """Why a pack is not this revision; empty when it is."""
        if (pack.id, pack.revision) != (self._id.text, revision):
            return f"its object is {pack.id}@{pack.revision}"
        if pack.updated != at:
            return f"its event says {at}, and it says {pack.updated}"
        return "" if pack_bytes(pack) == data else "its bytes are not in the one form that a pack has"

    def note(self, answer: Literal["modified", "unchecked", "unknown"], what: str, why: str) -> None:
        self.troubles.append(Trouble(answer=answer, what=what, why=why))
