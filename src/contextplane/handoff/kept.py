"""What is asked of the shelf, and what it answers with."""

from typing import TYPE_CHECKING, Literal

from contextplane.model.handoff import HandoffPack
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.handoff.finalize import MovedRef
    from contextplane.handoff.unanchored import UnanchoredRef

__all__ = ["Deleted", "Found", "HandoffLimits", "SelectedBy", "Written"]

SelectedBy = Literal[
    "exact_id",
    "name_latest_finalized_updated_at_then_revision",
    "name_latest_draft_updated_at_then_revision",
]


class HandoffLimits(Value, frozen=True):
    """How long a pack can be had after its deadline, how large it may be, and how large a file that it refers to."""

    grace_seconds: int = 900
    max_pack_bytes: int = 512 * 1024
    max_source_bytes: int = 2 * 1024 * 1024


class Found(Value, frozen=True):
    """The newest revision of a pack, the digest of its object, and why it is this one that was found."""

    pack: HandoffPack
    digest: Digest
    selected_by: SelectedBy


class Written(Value, frozen=True):
    """A new revision. One that is not `stored` was only checked; `moved` refs stand elsewhere than they say.

    `unanchored` refs speak of lines that are not there.
    """

    pack: HandoffPack
    digest: Digest
    stored: bool
    moved: "tuple[MovedRef, ...]" = ()
    unanchored: "tuple[UnanchoredRef, ...]" = ()


class Deleted(Value, frozen=True):
    """Which pack was meant, and whether it was there to be deleted."""

    id: HandoffId
    deleted: bool
