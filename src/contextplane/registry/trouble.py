"""What a verification of the registry finds, gathered: a check goes on after each of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value

__all__ = ["Trouble", "Troubles"]


class Trouble(Value, frozen=True):
    """One thing that is wrong: the code that a reader would refuse it with, the place, and in words."""

    code: str
    at: str
    message: str


class Troubles:
    """All that was found so far, each once."""

    def __init__(self) -> None:
        self._found: dict[Trouble, None] = {}

    @property
    def found(self) -> tuple[Trouble, ...]:
        return tuple(self._found)

    def add(self, code: str, at: str, message: str) -> None:
        self._found[Trouble(code=code, at=at, message=message)] = None

    @contextmanager
    def collected(self, at: str) -> Iterator[None]:
        """Go on after a refusal, with a note of it. `at`: where, unless the refusal is more exact."""
        try:
            yield
        except ContextPlaneError as error:
            place = error.at or ""
            self.add(error.code, place if place.startswith(at) else at, error.message)
