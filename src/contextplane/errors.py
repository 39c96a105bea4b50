"""The one error base of the product: data for its reporter, never an action.

It does not print, log or exit; surfaces map `family` to an exit status or a protocol error in tables of their own.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

__all__ = ["ContextPlaneError", "Family"]

Family = Literal["failed", "usage", "refused", "untrusted", "drift", "not_found", "conflict"]


class ContextPlaneError(Exception):
    """Something that contextplane will not or cannot do.

    `code` is API and never changes its meaning; `message` is for people and may. `at` is the place: a path, or a JSON
    Pointer into a document, or both as `file#/pointer`. `hint` is the way out. `details` is for machines.
    """

    code: ClassVar[str] = "contextplane_error"
    family: ClassVar[Family] = "failed"

    def __init__(
        self,
        message: str,
        *,
        at: str | None = None,
        hint: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint
        self.details = dict(details or {})

    def under(self, place: str) -> Self:
        """Put `place` before the place of this error, as the error travels outwards through a document."""
        self.at = place + (self.at or "")
        return self

    @property
    def place(self) -> str | None:
        """The place, as people read it."""
        return self.at

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        way_out = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{way_out}"
