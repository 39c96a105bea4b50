"""Code in colour: nothing but colour is added, and no colour runs over the end of its line."""

import re

from hypothesis import given
from hypothesis import strategies as st

from contextplane.cli.handoff.highlight import color_code
from tests.support.cases import cases

LANGUAGES = [
    *("python", "rust", "go", "javascript", "typescript", "java", "kotlin", "c", "cpp", "csharp", "ruby", "bash"),
    *("toml", "yaml", "json", "sql", "markdown", "html", "css", "protobuf", "mermaid", ""),
]
CODE = st.text(alphabet="ab1 \n\t'\"`#/*-<>!\\_.", max_size=60)


def paint(color: str, text: str) -> str:
    return f"<{color}|{text}>"


def stripped(color: str, text: str) -> str:
    assert color
    assert "\n" not in text
    return text


@given(CODE, st.sampled_from(LANGUAGES))
def test_no_character_is_added_lost_or_changed_and_each_line_is_painted_by_itself(code: str, language: str) -> None:
    assert color_code(code, language, stripped) == code


@cases(
    ("language", "code", "shown"),
    [
        ("python", 'def f(): # no "x"', '<magenta|def> f(): <dim|# no "x">'),
        ("python", '"""a\nb""" x', '<green|"""a>\n<green|b"""> x'),
        ("python", "a = '#1'", "a = <green|'#1'>"),
        (
            "rust",
            "fn f<'a>(x: &'a str) -> u8 { 10 } // it's",
            "<magenta|fn> f<'a>(x: &'a str) -> u8 { <cyan|10> } <dim|// it's>",
        ),
        ("go", "`a\nb`", "<green|`a>\n<green|b`>"),
        ("c", "/* a\n b */ int x;", "<dim|/* a>\n<dim| b */> <magenta|int> x;"),
        ("sql", "SELECT 1 -- one", "<magenta|SELECT> <cyan|1> <dim|-- one>"),
        ("html", "<!-- a --> <p id='x'>", "<dim|<!-- a -->> <p id=<green|'x'>>"),
        ("json", '{"a": true}', '{<green|"a">: <magenta|true>}'),
        ("bash", "echo $#; x=a#b # c", "echo $#; x=a#b <dim|# c>"),
        ("markdown", "# a `b`", "# a `b`"),
        ("", "def f", "def f"),
    ],
)
def test_words_quotes_and_comments_of_a_language_have_their_colour(language: str, code: str, shown: str) -> None:
    assert color_code(code, language, paint) == shown


def test_code_made_to_be_slow_is_not() -> None:
    for piece in ('"', "'", "`", "/*", '"""', "<!--", "\\", "a1", "--"):
        for language in LANGUAGES:
            code = piece * 4_000
            assert re.sub(r"<\w+\||>", "", color_code(code, language, lambda _, text: text)) == re.sub(
                r"<\w+\||>", "", code
            )
