"""`ctx cat pk_...[@N]`: the bytes of a revision, whose SHA-256 is its digest."""

from contextplane.cli.handoffs.naming import found
from contextplane.cli.handoffs.opening import opening_desk
from contextplane.cli.screen import Screen
from contextplane.model.reference import HandoffRef

__all__ = ["bytes_of"]


def bytes_of(ref: HandoffRef, screen: Screen) -> bytes:
    with opening_desk(screen) as desk:
        return desk.reading.bytes_of(found(str(ref), desk))
