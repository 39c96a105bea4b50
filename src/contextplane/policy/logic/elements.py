"""The elements of lists that an expression reads. Pure.

The body of a loop sees an element and no facts. What it reads there has a name all the same:
`request.context.items[].amount` is the amount of an item. The name of an element of a computed list is `[]`.
"""

from collections.abc import Callable
from typing import NamedTuple

from contextplane.model.json.canonical import Json
from contextplane.policy.logic.strict import MISSING, PER_ELEMENT, operation, reads_without_default, throw

__all__ = ["ElementRead", "element_reads", "fail_without"]

_CURRENT_ELEMENT, _TOTAL = "current", "accumulator"


class ElementRead(NamedTuple):
    """A path that is read of elements without a default. `may_lack` holds where an element lacks it."""

    name: str
    may_lack: Json


class _Place(NamedTuple):
    """Where a part stands: among the facts, without a name, or at each element of a list.

    `ways` lead from the facts to the elements, from list to list; None where that is computed.
    """

    name: str = ""
    ways: tuple[str, ...] | None = ()
    reduced: bool = False


_Read = Callable[[str, Json, Json], Json]
"""Replaces a part that reads a fact or an element: given its name, when it is lacking, and the part itself."""


def element_reads(expression: Json) -> tuple[ElementRead, ...]:
    """Everything that an expression reads of elements, each name and way once."""
    if not _has_loop(expression):
        return ()
    reads: list[ElementRead] = []

    def note(name: str, may_lack: Json, part: Json) -> Json:
        if may_lack is not None:
            reads.append(ElementRead(name, may_lack))
        return part

    _walk(expression, _Place(), note)
    return tuple(read for n, read in enumerate(reads) if read not in reads[:n])


def _has_loop(expression: Json) -> bool:
    """Whether there is a loop in it. Most conditions have none and need no further analysis."""
    if isinstance(expression, dict):
        return any(name in PER_ELEMENT or _has_loop(argument) for name, argument in expression.items())
    return isinstance(expression, list) and any(map(_has_loop, expression))


def fail_without(expression: Json, name: str) -> Json:
    """The same expression, failing when it reads this fact, or this name of an element, and it is missing."""

    def fail(read: str, _: Json, part: Json) -> Json:
        return {"if": [{"===": [part, None]}, throw(MISSING), part]} if read == name else part

    return _walk(expression, _Place(), fail)


def _walk(expression: Json, place: _Place, read: _Read) -> Json:
    if isinstance(expression, list):
        return [_walk(part, place, read) for part in expression]
    if not isinstance(expression, dict):
        return expression
    operator, operands = operation(expression)
    if operator == "var" and reads_without_default(operands):
        return _of_element(expression, place, read)
    if operator in PER_ELEMENT and len(operands) > 1:
        source, each, *others = operands
        inner = _elements_of(source, place)._replace(reduced=operator == "reduce")
        return {
            operator: [
                _walk(source, place, read),
                _walk(each, inner, read),
                *(_walk(part, place, read) for part in others),
            ]
        }
    return {name: _walk(argument, place, read) for name, argument in expression.items()}


def _of_element(variable: Json, place: _Place, read: _Read) -> Json:
    operands = operation(variable)[1]
    path = _path(operands, place)
    if path is None or not (place.name or path):
        return variable
    if not place.name:
        # A fact: only a text names one.
        return read(path, None, variable) if isinstance(operands[0], str) else variable
    may_lack: Json = True
    if place.ways is not None:
        may_lack = {"===": [{"var": path}, None]}
        for way in reversed(place.ways):
            may_lack = {"some": [{"var": way}, may_lack]}
    return read(_join_names(place.name, path), may_lack, variable)


def _path(operands: list[Json], place: _Place) -> str | None:
    """The path that is named; None where none is.

    `reduce` calls the element `current`. The accumulator beside it is no part of an element.
    """
    name = operands[0] if operands else None
    if name is None:
        return ""
    first, _, remainder = str(name).partition(".")
    if type(name) not in {str, int} or (place.reduced and first == _TOTAL):
        return None
    return remainder if place.reduced and first == _CURRENT_ELEMENT else str(name)


def _elements_of(source: Json, place: _Place) -> _Place:
    """The place of the elements of this list."""
    operator, operands = operation(source)
    if operator == "filter" and operands:
        return _elements_of(operands[0], place)
    path = _path(operands, place) if operator == "var" else None
    if path is None:
        return _Place("[]", None)
    known = place.ways is not None and operands[1:] in ([], [[]], [None])
    return _Place(f"{_join_names(place.name, path)}[]", (*(place.ways or ()), path) if known else None)


def _join_names(name: str, path: str) -> str:
    return f"{name}.{path}" if name and path else name or path
