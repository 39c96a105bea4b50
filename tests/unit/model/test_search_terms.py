"""What people type to search, as every index reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.catalog import NothingToFind, SearchTerm, search_terms
from tests.support.cases import cases


@cases(
    ("text", "expected"),
    [
        ("refund  order\n881", [SearchTerm(text="refund"), SearchTerm(text="order"), SearchTerm(text="881")]),
        ('"refund the order" now', [SearchTerm(text="refund the order"), SearchTerm(text="now")]),
        ("refun*", [SearchTerm(text="refun", prefix=True)]),
        ("refun***", [SearchTerm(text="refun", prefix=True)]),
        ('"the refun"* x', [SearchTerm(text="the refun", prefix=True), SearchTerm(text="x")]),
        ("re*fund", [SearchTerm(text="re*fund")]),
        ("*fund", [SearchTerm(text="*fund")]),
        ('say "unclosed phrase', [SearchTerm(text="say"), SearchTerm(text='"unclosed'), SearchTerm(text="phrase")]),
        ('a"b c"d', [SearchTerm(text='a"b'), SearchTerm(text='c"d')]),
        ("a ( - AND \u00a7 b", [SearchTerm(text="a"), SearchTerm(text="AND"), SearchTerm(text="b")]),
        ("order.json _", [SearchTerm(text="order.json"), SearchTerm(text="_")]),
        ("a\0b", [SearchTerm(text="a"), SearchTerm(text="b")]),
        ("\u8fd4\u91d1", [SearchTerm(text="\u8fd4\u91d1")]),
    ],
)
def test_words_phrases_and_beginnings_are_told_apart(text: str, expected: list[SearchTerm]) -> None:
    assert list(search_terms(text)) == expected


@cases("text", ["", " \n", "...", '"', '""', '"*"*', "*", "( ) - \u00a7", "\0", "\u0301"])
def test_to_ask_for_nothing_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(NothingToFind) as refused:
        search_terms(text)
    assert "letters" in (refused.value.hint or "")


@given(st.text())
def test_every_term_has_a_word_and_no_quote_that_was_closed(text: str) -> None:
    try:
        terms = search_terms(text)
    except NothingToFind:
        return
    assert all(any(character.isalnum() or character == "_" for character in term.text) for term in terms)
    assert all("\0" not in term.text for term in terms)
