"""Conditions of the form that most have are judged by their form: the engine and the general walk say the same."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contextplane.policy.logic import expression
from contextplane.policy.logic.solver import are_clearly_contingent, is_clearly_contingent

PATHS = st.sampled_from(["", "a", "a.b", "request.context.amount", "user.role", ".", "a..b", "\u00e9"])
CONSTANTS: st.SearchStrategy[Any] = (
    st.text(max_size=4) | st.booleans() | st.integers(-(2**54), 2**54) | st.none() | st.floats() | st.just([])
)
OPERATORS = st.sampled_from(["==", "===", "!=", "!==", "<", "<=", ">", ">=", "in", "+", "sort", "var"])
COMPARISONS: st.SearchStrategy[Any] = st.builds(
    lambda operator, path, rest: {operator: [{"var": path}, *rest]}, OPERATORS, PATHS, st.lists(CONSTANTS, max_size=2)
)
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    COMPARISONS | CONSTANTS,
    lambda parts: st.builds(
        lambda name, of: {name: of}, st.sampled_from(["and", "or", "!"]), st.lists(parts, max_size=9)
    ),
    max_leaves=20,
)


@given(CONDITIONS)
def test_what_is_of_a_simple_form_has_no_problem_and_reads_what_it_names(condition: Any) -> None:  # noqa: ANN401
    comparisons = expression.simple_comparisons(condition)
    if comparisons is not None:
        assert expression._count_parts(condition, 1) <= expression.MAX_LOGIC_PARTS
        assert expression._engine_problems(condition) == ()
        # With a part that is of no simple form beside it, the general walk is taken.
        reads = {path for path, _, _ in comparisons}
        assert expression.variables([condition, {"!": [True]}]) == reads == expression.variables(condition)
        assert are_clearly_contingent(comparisons) is is_clearly_contingent(condition)


@given(PATHS, st.sampled_from(["==", ">"]), st.integers(-9, 9) | st.text(max_size=3) | st.booleans(), st.integers(1, 8))
def test_comparisons_that_are_joined_are_of_that_form(path: str, operator: str, constant: object, many: int) -> None:
    comparison: Any = {operator: [{"var": path}, constant]}
    assert expression.simple_comparisons(comparison) is not None
    assert (
        expression.simple_comparisons({"and": [comparison, {"or": [comparison] * (many + 1 if many < 8 else many)}]})
        is not None
    )


def test_what_is_deep_or_wide_is_left_to_the_general_walk() -> None:
    comparison: Any = {"==": [{"var": "a"}, 1]}
    assert expression.simple_comparisons({"and": [comparison] * 9}) is None
    deep: Any = comparison
    for _ in range(4):
        deep = {"and": [comparison, deep]}
    assert expression.simple_comparisons(deep) is None
    assert expression.logic_problems(deep) == ()
    assert expression.variables(deep) == {"a"}
