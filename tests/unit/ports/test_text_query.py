"""What people type to search, as every index reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.catalog import NothingToFind, Term, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("refund  order\n881", [Term(text="refund"), Term(text="order"), Term(text="881")]),
        ('"refund the order" now', [Term(text="refund the order"), Term(text="now")]),
        ("refun*", [Term(text="refun", prefix=True)]),
        ("refun***", [Term(text="refun", prefix=True)]),
        ('"the refun"* x', [Term(text="the refun", prefix=True), Term(text="x")]),
        ("re*fund", [Term(text="re*fund")]),
        ("*fund", [Term(text="*fund")]),
        ('say "unclosed phrase', [Term(text="say"), Term(text='"unclosed'), Term(text="phrase")]),
        ('a"b c"d', [Term(text='a"b'), Term(text='c"d')]),
        ("a ( - AND \u00a7 b", [Term(text="a"), Term(text="AND"), Term(text="b")]),
        ("order.json _", [Term(text="order.json"), Term(text="_")]),
        ("a\0b", [Term(text="a"), Term(text="b")]),
        ("\u8fd4\u91d1", [Term(text="\u8fd4\u91d1")]),
    ],
)
def test_words_phrases_and_beginnings_are_told_apart(text: str, expected: list[Term]) -> None:
    assert list(terms(text)) == expected


@pytest.mark.parametrize("text", ["", " \n", "...", '"', '""', '"*"*', "*", "( ) - \u00a7", "\0", "\u0301"])
def test_to_ask_for_nothing_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(NothingToFind) as refused:
        terms(text)
    assert "letters" in (refused.value.hint or "")


@given(st.text())
def test_every_term_has_a_word_and_no_quote_that_was_closed(text: str) -> None:
    try:
        found = terms(text)
    except NothingToFind:
        return
    assert all(any(one.isalnum() or one == "_" for one in term.text) for term in found)
    assert all("\0" not in term.text for term in found)
