"""The decorator `proves`, which names the requirements that a test proves.

It does not change the test. Proofs are counted by reading the source, so the ids must be literals. A claim on a
data-driven test names the case that it rests on, or `EVERY_CASE` if each case proves all of its ids; a case that is not
there is an error when the module is imported. Only a single id needs no case: it rests on all of them together.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["EVERY_CASE", "proves"]

EVERY_CASE = "*"

Test = TypeVar("Test", bound=Callable[..., object])


def proves(*ids: str, case: str | None = None) -> Callable[[Test], Test]:
    """Mark a test, or a law of a suite, as a proof of the requirements with these ids.

    `case`: the label of the case of a data-driven test that proves them, as pytest shows it.
    """

    def mark(test: Test) -> Test:
        labels = list(_labels(test))
        claims: dict[str, tuple[str, ...]] = getattr(test, "__claims__", {})
        on_all = (*ids, *claims.get(EVERY_CASE, ())) if case is None else ()
        if labels and len(on_all) > 1:
            message = f"name the case of each, or {EVERY_CASE!r}: {len(labels)} cases are to prove {', '.join(on_all)}"
            raise ValueError(message)
        if case is not None and case not in {*labels, EVERY_CASE if labels else None}:
            message = f"the test has no case {case!r}, which is to prove {', '.join(ids)}"
            raise ValueError(message)
        earlier: tuple[str, ...] = getattr(test, "__proves__", ())
        test.__proves__ = (*ids, *earlier)  # type: ignore[attr-defined]
        if labels:
            place = case or EVERY_CASE
            test.__claims__ = {**claims, place: (*ids, *claims.get(place, ()))}  # type: ignore[attr-defined]
        return test

    return mark


def _labels(test: Callable[..., object]) -> Iterator[str]:
    """Yield the labels of a test's cases: those of `cases`, and those of `parametrize`."""
    yield from getattr(test, "__cases__", ())
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            ids = mark.kwargs.get("ids")
            yield from map(_label_maker(ids), mark.args[1]) if ids is None or callable(ids) else map(str, ids)


def _label_maker(ids: Callable[[Any], object] | None) -> Callable[[Any], str]:
    def label(row: Any) -> str:  # noqa: ANN401  any value of a test
        # A `pytest.param` has an id of its own.
        values = row if isinstance(row, tuple) else (row,)
        return str(getattr(row, "id", None) or "-".join(str(ids(value) if ids else value) for value in values))

    return label
