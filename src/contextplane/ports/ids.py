"""What we need of chance, so that nothing else makes up names."""

from typing import Protocol

from contextplane.model.ids import HandoffId

__all__ = ["Ids"]


class Ids(Protocol):
    """Fresh identities. Two may be equal by chance: whoever uses one looks whether it is free."""

    def handoff_id(self) -> HandoffId: ...

    def secret(self) -> bytes:
        """32 bytes that nobody can guess."""
        ...
