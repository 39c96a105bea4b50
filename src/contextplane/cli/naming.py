"""From what was typed to the execution pack it names."""

from typing import TYPE_CHECKING, ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, ExecutionRef
from contextplane.model.reference import ExecutionPrefix, parse_reference
from contextplane.store.find import find_execution_pack

if TYPE_CHECKING:
    from contextplane.app.platform import Platform

__all__ = ["NotAPack", "named_pack"]


class NotAPack(ContextPlaneError):
    """A reference to something else, where an execution pack is asked for."""

    code: ClassVar[str] = "reference_not_an_execution_pack"
    family: ClassVar[Family] = "usage"


def named_pack(text: str, platform: "Platform") -> Digest:
    """The digest of the execution pack that `text` names."""
    reference = parse_reference(text)
    named = reference.named
    if isinstance(named, Digest):
        named = ExecutionRef(named)
    if reference.selector or not isinstance(named, ExecutionRef | ExecutionPrefix):
        raise NotAPack(
            "not an execution pack", at=text[:200], hint="write ctx://<hash>, or the first digits of its hash"
        )
    return find_execution_pack(platform.catalog, named)
