"""One definition of invisible characters: each of them is reported or escaped wherever it could hide a text."""

import io
import re

from contextplane.cli.output import CommandOutput
from contextplane.compiler.evidence import is_blank
from contextplane.compiler.quotation import quote
from contextplane.handoff.markdown import block, code_block, one_line
from contextplane.model.invisible_characters import CONTROLS, EMOJI_STYLE, FORMATTING, JOINERS, LINE_SEPARATORS
from contextplane.policy.detect.invisible_text import invisible_characters, normalize

EVERY_CHARACTER = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))


def members(character_class: str) -> str:
    return "".join(re.findall(f"[{character_class}]", EVERY_CHARACTER))


HIDDEN = members(CONTROLS + FORMATTING + LINE_SEPARATORS)
FILLERS = "\u034f\u115f\u1160\u17b4\u180b\u3164\ufe00\uffa0\U000e0100\U000e01ef"
"""Invisible, though Python takes most of them for printable."""


def test_the_linter_reports_all_of_them() -> None:
    text = "".join(f"a{character}" for character in HIDDEN + JOINERS + EMOJI_STYLE)
    assert len(invisible_characters(text)) == len(HIDDEN) + 3
    assert normalize("pay\u2028ment") == "pay\nment"
    assert normalize("pay\u3164ment") == "payment"


def test_a_prompt_a_page_and_a_terminal_show_them_escaped() -> None:
    assert set(FILLERS) < set(HIDDEN)
    terminal = io.StringIO()
    output = CommandOutput(json=True, out=terminal)
    output.answer({"text": HIDDEN + JOINERS})
    shown = [quote(HIDDEN), one_line(HIDDEN), block(HIDDEN), code_block((HIDDEN,), 1, ""), terminal.getvalue()]
    for text in shown:
        assert not set(text) & set(HIDDEN)
    assert not set(shown[-1]) & set(JOINERS)


def test_a_prompt_and_a_page_keep_what_scripts_and_emoji_need() -> None:
    text = f"\u0928\u094d{JOINERS[1]}\u092f \u2764{EMOJI_STYLE}"
    assert quote(text) == f'"{text}"'
    assert one_line(text) == text


def test_evidence_of_nothing_else_is_blank() -> None:
    assert is_blank(HIDDEN + JOINERS + EMOJI_STYLE)
