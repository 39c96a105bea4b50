"""The strict form of an expression, and the elements of lists that it reads. Pure.

What JSONLogic quietly takes for something else is an error in the strict form: true and false have no order, only a
list can be iterated, and only a list or a text can be searched. Everywhere else the strict form has the same value. It
uses two operators that no pack may use.

The body of a loop sees an element and no facts. What it reads there has a name all the same:
`request.context.items[].amount` is the amount of an item. The name of an element of a computed list is `[]`.
"""

from collections.abc import Callable
from typing import NamedTuple

from contextplane.model.json.canonical import Json

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "INTERNAL_FAMILIES",
    "LIST_OPERATORS",
    "NO_LIST",
    "NO_ORDER",
    "NO_PLACE",
    "OPERATORS",
    "ORDERINGS",
    "PER_ELEMENT",
    "ElementRead",
    "element_reads",
    "fail_without",
    "operation",
    "strict_form",
    "throw",
]

# --- Operators ---

ORDERINGS = frozenset({"<", "<=", ">", ">="})
COMPARISONS = frozenset({"==", "===", "!=", "!=="}) | ORDERINGS
ARITHMETIC = frozenset({"max", "min", "+", "-", "*", "/", "%"})
"""Operators that return a number."""

PER_ELEMENT = frozenset({"map", "filter", "reduce", "all", "none", "some"})
"""Operators that iterate a list: the list is the first operand, the body the second."""

LIST_OPERATORS = frozenset({"map", "filter", "merge", "missing", "missing_some"})
"""Operators that return a list."""

OPERATORS = (
    COMPARISONS
    | ARITHMETIC
    | PER_ELEMENT
    | LIST_OPERATORS
    | {"var", "if", "?:", "!", "!!", "or", "and", "in", "cat", "substr"}
)
"""The operators of the public suite, without the extensions of an engine: no dates and no random numbers."""


def operation(expression: Json) -> tuple[str, list[Json]]:
    """The operator and its operands; an empty operator where there is none."""
    if not isinstance(expression, dict) or len(expression) != 1:
        return "", []
    operator, argument = next(iter(expression.items()))
    return operator, argument if isinstance(argument, list) else [argument]


# --- The strict form ---

INTERNAL_FAMILIES = ("ExtControl", "ErrorHandling")
"""The engine's families with `type` and `throw`. No pack can use them: they are not in `OPERATORS`."""

NO_LIST, NO_ORDER, NO_PLACE = "no_list", "no_order", "no_place"
_TEXTS = frozenset({"cat", "substr"})
_NEVER_BOOLEAN = ARITHMETIC | LIST_OPERATORS | _TEXTS
_LISTS: list[Json] = ["array", "null"]
_PLACES: list[Json] = ["array", "string", "null"]
_BOOLEANS: list[Json] = ["boolean"]
_CURRENT: Json = {"var": "current"}


def strict_form(expression: Json) -> Json:
    """The same expression in its strict form."""
    if isinstance(expression, list):
        return [strict_form(part) for part in expression]
    if not isinstance(expression, dict):
        return expression
    operator, operands = operation(expression)
    if operator in ORDERINGS:
        return {operator: [_strict_operand(operands, n) for n in range(len(operands))]}
    if operator in PER_ELEMENT and operands:
        return {operator: [_strict_list(operands[0]), *map(strict_form, operands[1:])]}
    if operator == "in" and len(operands) == 2:  # noqa: PLR2004  what is searched for, and where
        return {operator: [strict_form(operands[0]), _strict_haystack(operands[1])]}
    return {name: strict_form(argument) for name, argument in expression.items()}


def throw(why: str) -> Json:
    """An expression without a value; the engine's error says why."""
    return {"throw": why}


def _strict_operand(operands: list[Json], n: int) -> Json:
    """An operand of an order comparison: anything but true and false."""
    operand = operands[n]
    operator, _ = operation(operand)
    if isinstance(operand, bool):
        return throw(NO_ORDER)
    if not isinstance(operand, dict) or operator in _NEVER_BOOLEAN:
        return strict_form(operand)
    beside = [operands[place] for place in (n - 1, n + 1) if 0 <= place < len(operands)]
    if all(_is_number(other) for other in beside):
        # It is compared as a number in any case, and adding to true or false is an error: the cheapest check.
        return {"+": [strict_form(operand), 0]}
    return _check_value(strict_form(operand), lambda value: {"if": [_is_of(value, _BOOLEANS), throw(NO_ORDER), value]})


def _strict_list(expression: Json) -> Json:
    """The list of a loop. A missing list is empty here; callers judge that it is missing."""
    operator, _ = operation(expression)
    if isinstance(expression, list) or expression is None or operator in LIST_OPERATORS:
        return strict_form(expression)
    if not isinstance(expression, dict):
        return throw(NO_LIST)
    return _check_value(strict_form(expression), lambda value: {"if": [_is_of(value, _LISTS), value, throw(NO_LIST)]})


def _strict_haystack(expression: Json) -> Json:
    """What is searched. Nothing is found where it is missing; callers judge that it is missing."""
    operator, _ = operation(expression)
    if isinstance(expression, list | str) or expression is None or operator in LIST_OPERATORS | _TEXTS:
        return strict_form(expression)
    if not isinstance(expression, dict):
        return throw(NO_PLACE)
    return _check_value(strict_form(expression), lambda value: {"if": [_is_of(value, _PLACES), value, throw(NO_PLACE)]})


def _check_value(expression: Json, check: Callable[[Json], Json]) -> Json:
    """Apply a check that reads its value twice.

    A computed value is computed once, or nesting would double the work.
    """
    operator, operands = operation(expression)
    if operator == "var" and not any(isinstance(part, dict | list) for part in operands):
        return check(expression)
    return {"reduce": [[expression], check(_CURRENT), None]}


def _is_of(value: Json, kinds: list[Json]) -> Json:
    return {"in": [{"type": [value]}, kinds]}


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- Reads of list elements ---

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
"""Replaces a part that reads an element: given its name, when an element lacks it, and the part itself."""


def element_reads(expression: Json) -> tuple[ElementRead, ...]:
    """Everything that an expression reads of elements, each name and way once."""
    if not _has_loop(expression):
        return ()
    reads: list[ElementRead] = []

    def note(name: str, may_lack: Json, part: Json) -> Json:
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
    """The same expression, failing when it reads this name of an element that lacks it."""

    def fail(read: str, _: Json, part: Json) -> Json:
        return {"if": [{"===": [part, None]}, throw("missing"), part]} if read == name else part

    return _walk(expression, _Place(), fail)


def _walk(expression: Json, place: _Place, read: _Read) -> Json:
    if isinstance(expression, list):
        return [_walk(part, place, read) for part in expression]
    if not isinstance(expression, dict):
        return expression
    operator, operands = operation(expression)
    if operator == "var" and len(operands) < 2:  # noqa: PLR2004  it has no default
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
    path = _path(operation(variable)[1], place)
    if not place.name or path is None:
        return variable
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
    known = place.ways is not None and operands[1:] in ([], [[]])
    return _Place(f"{_join_names(place.name, path)}[]", (*(place.ways or ()), path) if known else None)


def _join_names(name: str, path: str) -> str:
    return f"{name}.{path}" if name and path else name or path
