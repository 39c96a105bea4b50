"""A log is read strictly, every problem is told at once with its place, and long texts stay where they are."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.model.execution.log import InvalidLog, read_log, read_partial_log
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.large import LongText, parse_long, resolve_mark
from tests.support.cases import cases

MINIMAL: dict[str, Any] = {
    "model": {"identifier": "m"},
    "system_prompt": "s",
    "environment": {"os": "linux", "runtime": "r"},
}


def log(**fields: object) -> bytes:
    return json.dumps({**MINIMAL, **fields}).encode()


def places(data: bytes) -> list[str]:
    with pytest.raises(InvalidLog) as refused:
        read_log(data)
    assert refused.value.at == refused.value.problems[0].at
    return [problem.at for problem in refused.value.problems]


def test_a_minimal_log_is_enough() -> None:
    read = read_log(log())
    assert (read.model, read.os, read.steps, str(read.created)) == ("m", "linux", (), "0001-01-01T00:00:00Z")


def test_everything_that_is_missing_is_told_together() -> None:
    step, output = {"type": "tool_call"}, {"content": "x"}
    assert places(json.dumps({"steps": [step], "outputs": [output]}).encode()) == [
        "/steps/0/tool",
        "/model/identifier",
        "/system_prompt",
        "/outputs/0/name",
        "/environment/os",
        "/environment/runtime",
    ]


@cases(
    ("fields", "at"),
    [
        ({"zzz": 1}, "/zzz"),
        ({"a/b~c": 1}, "/a~1b~0c"),
        ({"model": []}, "/model"),
        ({"model": {"identifier": "m", "extra": 1}}, "/model/extra"),
        ({"system_prompt": 7}, "/system_prompt"),
        ({"prompts": {}}, "/prompts"),
        ({"prompts": [7]}, "/prompts/0"),
        ({"prompts": [{"role": "user", "content": None, "name": "x"}]}, "/prompts/0/name"),
        ({"inputs": [{"name": "a", "content": "x", "path": "y"}]}, "/inputs/0"),
        ({"inputs": [{"name": 1}]}, "/inputs/0/name"),
        ({"steps": [{"type": "reasoning", "index": "1"}]}, "/steps/0/index"),
        ({"steps": [{"type": "reasoning", "index": 1.5}]}, "/steps/0/index"),
        ({"steps": [{"type": "reasoning", "index": True}]}, "/steps/0/index"),
        ({"steps": [{"type": "reasoning", "deterministic": 1}]}, "/steps/0/deterministic"),
        ({"steps": [{"type": "reasoning", "parameters": []}]}, "/steps/0/parameters"),
        ({"steps": [{"type": "reasoning", "timestamp": "yesterday"}]}, "/steps/0/timestamp"),
        ({"steps": [{"type": "reasoning", "output": {}}]}, "/steps/0/output"),
        ({"steps": [{"type": ""}]}, "/steps/0/type"),
        ({"environment": {"os": "l", "runtime": "r", "tool_versions": {"t": 1}}}, "/environment/tool_versions/t"),
        ({"created": "2026-05-04"}, "/created"),
    ],
)
def test_a_problem_is_told_with_its_place(fields: dict[str, object], at: str) -> None:
    assert at in places(log(**fields))


@cases("data", [b"[]", b"7", b"null", b'"log"'])
def test_what_is_no_object_is_no_log(data: bytes) -> None:
    assert places(data)[0] == "/"


@cases(
    ("data", "code"),
    [
        (b"", "json_empty"),
        (log() + b" {}", "json_trailing_data"),
        (log()[:-1], "json_malformed"),
        (b"\xef\xbb\xbf" + log(), "json_byte_order_mark"),
        (log()[:-1] + b',"model":{}}', "json_duplicate_key"),
        (log().replace(b'"m"', b'"\xff"'), "json_utf8_invalid"),
        (log(steps=[{"type": "reasoning", "index": 2**53}]), "json_integer_unsafe"),
        (
            log(model={"identifier": "m", "parameters": {"t": 0}}).replace(b'"t": 0', b'"t": 1e400'),
            "json_number_out_of_range",
        ),
        (log().replace(b'"s"', b"[" * 300 + b"]" * 300), "json_too_deep"),
    ],
)
def test_what_is_no_strict_json_is_refused_as_such(data: bytes, code: str) -> None:
    with pytest.raises(JsonRefused) as refused:
        read_log(data)
    assert refused.value.code == code


def test_a_step_without_an_index_gets_its_place_and_the_newest_step_dates_the_run() -> None:
    times = ["2026-05-04T09:31:42Z", "2026-05-04T12:31:42+03:00", "2026-05-04T09:31:43Z"]
    read = read_log(log(steps=[{"type": "reasoning", "timestamp": time} for time in times]))
    assert [step.index for step in read.steps] == [0, 1, 2]
    assert str(read.created) == "2026-05-04T09:31:43Z"
    assert str(read_log(log(created="2020-01-01T00:00:00Z")).created) == "2020-01-01T00:00:00Z"


# --- long texts -------------------------------------------------------------------------------------------------------

LONG = 'say "hi" to \\ the \u00e9 world\n' * 400


def test_a_long_content_is_read_when_it_is_asked_for() -> None:
    read = read_log(
        log(outputs=[{"name": "o", "content": LONG}], steps=[{"type": "reasoning", "parameters": {"p": LONG}}])
    )
    value = read.outputs[0].content.value
    assert isinstance(value, LongText)
    assert value.to_bytes() == LONG.encode()
    assert read.steps[0].parameters == {"p": LONG}


@given(st.lists(st.text(max_size=30) | st.sampled_from([LONG, "\ufdd0cut:0", "x" * 5000, "\\" * 5000]), max_size=5))
def test_cutting_long_texts_out_changes_nothing(texts: list[str]) -> None:
    value, pieces = parse_long(json.dumps(texts).encode())
    assert isinstance(value, list)
    read = [resolve_mark(item, pieces) for item in value]
    assert [
        long_text.to_bytes().decode() if isinstance(long_text, LongText) else long_text for long_text in read
    ] == texts


@pytest.mark.parametrize("space", ["", " ", "\n\t "])
def test_a_long_key_is_a_key_like_any_other(space: str) -> None:
    steps = [{"type": "reasoning", "parameters": {"k" * 5000: "v" * 5000, "o": 1}}]
    data = log(steps=steps).replace(b'": "v', f'"{space}: "v'.encode())
    assert read_log(data).steps[0].parameters == {"k" * 5000: "v" * 5000, "o": 1}
    twice = data.replace(b'"o": 1', b'"' + b"k" * 5000 + b'": 1')
    with pytest.raises(JsonRefused) as refused:
        read_log(twice)
    assert refused.value.code == "json_duplicate_key"


@cases("mark", [r"\ufdd0cut:0", r"\ufdd0\u0063ut:0", r"\uFDD0cut:7", r"\ufdd0cut:zz", "\ufdd0cut:0"])
def test_no_text_can_pass_for_another(mark: str) -> None:
    data = log(outputs=[{"name": "o", "content": LONG}], prompts=[{"role": "user", "content": "MARK"}])
    read = read_log(data.replace(b"MARK", mark.encode()))
    values = [read.prompts[0].content.value, read.outputs[0].content.value]
    texts = [value.to_bytes().decode() if isinstance(value, LongText) else value for value in values]
    assert texts == [json.loads(f'"{mark}"'), LONG]


def test_a_problem_behind_a_long_text_is_told_at_its_place_in_the_whole_text() -> None:
    data = log(outputs=[{"name": "o", "content": LONG}]) + b" trailing"
    with pytest.raises(JsonRefused) as refused:
        read_log(data)
    byte = refused.value.details["byte"]
    assert isinstance(byte, int)
    assert data[byte:].startswith(b"trailing")


def test_a_long_text_that_is_broken_is_refused_when_it_is_read() -> None:
    data = log(outputs=[{"name": "o", "content": "x" * 5000}]).replace(b"x" * 100, b"\xff" * 100, 1)
    value = read_log(data).outputs[0].content.value
    assert isinstance(value, LongText)
    with pytest.raises(JsonRefused):
        value.to_bytes()


@given(
    before=st.lists(st.text(max_size=3), max_size=3),
    wide=st.sampled_from(["", "x" * 5000, "\u00e9\u20ac\U0001f600" * 400_000]),
)
@settings(max_examples=20, deadline=None)
def test_wherever_a_text_is_malformed_its_line_column_and_byte_are_told(before: list[str], wide: str) -> None:
    lines = [json.dumps(value) + "," for value in before]
    last = json.dumps(wide, ensure_ascii=False) + ", "
    text = "[" + "".join(f"{line}\n" for line in lines) + last
    with pytest.raises(JsonRefused) as refused:
        parse_long((text + "oops]").encode())
    line = text.rpartition("\n")[2]
    places = {"line": len(lines) + 1, "column": len(line) + 1, "byte": len(text.encode())}
    assert refused.value.details == places
    assert f"line {places['line']}, column {places['column']}: " in str(refused.value)


def test_behind_long_texts_every_problem_is_told_at_its_place_in_the_whole_text() -> None:
    long = "x" * 5000
    text = log(outputs=[{"name": "o", "content": long}]).replace(b'"o"', b'"o", "name":\n "p"')
    data = text[:-1] + b',\n"created": 1e400, "zzz": NaN}'
    with pytest.raises(JsonRefused) as refused:
        read_log(data)
    reported = [refused.value, *refused.value.others]
    assert [refusal.at for refusal in reported] == ["/outputs/0/name", "/created", "/zzz"]
    assert [refusal.details["line"] for refusal in reported] == [1, 3, 3]
    bytes_told = [refusal.details["byte"] for refusal in reported]
    assert [data[byte : byte + 5] for byte in bytes_told if isinstance(byte, int)] == [b'"name', b"1e400", b"NaN}"]
    assert "/zzz: line 3, column 26: NaN" in str(refused.value)


def test_what_can_be_read_of_a_refused_log_is_read_as_it_would_be() -> None:
    read = read_partial_log(log(steps=[{"type": "reasoning", "index": 1.0}, {"type": 7}], zzz=1)[:-1] + b',"zzz":2}')
    assert read is not None
    so_far, problems = read
    assert [step.index for step in so_far.steps] == [1, 1]
    assert [problem.at for problem in problems] == ["/zzz", "/steps/1/type", "/steps/1/tool"]
    for data in (b"", b"null", log()[:-1], log().replace(b'"s"', b"NaN"), log() + b"{}"):
        assert read_partial_log(data) is None


PARTS = st.sampled_from(["x", "\u00e9", "\u20ac", "\U0001f600", "\n", '"', "\\", "/", "\\u00e9", "\x7f", "ab" * 40])


@given(st.lists(PARTS, min_size=1, max_size=40).map("".join), st.booleans(), st.integers(12, 40))
@settings(deadline=None)
def test_a_long_text_read_in_pieces_is_the_same_text(text: str, ascii_only: bool, piece: int) -> None:  # noqa: FBT001
    data = json.dumps(text, ensure_ascii=ascii_only).replace("/", "\\/").encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contextplane.model.json.large._PIECE", piece)
        chunks = list(LongText(source=data, start=0, end=len(data)).chunks())
    assert b"".join(chunks) == text.encode()
    assert max(map(len, chunks)) <= piece


@cases(
    ("broken", "code"),
    [
        (b"\xff", "json_utf8_invalid"),
        (b"\x80" * 50, "json_utf8_invalid"),
        (b"\xc3", "json_utf8_invalid"),
        (b"\n", "json_control_character"),
        (rb"\ud83d", "json_lone_surrogate"),
        (rb"\ud83d\u0061", "json_lone_surrogate"),
        (rb"\ude00", "json_lone_surrogate"),
        (rb"\x", "json_malformed"),
        (rb"\u12g4", "json_malformed"),
    ],
)
@cases("before", range(14))
def test_a_long_text_that_is_broken_is_refused_as_such_wherever_a_piece_ends(
    broken: bytes, code: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextplane.model.json.large._PIECE", 12)
    data = b'"' + b"x" * (before + 12) + broken + b'x"'
    with pytest.raises(JsonRefused) as refused:
        list(LongText(source=data, start=0, end=len(data)).chunks())
    assert refused.value.code == code
    with pytest.raises(JsonRefused) as whole:
        LongText(source=data, start=0, end=len(data)).to_bytes()
    assert str(whole.value) == str(refused.value)
