"""Which requirements a test proves, said on the test itself.

The mark changes nothing about the test; whoever counts the proofs reads the source, so the ids must be written out.
"""

from collections.abc import Callable
from typing import TypeVar

__all__ = ["proves"]

Test = TypeVar("Test", bound=Callable[..., object])


def proves(*ids: str) -> Callable[[Test], Test]:
    """Mark a test, or a law of a suite, as a proof of the requirements with these ids."""

    def mark(test: Test) -> Test:
        known: tuple[str, ...] = getattr(test, "__proves__", ())
        test.__proves__ = (*ids, *known)  # type: ignore[attr-defined]
        return test

    return mark
