"""What holds of the canonical form and of strict reading, for whatever hypothesis can draw."""

import json
from collections.abc import Callable
from typing import TypeVar, cast

import msgspec
import rfc8785
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.model.json.canonical import SORTED, Json, canonical
from contextplane.model.json.errors import MAX_DEPTH, JsonRefused, TooDeep
from contextplane.model.json.explain import DuplicateKey, explain
from contextplane.model.json.parse import parse
from contextplane.testing.proofs import proves
from contextplane.testing.strategies import json_texts, json_values, mutate_texts, python_values

KEYS = st.text(st.sampled_from('az\x7f\u00e9\ud7ff\ue000\ufe0f\uffff\U00010000\U0001f600\U0010ffff\\":'), max_size=3)
DIGESTS = st.text("0123456789e", min_size=8, max_size=64).map("sha256:".__add__)
Given = TypeVar("Given")


class Holder(msgspec.Struct, frozen=True):
    """A struct around what is drawn."""

    b: object
    a: object


def refusal(call: Callable[[Given], object], value: Given) -> JsonRefused | None:
    try:
        call(value)
    except JsonRefused as problem:
        return problem
    return None


@proves("execution-pack:canonicalization:whitespace-removed")
@given(json_values())
def test_the_canonical_form_is_that_of_the_reference(value: Json) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@proves("execution-pack:canonicalization:key-sorting")
@given(st.dictionaries(KEYS, st.dictionaries(KEYS, st.text(max_size=2))))
def test_keys_stand_in_the_order_of_the_reference(value: dict[str, Json]) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.lists(DIGESTS), st.floats(0.0001, 1.0), DIGESTS)
def test_digests_do_not_pass_for_numbers(digests: list[str], score: float, key: str) -> None:
    value: dict[str, Json] = {key: [*digests], "score": [score, 1]}
    assert canonical(value) == rfc8785.dumps(value)


@given(json_values(), json_values())
def test_a_struct_is_written_like_the_dictionary_it_stands_for(first: Json, second: Json) -> None:
    held = Holder(b=[first], a=second)
    assert canonical([held]) == rfc8785.dumps([{"a": second, "b": [first]}])


@given(python_values())
def test_any_value_is_either_written_like_the_reference_or_refused_with_a_place(value: object) -> None:
    problem = refusal(canonical, value)
    if problem is None:
        assert canonical(value) == rfc8785.dumps(cast("Json", value))
    else:
        assert type(problem) is not JsonRefused
        assert problem.at is not None


@given(json_values())
def test_what_is_written_reads_back_to_the_same_bytes(value: Json) -> None:
    written = canonical(value)
    parsed = parse(written)
    assert parsed.canonical == written == canonical(parsed.value)
    explain(written)


@given(json_texts() | mutate_texts(json_texts()))
def test_the_canonical_form_of_a_text_is_that_of_its_value(text: bytes) -> None:
    assume(refusal(parse, text) is None)
    parsed = parse(text)
    assert parsed.canonical == canonical(parsed.value) == rfc8785.dumps(parsed.value)
    assert parsed.value == json.loads(text)
    assert parse(parsed.canonical) == parsed


@given(
    json_texts() | mutate_texts(json_texts()) | mutate_texts(json_values().map(SORTED.encode)) | st.binary(max_size=12)
)
def test_the_fast_reader_refuses_exactly_what_the_explainer_refuses(text: bytes) -> None:
    refused, explained = refusal(parse, text), refusal(explain, text)
    assert type(refused) is type(explained)
    if refused is not None and explained is not None:
        assert type(refused) is not JsonRefused
        assert (refused.at, refused.details) == (explained.at, explained.details)


@given(json_values().map(canonical), KEYS, json_values().map(canonical))
def test_a_repeated_key_is_always_refused_and_a_fresh_one_never(data: bytes, key: str, two: bytes) -> None:
    first, other = canonical(key), canonical(key + "'")
    assert refusal(parse, b"[{%b:%b,%b:%b}]" % (first, data, other, two)) is None
    assert type(refusal(parse, b"[{%b:%b,%b:%b}]" % (first, data, first, two))) is DuplicateKey


@given(st.integers(MAX_DEPTH - 3, MAX_DEPTH + 3), st.sampled_from([b"[%b]", b'{"a":%b}', b'[[],{},"[",%b,[0]]']))
def test_a_text_is_read_up_to_the_greatest_depth_and_no_further(depth: int, wrap: bytes) -> None:
    text = b"[]"
    for _ in range(depth - 1):
        text = wrap % text
    assert type(refusal(parse, text)) is (type(None) if depth <= MAX_DEPTH else TooDeep)
