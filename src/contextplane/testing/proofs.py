"""The decorator `proves`, which names the requirements that a test proves.

It does not change the test. Proofs are counted by reading the source, so the ids must be literals.
"""

from collections.abc import Callable
from typing import TypeVar

__all__ = ["proves"]

Test = TypeVar("Test", bound=Callable[..., object])


def proves(*ids: str) -> Callable[[Test], Test]:
    """Mark a test, or a law of a suite, as a proof of the requirements with these ids."""

    def mark(test: Test) -> Test:
        earlier: tuple[str, ...] = getattr(test, "__proves__", ())
        test.__proves__ = (*ids, *earlier)  # type: ignore[attr-defined]
        return test

    return mark
