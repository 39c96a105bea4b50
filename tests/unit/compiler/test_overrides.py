"""Overrides: one value changed, by the name of a fact or by its place, and nothing else."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.compiler.overrides import (
    ABSENT,
    Override,
    apply_overrides,
    fact_pointer,
    known_places,
    parse_override,
    put_value,
    value_at,
)
from contextplane.errors import ContextPlaneError
from tests.support.cases import cases
from tests.unit.compiler.case_files import SHOWN
from tests.unit.compiler.scenario import inputs, view_of

KNOWN = known_places(view_of(inputs()).pack)
WORDS = st.text("abcz/~.-0", min_size=1, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@cases(
    ("name", "place"),
    [
        ("request.context.refund_amount", "/request/input/context/refund_amount"),
        ("request.message", "/request/input/message"),
        ("user.role", "/run_context/user/role"),
        ("agent.agent_id", "/run_context/agent/agent_id"),
        ("run.budget.total_tokens", "/run_context/run_budget/total_tokens"),
        ("run.metadata.x", "/run_context/metadata/x"),
        ("intent", "/request/input/intent"),
        ("safety_mode", "/run_context/safety_mode"),
        ("tenant_id", "/run_context/tenant_id"),
        ("/evidence/0", "/evidence/0"),
    ],
)
def test_a_fact_is_found_where_a_case_has_it(name: str, place: str) -> None:
    assert fact_pointer(name) == place


@cases("text", ["", "x", "=1", "nothing.there=1", "user..role=1", "requests.context=1"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        parse_override(text)
    assert (refused.value.code, refused.value.family) == ("knob_invalid", "usage")
    assert refused.value.hint


@cases("text", ["user.role=supervisor", "intent=", "intent={", "intent=01", "intent='x'"])
def test_a_value_that_is_no_json_is_refused_and_told_how_to_write_it(text: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        parse_override(text)
    assert refused.value.code == "knob_invalid"
    assert "quotes" in (refused.value.hint or "")


@cases(("text", "value"), [("intent=7", 7), ('intent="7"', "7"), ("intent=true", True), ('intent=["a=b"]', ["a=b"])])
def test_a_value_keeps_its_type(text: str, value: object) -> None:
    override = parse_override(text)
    assert override.value == value
    assert type(override.value) is type(value)
    assert override.words == text


@cases(
    ("value", "words", "absent"),
    [
        ("1e400", "1e400 is beyond a double", "no JSON"),
        ("-1e400", "beyond a double", "no JSON"),
        ("9007199254740993", "beyond 2^53-1", "no JSON"),
        ("NaN", "not a JSON number", "no JSON"),
        ('{"a":1,"a":2}', "stands here again", "no JSON"),
        ("supervisor", "a text in quotes: --set 'user.role=\"supervisor\"'", "..."),
        ("my pin is 4711", "a text in quotes", "4711"),
        ("", "a text in quotes", "refused"),
        ("\ud800", "write it as UTF-8", "\ud800"),
    ],
)
def test_a_value_that_is_refused_says_why(value: str, words: str, absent: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        parse_override(f"user.role={value}")
    assert (refused.value.code, refused.value.at) == ("knob_invalid", "--set user.role")
    assert words in str(refused.value)
    assert absent not in str(refused.value)


def test_only_what_is_named_changes_and_the_case_itself_does_not() -> None:
    before = copy.deepcopy(SHOWN)
    after: Any = apply_overrides(SHOWN, [parse_override("request.context.refund_amount=900")], KNOWN)
    assert before == SHOWN
    assert after["request"]["input"]["context"] == {"refund_amount": 900, "identity_verified": True}
    assert put_value(after, "/request/input/context/refund_amount", 4200) == SHOWN


def test_what_a_case_says_twice_is_changed_in_both_places() -> None:
    after: Any = apply_overrides(
        SHOWN, [parse_override('intent="support.other"'), parse_override('user.user_id="usr_1"')], KNOWN
    )
    assert (after["request"]["input"]["intent"], after["run_context"]["intent"]) == ("support.other",) * 2
    assert (after["request"]["user"]["user_id"], after["run_context"]["user"]["user_id"]) == ("usr_1",) * 2


@cases(
    "text",
    [
        "request.context.fraud_signal_high=true",
        'request.context.signals=["fraud_signal_high"]',
        "request.context.order_lookup=true",
        'request.context.region="eu-west-1"',
        "user.tenure_days=3",
    ],
)
def test_a_new_member_is_taken_where_the_pack_looks_at_it(text: str) -> None:
    override = parse_override(text)
    assert value_at(SHOWN, override.at) is ABSENT
    assert value_at(apply_overrides(SHOWN, [override], KNOWN), override.at) == override.value


@cases(
    ("text", "meant"),
    [
        ("request.context.refund_amuont=1", "refund_amount"),
        ('user.rol="x"', "role"),
        ("run.metadata.note=1", "name something"),
        ("request.message.words=1", "name something"),
        ("/evidence/9=1", "name something"),
    ],
)
def test_a_new_member_that_nothing_looks_at_is_refused(text: str, meant: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        apply_overrides(SHOWN, [parse_override(text)], KNOWN)
    assert refused.value.code == "knob_invalid"
    assert meant in (refused.value.hint or "")


@given(document=st.dictionaries(WORDS, JSON, max_size=3), way=st.lists(WORDS, min_size=1, max_size=3), value=JSON)
def test_what_is_put_at_a_place_is_what_stands_there(document: Any, way: list[str], value: Any) -> None:  # noqa: ANN401
    at = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in way)
    before = copy.deepcopy(document)
    try:
        after = put_value(document, at, value)
    except ContextPlaneError:
        parent = value_at(document, at.rpartition("/")[0]) if len(way) > 1 else document
        assert not isinstance(parent, dict) or value_at(document, at) is ABSENT
        after = document
    else:
        assert value_at(after, at) == value
        assert isinstance(after, dict)
        assert {key: part for key, part in after.items() if key != way[0]} == {
            key: part for key, part in document.items() if key != way[0]
        }
    assert document == before


@cases("place", ["9" * 5000, "\u0663", "-1", "1.0", "", "99"])
def test_what_numbers_no_element_of_a_list_is_refused(place: str) -> None:
    at = f"/evidence/{place}"
    assert value_at(SHOWN, at) is ABSENT
    with pytest.raises(ContextPlaneError) as refused:
        apply_overrides(SHOWN, [Override(name=at, at=at, value=1)], KNOWN)
    assert refused.value.code == "knob_invalid"
