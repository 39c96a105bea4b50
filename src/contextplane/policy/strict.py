"""The strict form of an expression: what JSONLogic would quietly take for something else is an error there. Pure.

True and false have no place in an order, only a list can be gone through, and only a list or a text be searched. Where
the engine would take them for a number, or for a list without elements, the strict form fails; everywhere else it comes
to the same. The form is ours alone: it uses two operators that no pack may use.
"""

from collections.abc import Callable

from contextplane.model.canonical import Json
from contextplane.policy.operators import LISTING, ORDERING, PER_ELEMENT, RECKONING, operation

__all__ = ["INTERNAL_FAMILIES", "NO_LIST", "NO_ORDER", "NO_PLACE", "failing", "strict"]

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
