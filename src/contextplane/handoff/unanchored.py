"""The refs of a new revision that hold on to nothing: a draft may speak of code that is not there yet."""

from collections.abc import Callable

from contextplane.handoff.code import Looked
from contextplane.model.handoff import HandoffPack, Ref
from contextplane.model.value import Value

__all__ = ["UnanchoredRef", "unanchored"]


class UnanchoredRef(Value, frozen=True):
    """A ref whose lines were not there when it was written, so that nobody can follow them."""

    section_key: str
    ref_key: str
    reason: str


def unanchored(pack: HandoffPack, look: Callable[[Ref], Looked]) -> tuple[UnanchoredRef, ...]:
    """Which refs have no anchor, in their order, and why."""
    return tuple(
        UnanchoredRef(section_key=section.key, ref_key=ref.key, reason=look(ref).why)
        for section in pack.sections
        for ref in section.refs
        if ref.anchor is None
    )
