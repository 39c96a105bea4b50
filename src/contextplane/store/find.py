"""From what a person typed to the one thing it names in this store.

Whether the index is in step with the registered packs: the question every verb begins with, so it costs little.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, ExecutionRef
from contextplane.model.reference import ExecutionPrefix
from contextplane.ports.catalog import Catalog
from contextplane.ports.pack_entries import ExecutionEntries

__all__ = ["MARK", "PACKS", "AmbiguousPrefix", "ExecutionPackNotFound", "find_execution_pack", "in_step"]

PACKS = "packs/"
"""The prefix of the roots that registered packs are."""

MARK = "packs"
"""The mark that holds the state of the entries as of when the index was last brought in step."""


def in_step(catalog: Catalog, entries: ExecutionEntries) -> bool:
    """Whether no pack came since the index was last brought in step. One look at the folder's time."""
    state = entries.state()
    with catalog.read() as view:
        return state is not None and view.marks.get(MARK) == state


_NAMED = 10


class ExecutionPackNotFound(ContextPlaneError):
    """No execution pack of this hash is registered here."""

    code: ClassVar[str] = "execution_pack_not_found"
    family: ClassVar[Family] = "not_found"


class AmbiguousPrefix(ContextPlaneError):
    """Several execution packs begin with these digits."""

    code: ClassVar[str] = "reference_ambiguous"
    family: ClassVar[Family] = "conflict"


def find_execution_pack(catalog: Catalog, ref: ExecutionRef | ExecutionPrefix) -> Digest:
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
