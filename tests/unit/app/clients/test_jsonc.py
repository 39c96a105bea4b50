"""JSON with comments is edited as text: one member comes or goes, and nothing else changes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.app.clients.jsonc import JsonTextInvalid, add_member, parse_jsonc, remove_member

PATH = ("mcpServers", "context-pack")
ENTRY = {"command": "ctx", "args": ["mcp"], "env": {"A": "1"}}
TEXTS = (
    '{"a":1}',
    '{\n  "a": 1\n}\n',
    '{\n  "a": 1 // why\n}\n',
    '{\n  "a": 1, // why\n  /* and */\n}\n',
    '// head\n{\n\t"mcpServers": {\n\t\t"x": {}\n\t} // z\n}\n// tail\n',
    '{\r\n    "mcpServers": {\r\n        "x": {"a": [1, 2,],}, // last\r\n    },\r\n    "z": 3\r\n}',
    '{"mcpServers": {"x": {"command": "y"}}, "url": "http://a//b", "big": 123456789012345678901234567890}',
    "\ufeff{ // only a comment\n}",
    '{"mcpServers": { /* none yet */ }, "q": "\\"//"}',
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_member_is_added_and_removing_it_restores_every_byte(text: str) -> None:
    added = add_member(text, PATH, ENTRY)
    before, after = parse_jsonc(text).plain(), parse_jsonc(added)
    assert after.decode()["mcpServers"]["context-pack"] == ENTRY
    expected = before | {
        "mcpServers": before.get("mcpServers", {}) | {"context-pack": after.plain()["mcpServers"]["context-pack"]}
    }
    assert after.plain() == expected
    assert ("\r\n" in added) == ("\r\n" in text)
    assert "\n" not in added.replace("\r\n", "") or "\r\n" not in text
    removed = remove_member(added, PATH)
    assert removed is not None
    assert removed.replace(" ", "").replace("\n", "") == text.replace(" ", "").replace("\n", "")
    if "none yet" not in text:
        assert removed == text


@pytest.mark.parametrize("text", ["{}", '{"mcpServers": {}}', "{\n}\n", "\ufeff{}"])
def test_a_document_with_nothing_else_is_empty_afterwards(text: str) -> None:
    assert remove_member(add_member(text, PATH, ENTRY), PATH) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=6), JSON, min_size=1, max_size=4), st.sampled_from((-1, 0, 2, 4)))
def test_any_document_gets_the_member_and_loses_only_it(document: dict[str, object], indent: int) -> None:
    text = msgspec.json.format(msgspec.json.encode(document), indent=indent).decode()
    added = add_member(text, PATH, ENTRY)
    assert msgspec.json.decode(added) == document | {"mcpServers": {"context-pack": ENTRY}}
    assert remove_member(added, PATH) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "[1",
            '{"a"}',
            '{"a": }',
            '{"a": 1 "b": 2}',
            "{} {}",
            '{"a": tru}',
            '{"a": 01}',
            "{'a': 1}",
            "{a: 1}",
        ),
        *('{"a": "\\x"}', '{"a": "\n"}', '{"a": 1, "a": 2}', "/* open", '{"a": "\\ud800"}', "[" * 200, "{,}", "NaN"),
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(JsonTextInvalid) as refused:
        parse_jsonc(text)
    assert "line 1" in refused.value.message or "line 2" in refused.value.message


@pytest.mark.parametrize("text", ['{"mcpServers": []}', "[]", '"text"', '{"mcpServers": null}'])
def test_a_member_is_not_added_to_something_else_than_an_object(text: str) -> None:
    with pytest.raises(JsonTextInvalid, match="an object is expected"):
        add_member(text, PATH, ENTRY)
