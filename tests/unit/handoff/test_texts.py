"""Foreign text on a page stays where it is put."""

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.handoff.markdown import block, code_block, fenced_block, one_line, shorten
from contextplane.model.invisible_characters import FORMATTING
from tests.support.cases import cases

PIECES = st.sampled_from(
    [
        *("```", "~~~", "````", "`", "- ", "  ", "    ", "> ", "# ", "text", " ", "\t", "<!--", "<div>"),
        *("\n", "\r\n", "\r", "\u2028", "\x0c", "\x85", "\x1b[2J", "\x00", "\u202e"),
        *("[LEGEND]", "[CONTENT]", "[content] ", "- status: finalized"),
    ]
)
UNSEEN = "\u00ad\u034f\u061c\u200b\u200e\u200f\u2060\u3164\ufe00\ufeff\U000e0041\U000e007f\U000e0100"
hostile = st.lists(PIECES | st.sampled_from(UNSEEN) | st.characters(), max_size=12).map("".join)


def left_open(text: str) -> str:
    """The fence that is open at the end of a markdown text, by the rules of CommonMark for fences outside of lists."""
    opened = ""
    for line in text.split("\n"):
        match = re.fullmatch(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if match and not opened and (match[1][0] == "~" or "`" not in match[2]):
            opened = match[1]
        elif match and opened and match[1].startswith(opened) and not match[2].strip():
            opened = ""
    return opened


@given(hostile)
def test_one_line_is_one_line_for_every_reader(text: str) -> None:
    line = one_line(text)
    assert line.splitlines() in ([], [line])
    assert line == line.strip()
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", line)
    assert not set(line) & set(UNSEEN)


@cases("unseen", UNSEEN)
def test_what_nobody_sees_is_shown_escaped_everywhere(unseen: str) -> None:
    text, escaped = f"a{unseen}b", "a" + ascii(unseen)[1:-1] + "b"
    assert one_line(text) == block(text) == shorten(text) == escaped
    assert escaped in fenced_block(text, "mermaid")
    assert escaped in code_block((text,), 1, "python")


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"])))
def test_one_line_leaves_plain_text_as_it_is(text: str) -> None:
    assume(not re.search(f"[{FORMATTING}]", text))
    assert one_line(text) == text


@given(hostile)
def test_a_block_closes_its_fences_and_has_no_marker_of_ours(text: str) -> None:
    shown = block(text)
    assert left_open(shown) == ""
    assert shown.split("\n") == shown.splitlines() or shown in ("", "\n")
    assert not [line for line in shown.splitlines() if line.strip().upper() in ("[LEGEND]", "[CONTENT]")]


@cases(
    ("text", "shown"),
    [
        ("plain *markdown*\n\n- a\n- b", "plain *markdown*\n\n- a\n- b"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("```py\ncode\n```\nmore", "```py\ncode\n```\nmore"),
        ("```py\n<b>code</b>", "```py\n<b>code</b>\n```"),
        ("~~~~\n```\n~~~", "~~~~\n```\n~~~\n~~~~"),
        ("- item\n  ```\n  code\nend", "- item\n  ```\n  code\n  ```\nend"),
        ("  [CONTENT] ", "  \\[CONTENT] "),
        ("[legend]\nx [LEGEND] y", "\\[legend]\nx [LEGEND] y"),
        ("<!-- hidden\nfor ever", "\\<!-- hidden\nfor ever"),
        ("a < b and <i>c</i>", "a < b and <i>c</i>"),
        ("\n\n  text\n\n", "  text"),
    ],
)
def test_blocks(text: str, shown: str) -> None:
    assert block(text) == shown


@given(hostile, st.sampled_from(["mermaid", ""]))
def test_nothing_inside_closes_a_fence(text: str, language: str) -> None:
    first, *inside, last = fenced_block(text, language).split("\n")
    assert first == last + language
    assert set(last) == {"`"}
    assert not any(last in line for line in inside)
    assert not [line for line in inside if line.strip().upper() in ("[LEGEND]", "[CONTENT]")]


@given(st.lists(hostile.map(lambda text: text.replace("\n", " ")), max_size=4).map(tuple), st.integers(1, 20_000))
def test_every_line_of_code_has_its_number_and_is_one_line(lines: tuple[str, ...], first: int) -> None:
    shown = code_block(lines, first, "python").split("\n")
    assert (shown[0], shown[-1]) == ("```python", "```")
    if lines:
        assert [line.partition(": ")[0] for line in shown[1:-1]] == [
            f"{first + number:4}" for number in range(len(lines))
        ]
        assert shown == "\n".join(shown).splitlines()


def test_code_is_shown_as_it_is() -> None:
    lines = ("def f():", "\treturn 'é'  # ```", "")
    assert code_block(lines, 9, "python") == "```python\n   9: def f():\n  10: \treturn 'é'  # ```\n  11: \n```"


def test_a_short_line_collapses_white_space_and_has_an_end() -> None:
    assert shorten(" a \n b\tc ") == "a b c"
    assert shorten("x" * 140) == "x" * 140
    assert shorten("x" * 141) == "x" * 139 + "\u2026"
