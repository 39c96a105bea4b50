"""The operators of conditions, by what they do with what they are given."""

from contextplane.model.canonical import Json

__all__ = ["COMPARING", "LISTING", "OPERATORS", "ORDERING", "PER_ELEMENT", "RECKONING", "operation"]

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
