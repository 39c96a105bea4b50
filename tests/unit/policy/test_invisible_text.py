"""Characters that nobody sees, words of two scripts, and texts as a reader takes them."""

from hypothesis import given
from hypothesis import strategies as st

from contextplane.policy.detect.invisible_text import invisible_characters, mixed_words, normalize
from tests.support.cases import cases


@cases(
    "char",
    [
        *("\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069", "\u2060", "\ufeff"),
        *("\u00ad", "\u061c", "\u3164", "\ufe0f", "\U000e0041", "\U000e01ef", "\x00", "\x1b", "\x7f", "\x85"),
        *("\U0001bca0", "\U0001bca3", "\U0001d173", "\U0001d17a"),
    ],
)
def test_a_character_that_nobody_sees_is_told_by_its_number(char: str) -> None:
    assert invisible_characters(f"pay{char}ment{char}") == (f"U+{ord(char):04X}",)
    assert normalize(f"pay{char}ment{char}") == "payment"


@cases(
    "text",
    [
        *(
            "",
            "first\nsecond\tthird\r\n",
            "caf\u00e9",
            "na\u00efve \u2013 \u201cquoted\u201d\u2026",
            "\u65e5\u672c\u8a9e",
        ),
        *("\u0928\u092e\u0938\u094d\u200d\u0924\u0947", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        *("\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f", "1\ufe0f\u20e3", "\u2699\ufe0f\u200d\U0001f527"),
    ],
)
def test_what_people_write_is_seen(text: str) -> None:
    assert invisible_characters(text) == ()


@cases(
    "word", ["p\u0430y", "\u0440ay", "\u03bfrder", "p\uff41y", "\U0001d429ay", "R_REFUND_\u0410PPROVED", "\u0581rder"]
)
def test_a_word_of_two_scripts_that_look_alike_is_told_in_ascii(word: str) -> None:
    assert mixed_words(f"never {word} twice, {word}") == (ascii(word)[1:-1],)


@cases(
    "text",
    [
        *(
            "pay",
            "\u043f\u0440\u0438\u0432\u0435\u0442 and hello",
            "\u03b1\u03b2\u03b3",
            "5\u00b5s",
            "\u0394t",
            "2\u03c0r",
        ),
        *("Stra\u00dfe", "T\u30b7\u30e3\u30c4", "\u65e5\u672c\u8a9eabc", "r\u00e9sum\u00e9_v2", "\u0930\u0941500"),
    ],
)
def test_a_word_of_one_script_is_left_alone(text: str) -> None:
    assert mixed_words(text) == ()


@given(st.text())
def test_a_plain_text_is_plain_and_nothing_in_it_is_unseen(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert invisible_characters(once) == ()


@cases(
    ("text", "read"),
    [
        ("4111\u00a01111\u20091111\u202f1111", "4111 1111 1111 1111"),
        ("\uff14\u0967\u0661", "411"),
        ("4111\u20131111\u20111111", "4111-1111-1111"),
        ("caf\u00e9 \u2460", "caf\u00e9 1"),
    ],
)
def test_blanks_dashes_and_digits_are_the_usual_ones(text: str, read: str) -> None:
    assert normalize(text) == read
