"""What a condition reads of the elements of lists, and whether an element lacks it. Pure.

What a loop does with each element sees that element and no fact. What it reads there has a name all the same:
`request.context.items[].amount` is the amount of an item. Of a list that is itself computed, the name is `[]`.
"""

from collections.abc import Callable
from typing import NamedTuple

from contextplane.model.canonical import Json
from contextplane.policy.operators import PER_ELEMENT, operation
from contextplane.policy.strict import failing

__all__ = ["ElementRead", "element_reads", "failing_without"]

_CURRENT, _TOTAL = "current", "accumulator"


class ElementRead(NamedTuple):
    """Something that is read of elements without a default. `perhaps` holds wherever an element lacks it."""

    name: str
    perhaps: Json


class _Place(NamedTuple):
    """Where a part stands: among the facts, where it has no name, or at each element of a list.

    `ways` lead from the facts to the elements, from list to list; None where that is computed.
    """

    name: str = ""
    ways: tuple[str, ...] | None = ()
    reduced: bool = False


_Read = Callable[[str, Json, Json], Json]
"""What becomes of a part that reads an element: by its name, when an element lacks it, and the part itself."""


def element_reads(expression: Json) -> tuple[ElementRead, ...]:
    """All that it reads of elements, each name and way once."""
    if not _goes_through(expression):
        return ()
    found: list[ElementRead] = []

    def note(name: str, perhaps: Json, part: Json) -> Json:
        found.append(ElementRead(name, perhaps))
        return part

    _walked(expression, _Place(), note)
    return tuple(one for n, one in enumerate(found) if one not in found[:n])


def _goes_through(expression: Json) -> bool:
    """Whether there is a loop in it. Most conditions have none, and then nothing else has to be asked."""
    if isinstance(expression, dict):
        return any(name in PER_ELEMENT or _goes_through(given) for name, given in expression.items())
    return isinstance(expression, list) and any(map(_goes_through, expression))


def failing_without(expression: Json, name: str) -> Json:
    """The same expression, which fails when it comes to read this of an element that lacks it."""

    def fail(read: str, _: Json, part: Json) -> Json:
        return {"if": [{"===": [part, None]}, failing("missing"), part]} if read == name else part

    return _walked(expression, _Place(), fail)


def _walked(expression: Json, place: _Place, read: _Read) -> Json:
    if isinstance(expression, list):
        return [_walked(one, place, read) for one in expression]
    if not isinstance(expression, dict):
        return expression
    operator, operands = operation(expression)
    if operator == "var" and len(operands) < 2:  # noqa: PLR2004  it has no default
        return _of_element(expression, place, read)
    if operator in PER_ELEMENT and len(operands) > 1:
        source, each, *rest = operands
        inner = _inside(source, place)._replace(reduced=operator == "reduce")
        return {
            operator: [
                _walked(source, place, read),
                _walked(each, inner, read),
                *(_walked(one, place, read) for one in rest),
            ]
        }
    return {name: _walked(given, place, read) for name, given in expression.items()}


def _of_element(variable: Json, place: _Place, read: _Read) -> Json:
    path = _path(operation(variable)[1], place)
    if not place.name or path is None:
        return variable
    perhaps: Json = True
    if place.ways is not None:
        perhaps = {"===": [{"var": path}, None]}
        for way in reversed(place.ways):
            perhaps = {"some": [{"var": way}, perhaps]}
    return read(_joined(place.name, path), perhaps, variable)


def _path(operands: list[Json], place: _Place) -> str | None:
    """The path that is named; None where none is.

    `reduce` calls the element `current`. Beside it stands what was reduced so far, which is no part of an element.
    """
    name = operands[0] if operands else None
    if name is None:
        return ""
    first, _, rest = str(name).partition(".")
    if type(name) not in {str, int} or (place.reduced and first == _TOTAL):
        return None
    return rest if place.reduced and first == _CURRENT else str(name)


def _inside(source: Json, place: _Place) -> _Place:
    """At the elements of this list."""
    operator, operands = operation(source)
    if operator == "filter" and operands:
        return _inside(operands[0], place)
    path = _path(operands, place) if operator == "var" else None
    if path is None:
        return _Place("[]", None)
    told = place.ways is not None and operands[1:] in ([], [[]])
    return _Place(f"{_joined(place.name, path)}[]", (*(place.ways or ()), path) if told else None)


def _joined(name: str, path: str) -> str:
    return f"{name}.{path}" if name and path else name or path
