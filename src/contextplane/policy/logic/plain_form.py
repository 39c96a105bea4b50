"""The plain form of a condition: unchecked, and right where its facts have the usual kinds. Pure.

Most conditions compare facts with constants. Where each fact has a kind that the comparison is made for, nothing has to
be checked while it is evaluated: the plain form has the value of the strict form. Where a fact has another kind, the
plain form says nothing, and the strict form decides.
"""

from collections.abc import Mapping
from types import NoneType
from typing import NamedTuple

from contextplane.model.json.canonical import Json
from contextplane.policy.logic.expression import is_number
from contextplane.policy.logic.strict import ORDERINGS, may_be_time, operation

__all__ = ["Kinds", "PlainForm", "plain_form"]

Kinds = frozenset[type]
"""The types of values, as they are decoded from JSON."""

_NUMBERS: Kinds = frozenset({int, float})
_SCALARS: Kinds = frozenset({str, int, float, bool, NoneType})
_VALUES: Kinds = _SCALARS | {list, dict}
_TRUTHS: Kinds = frozenset({bool})
_EQUALITIES: Mapping[str, str] = {"==": "===", "===": "===", "!=": "!==", "!==": "!=="}
_TWO = 2


class PlainForm(NamedTuple):
    """A form that is right where the value at each path is of one of its kinds; null where it is absent."""

    form: Json
    kinds: Mapping[str, Kinds]


def plain_form(expression: Json) -> PlainForm | None:
    """The plain form of an expression; None where it has none."""
    kinds: dict[str, Kinds] = {}
    form = _plain(expression, kinds)
    return PlainForm(form, kinds) if form is not None and all(kinds.values()) else None


def _plain(expression: Json, kinds: dict[str, Kinds]) -> Json:
    """The plain form of what is true or false, or None. Adds the kinds that its facts must have."""
    operator, operands = operation(expression)
    form: Json = None
    if isinstance(expression, bool):
        form = expression
    elif operator in {"and", "or", "!", "!!"} and operands:
        form = _join(operator, [_plain(operand, kinds) for operand in operands])
    elif operator == "var":
        form = _read(expression, _TRUTHS, kinds)
    elif operator in _EQUALITIES and len(operands) == _TWO:
        form = _compare(operator, operands, kinds)
    elif operator in ORDERINGS and len(operands) >= _TWO:
        form = _join(operator, [part if is_number(part) else _read(part, _NUMBERS, kinds) for part in operands])
    elif operator == "in" and len(operands) == _TWO and _is_plain_list(operands[1]):
        form = _join(operator, [_read(operands[0], _SCALARS, kinds), operands[1]])
    return form


def _join(operator: str, forms: list[Json]) -> Json:
    return None if None in forms else {operator: forms}


def _compare(operator: str, operands: list[Json], kinds: dict[str, Kinds]) -> Json:
    """An equality of a fact on one side and a constant on the other."""
    constants: list[Json] = [operand for operand in operands if not isinstance(operand, dict)]
    if len(constants) != 1 or not _is_plain_list(constants):
        return None
    constant = constants[0]
    alike = _NUMBERS if is_number(constant) else frozenset({type(constant)})
    usual = _VALUES if constant is None else _SCALARS if operator in {"===", "!=="} else alike | {NoneType}
    fact = _read(operands[0] if isinstance(operands[0], dict) else operands[1], usual, kinds)
    return None if fact is None else {_EQUALITIES[operator]: [fact, constant]}


def _read(expression: Json, usual: Kinds, kinds: dict[str, Kinds]) -> Json:
    """A variable, whose value must be of a usual kind, or None. An absent one has its default."""
    operator, operands = operation(expression)
    path, default = operands[0] if operands else None, operands[1:]
    if operator != "var" or not isinstance(path, str) or not path:
        return None
    has_default = default not in ([], [None])
    if has_default:
        in_list = any(step[:1].isdigit() for step in path.split("."))  # null may stand in a list, and has no default
        if in_list or not _is_plain_list(default) or type(default[0]) not in usual:
            return None
        usual |= {NoneType}
    kinds[path] = kinds.get(path, _VALUES) & usual
    return {"var": [path, *default] if has_default else path}


def _is_plain_list(value: Json) -> bool:
    """Whether a value is a list of constants, none of which can be taken for a time."""
    return isinstance(value, list) and not any(
        isinstance(part, dict | list) or (isinstance(part, str) and may_be_time(part)) for part in value
    )
