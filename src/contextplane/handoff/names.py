"""Which pack a name or an id means. The same rows always give the same answer, or none."""

from collections.abc import Sequence

from contextplane.handoff.freshness import available, filter_for
from contextplane.handoff.kept import SelectedBy
from contextplane.handoff.noting import nearest
from contextplane.handoff.refusals import HandoffAmbiguous, HandoffNotFound
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.handoff_index import HandoffFilter, HandoffIndexView, HandoffRow

__all__ = ["Chosen", "as_id", "chosen", "holders", "not_found", "nothing_named"]

_SHOWN = 60
_LOOKED_AT = 50


class Chosen(Value, frozen=True):
    """The pack that is meant, and by which rule."""

    row: HandoffRow
    selected_by: SelectedBy


def as_id(identity: str) -> HandoffId | None:
    """The id that a text is; None when it is a name. What looks like an id is never a name."""
    return HandoffId(identity) if HandoffId.PATTERN.fullmatch(identity) else None


def holders(index: HandoffIndexView, name: str, now: Timestamp, *, grace_seconds: int) -> tuple[HandoffRow, ...]:
    """Every pack that has this name now. One whose grace time is over has given it back."""
    return tuple(row for row in index.named(name) if available(row.expires, now, grace_seconds))


def chosen(name: str, rows: Sequence[HandoffRow]) -> Chosen:
    """Finalized before draft, then the latest, then the highest revision; nothing decides between equals.

    There is at least one row.
    """
    finalized = [row for row in rows if row.status == "finalized"]
    tier = finalized or rows
    best = max((row.updated, row.revision) for row in tier)
    equal = [row for row in tier if (row.updated, row.revision) == best]
    if len(equal) > 1:
        raise HandoffAmbiguous(
            f"several packs have the name {name[:_SHOWN]!r}, and nothing decides between them",
            hint="name one by its id",
            details={"name": name, "candidate_ids": sorted(row.id.text for row in equal)},
        )
    by: SelectedBy = (
        "name_latest_finalized_updated_at_then_revision" if finalized else "name_latest_draft_updated_at_then_revision"
    )
    return Chosen(row=equal[0], selected_by=by)


def nothing_named(index: HandoffIndexView, name: str, now: Timestamp, *, grace_seconds: int) -> HandoffNotFound:
    """What whoever asked for this name is told. The name that was probably meant is one of the latest packs'."""
    after, until = filter_for(None, now, grace_seconds)
    latest = index.page(HandoffFilter(after=after, until=until), limit=_LOOKED_AT).rows
    known = tuple(row.name for row in latest if row.name)
    return not_found(name, near=nearest(name, known) if known else None)


def not_found(identity: str, *, near: str | None = None) -> HandoffNotFound:
    meant = f"did you mean {near!r}? " if near else ""
    return HandoffNotFound(
        f"no handoff pack {identity[:_SHOWN]!r}",
        hint=f"{meant}'ctx handoff list' shows what there is",
        details={
            "requested": identity,
            "guidance": f"{meant}action list shows what there is",
            **({"nearest_name": near} if near else {}),
        },
    )
