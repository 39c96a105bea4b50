"""The strict form of an expression: what JSONLogic would quietly take for something else is an error there. Pure.

True and false have no place in an order, only a list can be gone through, and only a list or a text be searched. Where
the engine would take them for a number, or for a list without elements, the strict form fails; everywhere else it comes
to the same. The form is ours alone: it uses two operators that no pack may use.

What a condition reads of the elements of lists, and whether an element lacks it. Pure.

What a loop does with each element sees that element and no fact. What it reads there has a name all the same:
`request.context.items[].amount` is the amount of an item. Of a list that is itself computed, the name is `[]`.

The operators of conditions, by what they do with what they are given.
"""

from collections.abc import Callable
from typing import NamedTuple

from contextplane.model.json.canonical import Json

__all__ = [
    "COMPARING",
    "INTERNAL_FAMILIES",
    "LISTING",
    "NO_LIST",
    "NO_ORDER",
    "NO_PLACE",
    "OPERATORS",
    "ORDERING",
    "PER_ELEMENT",
    "RECKONING",
    "ElementRead",
    "element_reads",
    "failing",
    "failing_without",
    "operation",
    "strict",
]

ORDERING = frozenset({"<", "<=", ">", ">="})
COMPARING = frozenset({"==", "===", "!=", "!=="}) | ORDERING
RECKONING = frozenset({"max", "min", "+", "-", "*", "/", "%"})
"""What they come to is a number."""

PER_ELEMENT = frozenset({"map", "filter", "reduce", "all", "none", "some"})
"""They go through a list: it stands first, and what is done with each element second."""

LISTING = frozenset({"map", "filter", "merge", "missing", "missing_some"})
"""What they come to is a list."""

OPERATORS = (
    COMPARING | RECKONING | PER_ELEMENT | LISTING | {"var", "if", "?:", "!", "!!", "or", "and", "in", "cat", "substr"}
)
"""The operators of the public suite, and nothing that an engine adds to them: no dates and no lots."""


def operation(expression: Json) -> tuple[str, list[Json]]:
    """The operator and its operands; no operator where there is none."""
    if not isinstance(expression, dict) or len(expression) != 1:
        return "", []
    operator, given = next(iter(expression.items()))
    return operator, given if isinstance(given, list) else [given]


INTERNAL_FAMILIES = ("ExtControl", "ErrorHandling")
"""The engine's families that hold `type` and `throw`. No pack reaches them: the fence lets others pass only."""

NO_LIST, NO_ORDER, NO_PLACE = "no_list", "no_order", "no_place"
_TEXTS = frozenset({"cat", "substr"})
_NEVER_BOOLEAN = RECKONING | LISTING | _TEXTS
_LISTS: list[Json] = ["array", "null"]
_PLACES: list[Json] = ["array", "string", "null"]
_BOOLEANS: list[Json] = ["boolean"]
_CURRENT: Json = {"var": "current"}


def strict(expression: Json) -> Json:
    """The same expression, in its strict form."""
    if isinstance(expression, list):
        return [strict(one) for one in expression]
    if not isinstance(expression, dict):
        return expression
    operator, operands = operation(expression)
    if operator in ORDERING:
        return {operator: [_ordered(operands, n) for n in range(len(operands))]}
    if operator in PER_ELEMENT and operands:
        return {operator: [_gone_through(operands[0]), *map(strict, operands[1:])]}
    if operator == "in" and len(operands) == 2:  # noqa: PLR2004  what is searched for, and where
        return {operator: [strict(operands[0]), _searched(operands[1])]}
    return {name: strict(given) for name, given in expression.items()}


def failing(why: str) -> Json:
    """An expression that has no value; the engine's error says why."""
    return {"throw": why}


def _ordered(operands: list[Json], n: int) -> Json:
    """An operand of an order: anything but true and false."""
    one = operands[n]
    operator, _ = operation(one)
    if isinstance(one, bool):
        return failing(NO_ORDER)
    if not isinstance(one, dict) or operator in _NEVER_BOOLEAN:
        return strict(one)
    beside = [operands[place] for place in (n - 1, n + 1) if 0 <= place < len(operands)]
    if all(_is_number(other) for other in beside):
        # It is taken for a number in any case, and to add to true or false is an error: that costs the least.
        return {"+": [strict(one), 0]}
    return _checked(strict(one), lambda value: {"if": [_is_of(value, _BOOLEANS), failing(NO_ORDER), value]})


def _gone_through(one: Json) -> Json:
    """The list of a loop. Where it is missing there is nothing to go through, which is for others to judge."""
    operator, _ = operation(one)
    if isinstance(one, list) or one is None or operator in LISTING:
        return strict(one)
    if not isinstance(one, dict):
        return failing(NO_LIST)
    return _checked(strict(one), lambda value: {"if": [_is_of(value, _LISTS), value, failing(NO_LIST)]})


def _searched(one: Json) -> Json:
    """Where something is searched for. Where it is missing nothing is found, which is for others to judge."""
    operator, _ = operation(one)
    if isinstance(one, list | str) or one is None or operator in LISTING | _TEXTS:
        return strict(one)
    if not isinstance(one, dict):
        return failing(NO_PLACE)
    return _checked(strict(one), lambda value: {"if": [_is_of(value, _PLACES), value, failing(NO_PLACE)]})


def _checked(one: Json, check: Callable[[Json], Json]) -> Json:
    """A value that is looked at twice. What is computed is computed once, else nesting would double the work."""
    operator, operands = operation(one)
    if operator == "var" and not any(isinstance(part, dict | list) for part in operands):
        return check(one)
    return {"reduce": [[one], check(_CURRENT), None]}


def _is_of(value: Json, kinds: list[Json]) -> Json:
    return {"in": [{"type": [value]}, kinds]}


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CURRENT_ELEMENT, _TOTAL = "current", "accumulator"


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
    return rest if place.reduced and first == _CURRENT_ELEMENT else str(name)


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
