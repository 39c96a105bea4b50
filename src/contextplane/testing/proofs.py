"""The decorator `proves`, which names the requirements that a test proves.

It does not change the test. Proofs are counted by reading the source, so the ids must be literals. A claim on a
data-driven test names the case that it rests on; a case that is not there is an error when the module is imported.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

__all__ = ["proves"]

Test = TypeVar("Test", bound=Callable[..., object])


def proves(*ids: str, case: str | None = None) -> Callable[[Test], Test]:
    """Mark a test, or a law of a suite, as a proof of the requirements with these ids.

    `case`: the label of the case of a data-driven test that proves them.
    """

    def mark(test: Test) -> Test:
        if case is not None and case not in _labels(test):
            message = f"the test has no case {case!r}, which is to prove {', '.join(ids)}"
            raise ValueError(message)
        earlier: tuple[str, ...] = getattr(test, "__proves__", ())
        test.__proves__ = (*ids, *earlier)  # type: ignore[attr-defined]
        return test

    return mark


def _labels(test: Callable[..., object]) -> Iterator[str]:
    """Yield the labels of a test's cases: those of `cases`, and of `parametrize` where they are texts."""
    yield from getattr(test, "__cases__", ())
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            ids = mark.kwargs.get("ids")
            yield from (label for label in (ids if isinstance(ids, list) else mark.args[1]) if isinstance(label, str))
