"""Cases as data: one test for all of them, which names every case that fails."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

from contextplane.testing.proofs import EVERY_CASE

__all__ = ["cases"]

Test = TypeVar("Test", bound=Callable[..., None])


def cases(names: str | Iterable[str], values: Iterable[Any], *, ids: Any = None) -> Callable[[Test], Test]:  # noqa: ANN401  as pytest has it
    """Run a test for every case, like `pytest.mark.parametrize`, but as one test.

    It is for functions that take a moment and need no fixture of their own for each case: a test each would cost more
    than the case. All failures are reported, each with its case and the requirements that it is to prove.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_row(value, parameters) for value in values]
    names_of_cases = ids if ids is None or callable(ids) else list(ids)
    labels = [_label(row, n, names_of_cases) for n, row in enumerate(rows)]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:  # noqa: ANN401
            failures = []
            for row, label in zip(rows, labels, strict=True):
                try:
                    test(*args, **fixtures, **dict(zip(parameters, row, strict=True)))
                except Exception as error:  # noqa: BLE001  every case is told
                    error.add_note(f"case {label}" + _claim(run, label))
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(rows)} cases failed", failures)

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in parameters]
        # By this pytest knows which fixtures it needs.
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        run.__cases__ = tuple(labels)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate


def _row(value: Any, parameters: list[str]) -> tuple[Any, ...]:  # noqa: ANN401
    if isinstance(value, type(pytest.param(0))):
        assert not value.marks, "a case with a mark of its own is a test of its own"
        return tuple(value.values)
    return (value,) if len(parameters) == 1 else tuple(value)


def _claim(test: Callable[..., None], label: str) -> str:
    claims = getattr(test, "__claims__", {})
    ids = (*claims.get(label, ()), *claims.get(EVERY_CASE, ()))
    return f", which is to prove {', '.join(ids)}" if ids else ""


def _label(row: tuple[Any, ...], n: int, ids: Any) -> str:  # noqa: ANN401
    if callable(ids):
        return "-".join(str(label) for label in map(ids, row) if label is not None)
    return str(ids[n]) if ids is not None else f"{n}: {', '.join(map(repr, row))[:200]}"
