"""Looking up an execution pack by its reference or a prefix, and whether the index covers all packs.

It imports little, because every verb begins with it.
"""

from typing import TYPE_CHECKING, ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, ExecutionRef
from contextplane.ports.catalog import Catalog
from contextplane.ports.pack_entries import ExecutionEntries

if TYPE_CHECKING:
    from contextplane.model.reference import ExecutionPrefix

__all__ = [
    "INDEXED_MARK",
    "LEFT_OUT",
    "PACKS",
    "SEARCHED",
    "UNREAD",
    "AmbiguousPrefix",
    "ExecutionPackNotFound",
    "find_execution_pack",
    "index_is_current",
    "unread_prefix",
]

PACKS = "packs/"
"""The prefix of the roots of registered packs: `packs/<hex>`."""

INDEXED_MARK = "packs"
"""The mark with the state of the entries as of when the index last caught up with them."""

_NAMED = 10


class ExecutionPackNotFound(ContextPlaneError):
    """No execution pack of this hash is registered here."""

    code: ClassVar[str] = "execution_pack_not_found"
    family: ClassVar[Family] = "not_found"


class AmbiguousPrefix(ContextPlaneError):
    """Several execution packs begin with these digits."""

    code: ClassVar[str] = "reference_ambiguous"
    family: ClassVar[Family] = "conflict"


def index_is_current(catalog: Catalog, entries: ExecutionEntries) -> bool:
    """Whether the index covers every registered pack. One stat of packs/, because every verb calls it."""
    state = entries.state()
    with catalog.read() as view:
        return state is not None and view.marks.get(INDEXED_MARK) == state


def find_execution_pack(catalog: Catalog, ref: "ExecutionRef | ExecutionPrefix") -> Digest:
    """The registered pack that `ref` names. A prefix must fit exactly one."""
    digits = ref.digest.hex if isinstance(ref, ExecutionRef) else ref.digits
    with catalog.read() as view:
        fits = []
        for _, digest in view.objects.roots(PACKS + digits):
            fits.append(digest)
            if len(fits) > _NAMED:
                break
    if not fits:
        raise ExecutionPackNotFound(
            "no such execution pack in this store",
            at=str(ref),
            hint="'ctx log' lists them; 'ctx cat sha256:<hash>' reads any other object",
        )
    if len(fits) > 1:
        named = [f"ctx://{digest.hex}" for digest in fits[:_NAMED]]
        more = "" if len(fits) <= _NAMED else " and more"
        raise AmbiguousPrefix(
            f"{digits} fits several packs: {', '.join(named)}{more}",
            at=str(ref),
            hint="give more digits",
            details={"candidates": named, "more": len(fits) > _NAMED},
        )
    return fits[0]


SEARCHED = 1 << 20
"""How many bytes of one content are searched: its first mebibyte."""


LEFT_OUT = "texts/left_out"
"""The mark that is set when some content is longer than that, or is not text."""


UNREAD = "texts/unread/"
"""The prefix of the marks of contents that could not be read when their pack was indexed: `<pack>/<content>`, in hex.

Once such a content can be read again, the index is behind.
"""


def unread_prefix(pack: Digest) -> str:
    """The prefix of the unread marks of one pack."""
    return f"{UNREAD}{pack.hex}/"
