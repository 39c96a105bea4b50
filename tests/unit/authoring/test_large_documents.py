"""Of a very large document that is not of its form the first parts are told; where one part stands is found at once."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.gates.schema import schema_violations, truncate_document, typed_or_problems
from contextplane.authoring.law import redact_secrets
from contextplane.authoring.pointer_position import json_place
from contextplane.authoring.positions import LineTable, json_offsets
from contextplane.model.artifact import EnvironmentDescription
from contextplane.model.invoke import RunContext
from contextplane.model.suggestion import did_you_mean
from tests.support.cases import cases
from tests.unit.compiler.scenario import CASE, put

NAMES = st.text('ab/~"\\é0', max_size=3)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.floats(-9, 9), st.text('"\\/~é\n,[]{}: x', max_size=5)
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=25
)


def size(value: Any) -> int:  # noqa: ANN401  any JSON
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(size, inner))


def is_part_of(part: Any, whole: Any) -> bool:  # noqa: ANN401  any JSON
    """Whether each of its lists begins like the other, and each of its objects has members of the other."""
    if isinstance(part, dict):
        return bool(part) is bool(whole) and all(is_part_of(member, whole[name]) for name, member in part.items())
    if isinstance(part, list):
        return bool(part) is bool(whole) and all(map(is_part_of, part, whole))
    return bool(part == whole)


@given(DOCUMENTS, st.integers(1, 30))
def test_the_first_parts_of_a_document_are_parts_of_it_and_nothing_becomes_empty(value: Any, most: int) -> None:  # noqa: ANN401
    part, is_whole = truncate_document(value, most, ())
    assert is_part_of(part, value)
    assert is_whole is (part == value)
    assert is_whole or size(value) > most


def test_no_more_parts_are_taken_than_was_said_and_fields_stay_wherever_they_stand() -> None:
    value: dict[str, Any] = {
        "many": [[n] for n in range(1000)],
        **{f"x{n}": n for n in range(1000)},
        "last": {"known": 1},
    }
    part, is_whole = truncate_document(value, 300, {"last", "known"})
    assert not is_whole
    assert isinstance(part, dict)
    assert part["last"] == {"known": 1}
    assert size(part) < 600


def test_of_many_problems_so_many_are_told_and_that_there_are_more() -> None:
    violations = [violation for _, violation in schema_violations({"endpoints": [1] * 300_000}, EnvironmentDescription)]
    assert len(violations) == 201
    assert violations[-1].cause == "there are more than 200 problems; the rest is not listed"


def test_that_only_the_first_parts_were_looked_through_is_told_beside_what_is_wrong_there() -> None:
    value = put(CASE["run_context"], {"/metadata": {f"k{n}": n for n in range(60_000)}, "/surplus": 1, "/locale": 2})
    violations = [violation for _, violation in schema_violations(value, RunContext)]
    assert sorted(violation.at for violation in violations) == ["", "/locale", "/surplus"]
    assert violations[-1].cause == "this is so large that only its first parts were looked through"


@cases("count", [10, 5_000, 30_000, 60_000])
def test_what_is_wrong_behind_the_parts_that_are_looked_through_is_told_with_its_place(count: int) -> None:
    findings = typed_or_problems({"endpoints": ["internal://x"] * count + [7]}, EnvironmentDescription)
    assert isinstance(findings, tuple)
    assert [(finding.at, finding.code, finding.severity) for finding in findings] == [
        (f"/endpoints/{count}", "schema_type_wrong" if count < 50_000 else "schema_value_wrong", "error")
    ]


def test_a_name_without_end_is_told_by_its_length_and_is_near_to_none() -> None:
    name = "k" * 1_000_000
    assert redact_secrets(f"/request/{name}/x", is_pointer=True) == "/request/(a name of 1000000 characters)/x"
    assert did_you_mean(name, ["kk", "request"], "remove it").startswith("remove it")


@given(DOCUMENTS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_a_place_that_is_looked_for_alone_is_the_one_in_the_table_of_all(
    value: Any,  # noqa: ANN401  any JSON
    indent: int | str | None,
    escaped: bool,  # noqa: FBT001
) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=escaped).encode()
    table, lines = json_offsets(data), LineTable(data)
    for at, offset in table.items():
        assert json_place(data, at) == lines.place(offset)
        for beyond in ("/none", "/9", "/01", "/", "/x/y"):
            assert json_place(data, at + beyond) == lines.place(table.get(at + beyond, offset))
