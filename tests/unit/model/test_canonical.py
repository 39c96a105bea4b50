"""The canonical form of values: the published vectors, what a plain sorted dump gets wrong, what is refused where."""

import collections
import datetime as dt
import decimal
import enum
import json
import struct
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import rfc8785

from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.json.pointer import pointer
from tests.support.cases import cases

CASES = Path(__file__).parents[2] / "cases" / "canonical"
MAX_INTEGER = 2**53 - 1


def load(name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((CASES / name).read_text(encoding="utf-8")))


def names(pattern: str) -> list[str]:
    return sorted(path.name for path in CASES.glob(pattern))


def differing(*, refused: bool) -> list[Any]:
    return [
        pytest.param(case, id=f"{name.removesuffix('.json')}:{case['input']}")
        for name in names("sorted-dump-*.json")
        for case in load(name)["cases"]
        if ("text_refused" in case) == refused
    ]


def sorted_dump(value: object) -> str:
    """What many take for canonical."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def refusal(value: object) -> JsonRefused:
    with pytest.raises(JsonRefused) as caught:
        canonical(value)
    return caught.value


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth - 1):
        value = [value]
    return value


VECTORS = [name for name in names("rfc8785-*.json") if name != "rfc8785-numbers.json"]


def test_all_six_published_documents_and_all_six_differences_are_here() -> None:
    assert len(VECTORS) == 6
    assert len(names("sorted-dump-*.json")) == 6


@cases("name", VECTORS)
def test_a_published_document_has_its_published_form(name: str) -> None:
    case = load(name)
    want = case["canonical"].encode()
    assert canonical(json.loads(case["input"])) == want
    assert parse(case["input"].encode()).canonical == want


@cases("row", load("rfc8785-numbers.json")["rows"], ids=lambda row: str(row["ieee754"]))
def test_a_published_number_has_its_published_form_or_is_refused(row: dict[str, str]) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(row["ieee754"]))
    if "refused" in row:
        assert refusal(number).code == row["refused"]
    else:
        assert canonical(number) == row["canonical"].encode()
        assert canonical([number, {"a": number}]) == rfc8785.dumps([number, {"a": number}])


@cases("case", differing(refused=False))
def test_where_a_sorted_dump_differs_from_the_rfc_we_follow_the_rfc(case: dict[str, str]) -> None:
    value = json.loads(case["input"])
    assert canonical(value) == parse(case["input"].encode()).canonical == case["canonical"].encode()
    assert sorted_dump(value) != case["canonical"]


@cases("case", differing(refused=True))
def test_what_a_sorted_dump_takes_in_silence_is_refused(case: dict[str, str]) -> None:
    value = json.loads(case["input"])
    assert sorted_dump(value)
    assert refusal(value).code == case["value_refused"]
    with pytest.raises(JsonRefused) as caught:
        parse(case["input"].encode())
    assert caught.value.code == case["text_refused"]


def test_a_tuple_is_an_array() -> None:
    assert canonical((1, [2, (3,)])) == b"[1,[2,[3]]]"


def test_the_largest_integers_stand_and_the_next_are_refused() -> None:
    assert canonical([MAX_INTEGER, -MAX_INTEGER]) == b"[9007199254740991,-9007199254740991]"
    assert refusal([0, MAX_INTEGER + 1]).at == "/1"
    assert refusal([0, 1, -MAX_INTEGER - 1]).at == "/2"


def test_an_integer_too_long_to_print_is_refused_like_any_other() -> None:
    assert refusal({"a": 10**5000}).code == "json_integer_unsafe"


def test_a_depth_of_256_stands_and_257_is_refused_at_the_innermost() -> None:
    assert canonical(nested(256)) == b"[" * 256 + b"]" * 256
    too_deep = refusal(nested(257))
    assert (too_deep.code, too_deep.at) == ("json_too_deep", "/0" * 256)


def test_a_depth_beyond_the_recursion_limit_is_refused_alike() -> None:
    assert refusal(nested(100_000)).code == "json_too_deep"


def test_a_value_that_contains_itself_is_refused_at_once() -> None:
    endless: list[object] = []
    endless += [endless, endless]
    assert refusal(endless).code == "json_too_deep"


def test_a_refusal_that_cannot_be_explained_repeats_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the stack nearly used up, the encoder gives in where nothing is wrong with the value.
    class Exhausted:
        def encode(self, value: object) -> bytes:
            raise RecursionError(f"maximum recursion depth exceeded at {value}")

    monkeypatch.setattr("contextplane.model.json.canonical.SORTED", Exhausted())
    problem = refusal([])
    assert (problem.code, "recursion" in problem.message) == ("json_refused", True)


class Colour(enum.StrEnum):
    RED = "red"


class Word(str):
    __slots__ = ()


@cases(
    "value",
    [
        b"bytes",
        bytearray(b"bytes"),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.timedelta(days=1),
        decimal.Decimal("1.5"),
        {1},
        frozenset({1}),
        1j,
        object,
        Colour.RED,
        Word("a"),
        collections.OrderedDict(a=1),
        msgspec.Raw(b"1"),
        msgspec.UNSET,
        {1: "a"},
        {None: 1},
        {Colour.RED: 1},
        {Word("a"): 1},
        {"b": 1, 2: 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_type_that_json_does_not_have_is_refused(value: object) -> None:
    assert refusal(value).code == "json_type"
    assert refusal({"a/b": [0, {"~": value}]}).at == "/a~1b/1/~0"


def test_a_lone_surrogate_is_refused_in_a_value_and_in_a_key() -> None:
    in_value, in_key = refusal({"a": ["x", "y\udfff"]}), refusal({"a": [{"\ud800": 1}]})
    assert (in_value.code, in_value.at) == ("json_lone_surrogate", "/a/1")
    assert (in_key.code, in_key.at) == ("json_lone_surrogate", "/a/0")


def test_the_first_problem_in_document_order_is_the_one_reported() -> None:
    assert refusal([1, {"a": [2, float("nan")], "b": b""}, {3}]).at == "/1/a/1"


def test_a_refusal_belongs_to_the_family_of_refusals_and_says_a_way_out() -> None:
    problem = refusal(float("inf"))
    assert (problem.family, problem.at, bool(problem.hint)) == ("refused", "", True)


class Inner(msgspec.Struct, frozen=True, rename="camel"):
    some_name: object
    left_out: int | msgspec.UnsetType = msgspec.UNSET


class Outer(msgspec.Struct, frozen=True, tag="outer"):
    z: Inner
    a: tuple[object, ...] = ()


class Row(msgspec.Struct, frozen=True, array_like=True):
    first: object
    second: object


class Huge(msgspec.Struct, frozen=True, tag=MAX_INTEGER + 1):
    pass


def test_a_struct_is_written_by_its_wire_names() -> None:
    value = [Outer(z=Inner(some_name=1.0), a=(Row(1, -0.0),))]
    assert canonical(value) == b'[{"a":[[1,0]],"type":"outer","z":{"someName":1}}]'
    assert canonical(value) == rfc8785.dumps(msgspec.to_builtins(value))


def test_what_json_does_not_have_is_refused_inside_a_struct_too() -> None:
    named, counted = refusal(Outer(z=Inner(some_name=frozenset({1})))), refusal([Row(1, b"")])
    assert (named.code, named.at) == ("json_type", "/z/someName")
    assert (counted.code, counted.at) == ("json_type", "/0/1")
    assert refusal(Huge()).code == "json_integer_unsafe"


def test_a_struct_counts_as_one_level() -> None:
    assert canonical(Row(nested(255), None)).count(b"[") == 256
    assert refusal(Row(nested(256), None)).code == "json_too_deep"


@cases("text", ["sha256:1e5a", "[1.0,", "1.0]", "v1.0, then -0.0}", '\\":1.0,', ":1e21", ",1e-6,"])
def test_text_that_looks_like_a_number_is_never_touched(text: str) -> None:
    for number in (1, 1.0, -0.0, 1e-6, 1e21, 0.25):
        value = {text: [text, number], "n": number}
        assert canonical(value) == rfc8785.dumps(value)


@cases("keys", [("\U0001f600", "\ue000"), ('\U0001f600\\"', "\uffff"), ("k", "\uffff"), ("\U0001f600", "\ud7ff")])
def test_keys_are_ordered_by_utf16_units(keys: tuple[str, str]) -> None:
    value = dict.fromkeys(keys, "\U0001f600\ufe0f")
    assert canonical(value) == rfc8785.dumps(value)


def test_a_value_is_not_changed_by_being_written() -> None:
    value = {"b": [1.0, -0.0], "a": {"z": 1e21}}
    canonical(value)
    assert repr(value) == "{'b': [1.0, -0.0], 'a': {'z': 1e+21}}"


def test_a_pointer_escapes_tilde_and_slash_and_the_root_is_empty() -> None:
    assert pointer(["a/b", 0, "~1", ""]) == "/a~1b/0/~01/"
    assert pointer([]) == ""
