"""A condition as a reviewer reads it: `request.context.refund_amount > 3000`."""

from contextplane.model.canonical import Json, canonical

__all__ = ["spoken"]

_BETWEEN = frozenset({"==", "===", "!=", "!==", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in"})
_JOINING = frozenset({"and", "or"})
_DEEPEST = 8
"""Whatever lies deeper is shown as it is written: nobody reads it in one line."""


def spoken(condition: Json, depth: int = 0) -> str:
    """A condition in one line. What has no shorter form is shown as it is written."""
    if not isinstance(condition, dict) or len(condition) != 1 or depth > _DEEPEST:
        return canonical(condition).decode()
    operator, given = next(iter(condition.items()))
    operands: list[Json] = given if isinstance(given, list) else [given]
    if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
        return operands[0]
    if operator in _JOINING and len(operands) > 1:
        return f" {operator} ".join(_within(one, depth) for one in operands)
    if operator in _BETWEEN and len(operands) == 2:  # noqa: PLR2004  one on either side
        return f" {operator} ".join(_within(one, depth) for one in operands)
    if operator == "!" and len(operands) == 1:
        return f"not {_within(operands[0], depth)}"
    return canonical(condition).decode()


def _within(part: Json, depth: int) -> str:
    """A part of a larger condition: in brackets, where it could be read otherwise."""
    text = spoken(part, depth + 1)
    plain = not isinstance(part, dict) or set(part) == {"var"} or (depth == 0 and not _JOINING & set(part))
    return text if plain or text[:1] in "{[" else f"({text})"
