"""Strict reading: what comes out, what is refused, and where each refusal points."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.explain import explain
from contextplane.model.json.parse import Parsed, parse
from tests.support.cases import cases


def refusal(text: bytes) -> JsonRefused:
    with pytest.raises(JsonRefused) as caught:
        parse(text)
    return caught.value


def test_a_document_is_read_with_its_canonical_form() -> None:
    assert parse(b' {"b": [1, true], "a": null}\n') == Parsed(
        value={"b": [1, True], "a": None}, canonical=b'{"a":null,"b":[1,true]}'
    )


def test_a_float_without_a_fraction_becomes_an_integer() -> None:
    value = parse(b"[1.0, -0.0, 1e3, -0, 9007199254740991.0, 0.5]").value
    assert repr(value) == "[1, 0, 1000, 0, 9007199254740991, 0.5]"


def test_a_float_beyond_the_integers_stays_a_float() -> None:
    parsed = parse(b"[1e21, 1e-7, 1e-6]")
    assert (repr(parsed.value), parsed.canonical) == ("[1e+21, 1e-07, 1e-06]", b"[1e+21,1e-7,0.000001]")


def test_a_number_too_small_for_a_double_is_zero() -> None:
    assert parse(b"-1e-400") == Parsed(value=0, canonical=b"0")


def test_a_change_to_the_value_does_not_reach_the_canonical_form() -> None:
    parsed = parse(b'{"a":1e-6}')
    assert isinstance(parsed.value, dict)
    parsed.value["a"] = 2
    assert parsed.canonical == b'{"a":0.000001}'


@cases(
    ("text", "code", "at", "byte"),
    [
        (b"", "json_empty", "", 0),
        (b" \n\t", "json_empty", "", 3),
        (b"\xef\xbb\xbf{}", "json_byte_order_mark", "", 0),
        (b"{} {}", "json_trailing_data", "", 3),
        (b"nullx", "json_trailing_data", "", 4),
        (b'{"a":1,"b":2,"a":3}', "json_duplicate_key", "/a", 13),
        (rb'[{"a":{"x":1,"\u0078":2}}]', "json_duplicate_key", "/0/a/x", 13),
        (b'{"a":NaN}', "json_not_finite", "/a", 5),
        (b"[1,-Infinity]", "json_not_finite", "/1", 3),
        (b"[9007199254740992]", "json_integer_unsafe", "/0", 1),
        (b'{"a":-9007199254740992}', "json_integer_unsafe", "/a", 5),
        (b"[0," + b"1" * 5000 + b"]", "json_integer_unsafe", "/1", 3),
        (b"9007199254740992.0", "json_float_unsafe", "", 0),
        (b"[1e20]", "json_float_unsafe", "/0", 1),
        (b"[0,1e400]", "json_number_out_of_range", "/1", 3),
        (b"[" + b"1" * 400 + b".5]", "json_number_out_of_range", "/0", 1),
        (rb'["a\ud800"]', "json_lone_surrogate", "/0", 3),
        (rb'"\udc00"', "json_lone_surrogate", "", 1),
        (rb'"\ud800\u0061"', "json_lone_surrogate", "", 1),
        (rb'"\ud800\ud800"', "json_lone_surrogate", "", 1),
        (rb'"\ud800\n"', "json_lone_surrogate", "", 1),
        (rb'{"a":{"\ud800":1}}', "json_lone_surrogate", "/a", 7),
        (b'["a","b\xff"]', "json_utf8_invalid", "/1", 7),
        (b'"\xed\xa0\x80"', "json_utf8_invalid", "", 1),
        (b'{"\xc0\x80":1}', "json_utf8_invalid", "", 2),
        (b"[\xff]", "json_utf8_invalid", "/0", 1),
        (b'["a\nb"]', "json_control_character", "/0", 3),
        (b'{"a\x00":1}', "json_control_character", "", 3),
        (b"[" * 257 + b"]" * 257, "json_too_deep", "/0" * 256, 256),
        (b'{"a":' * 257 + b"1" + b"}" * 257, "json_too_deep", "/a" * 256, 1280),
        (b"[" * 100_000, "json_too_deep", "/0" * 256, 256),
        (b"[1,2", "json_malformed", "", 4),
        (b"[1,]", "json_malformed", "/1", 3),
        (b'{"a":1,}', "json_malformed", "", 7),
        (b"[1 2]", "json_malformed", "", 3),
        (b"[1}", "json_malformed", "", 2),
        (b"{'a':1}", "json_malformed", "", 1),
        (b'{"a" 1}', "json_malformed", "", 5),
        (b'{"a":}', "json_malformed", "/a", 5),
        (b'{"a":[tru]}', "json_malformed", "/a/0", 6),
        (b"[01]", "json_malformed", "/0", 1),
        (b"[1.]", "json_malformed", "/0", 1),
        (b"[+1]", "json_malformed", "/0", 1),
        (b"-", "json_malformed", "", 0),
        (b'["a', "json_malformed", "/0", 1),
        (rb'["a\x"]', "json_malformed", "/0", 3),
        (rb'["\u12g4"]', "json_malformed", "/0", 2),
        ("[é]".encode(), "json_malformed", "/0", 1),
        (b"\x00", "json_malformed", "", 0),
    ],
    ids=lambda part: repr(part)[:30],
)
def test_a_refusal_names_its_kind_its_place_and_its_byte(text: bytes, code: str, at: str, byte: int) -> None:
    problem = refusal(text)
    assert (problem.code, problem.at, problem.details["byte"]) == (code, at, byte)
    assert problem.family == "refused"
    assert problem.message


def test_lines_and_columns_count_from_one_and_columns_count_characters() -> None:
    problem = refusal('{\n  "é": 1,\n  "é€😀": {}, "é": 2\n}'.encode())
    assert problem.details == {"line": 3, "column": 14, "byte": 32}
    assert str(problem) == "/é: line 3, column 14: the key 'é' stands here again (keep one of them)"


def test_the_first_problem_in_the_text_is_the_one_reported() -> None:
    assert refusal(b'[9007199254740992, {"a":1,"a":2}, NaN').code == "json_integer_unsafe"
    assert refusal(b'[{"a":1,"a":2}, 9007199254740992]').code == "json_duplicate_key"


def test_a_depth_of_256_is_read() -> None:
    assert parse(b"[" * 256 + b"]" * 256).canonical == b"[" * 256 + b"]" * 256


@cases("depth", [1, 2, 254, 255])
def test_many_brackets_side_by_side_or_in_strings_are_not_deep(depth: int) -> None:
    text = b"[" * depth + b'"[[{{",' * 300 + b"[]" + b"]" * (depth - 1) + b",{}" * 300 + b"]"
    assert parse(text).canonical == text


def test_a_deep_place_behind_a_broad_start_is_found() -> None:
    broad = b"[" + b"[]," * 1000
    assert parse(broad + b"[" * 255 + b"]" * 256).canonical
    assert refusal(broad + b"[" * 256 + b"]" * 257).code == "json_too_deep"


def test_digits_in_strings_and_fractions_are_not_integers() -> None:
    text = b'["sha256:12345678901234567890",0.12345678901234568]'
    assert parse(text).canonical == text


def test_equal_keys_in_different_objects_are_no_duplicates() -> None:
    text = rb'{"a":{"a":[{"a":"\"a\":"},{"a":"\\"}]},"b":"a\\\""}'
    assert parse(text).canonical == text


def test_an_escape_may_be_written_in_more_than_one_way() -> None:
    assert parse(rb'["\u005c","\u0022","\\\u0022","\/\u0041"]').canonical == rb'["\\","\"","\\\"","/A"]'
    assert refusal(rb'{"\\":1,"a":"\\","\u005c":2}').code == "json_duplicate_key"


def test_a_refusal_that_cannot_be_explained_repeats_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the stack nearly used up, msgspec gives in where the explainer, which does not recurse, finds nothing wrong.
    def exhausted(text: str) -> float:
        raise RecursionError(f"maximum recursion depth exceeded at {text}")

    monkeypatch.setattr("contextplane.model.json.parse._float_hook", lambda _: exhausted)
    problem = refusal(b"[1.5]")
    assert (problem.code, "recursion" in problem.message) == ("json_refused", True)


def test_a_megabyte_is_explained_in_a_moment() -> None:
    long_key = b'{"' + b"k" * 500_000 + b'":[' + b"1," * 200_000 + b"NaN]}"
    assert refusal(long_key).code == "json_not_finite"
    assert refusal(b'["' + rb"\n" * 300_000 + b"\xff").code == "json_utf8_invalid"


def test_what_is_accepted_needs_no_explanation() -> None:
    explain(b'{"a":[1,2.5,"x",true,null]}')


def test_the_fast_reader_keeps_no_state_between_texts() -> None:
    assert refusal(b"[1e20]").code == "json_float_unsafe"
    assert parse(b"[1.5]").value == msgspec.json.decode(b"[1.5]")


# --- all that is wrong with a text ------------------------------------------------------------------------------------

WRONG = {
    b'{"a":1,"a":2}': "json_duplicate_key",
    b"9007199254740992": "json_integer_unsafe",
    b"1e20": "json_float_unsafe",
    b"1e400": "json_number_out_of_range",
    b"NaN": "json_not_finite",
    rb'"\ud800"': "json_lone_surrogate",
    b'"\xff\xff"': "json_utf8_invalid",
    b'"a\x01b"': "json_control_character",
}


@given(st.lists(st.sampled_from([b"1", b'"fine"', b"[2.5, {}]", *WRONG]), min_size=1, max_size=12), st.booleans())
def test_everything_from_which_a_text_can_be_read_on_is_told_at_its_place(parts: list[bytes], cut_off: bool) -> None:  # noqa: FBT001
    text = b"[" + b",\n".join(parts) + (b"" if cut_off else b"]")
    wrong = [(n, WRONG[part]) for n, part in enumerate(parts) if part in WRONG]
    if not wrong and not cut_off:
        parse(text)
        return
    problem = refusal(text)
    reported = [problem, *problem.others]
    assert [entry.code for entry in reported] == [code for _, code in wrong] + ["json_malformed"] * cut_off
    for (number, _), entry in zip(wrong, reported, strict=False):
        assert (str(entry.at).split("/")[1], entry.details["line"]) == (str(number), number + 1)
    if len(reported) > 1:
        assert problem.hint == "fix the problems that are named" + "; --json lists them all" * (len(reported) > 10)
        assert problem.message.count("; ") == min(len(reported) - 1, 9) + (len(reported) > 10)
        listed = problem.details["problems"]
        assert isinstance(listed, list)
        assert [entry["byte"] for entry in listed] == [entry.details["byte"] for entry in reported]
    else:
        assert "problems" not in problem.details


def test_so_much_is_told_and_no_more() -> None:
    many = refusal(b"[" + b"NaN," * 1000 + b"1]")
    assert len(many.others) == 49
    assert many.message.endswith("; and 40 more")
    assert str(many.hint).endswith("; --json lists them all")
    far = refusal(b'[NaN, "' + b"x" * (5 << 20) + b'", NaN, 1]')
    assert far.others == ()


def test_a_key_that_cannot_be_read_is_not_taken_for_another_one() -> None:
    problem = refusal(b'{"\xff": 1, "\xfe": 2, "\xef\xbf\xbd": 3}')
    assert [other.code for other in (problem, *problem.others)] == ["json_utf8_invalid"] * 2


def test_of_a_place_that_is_very_deep_people_are_shown_both_ends() -> None:
    problem = refusal(b'{"steps":' + b"[" * 300).under("runs/log.json#")
    assert problem.at == "runs/log.json#/steps" + "/0" * 255
    assert len(str(problem.place)) < 160
    assert str(problem.place).startswith("runs/log.json#/steps/0/0/0")
    assert "[...]" in str(problem)
    assert "/0/0/0: line 1, column 265: " in str(problem)
