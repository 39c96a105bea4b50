"""The file that an author edits: what it means, where its parts stand, and what is refused."""

import json
import textwrap
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contextplane.app.packs.template import template_text
from contextplane.authoring.gates.table import judge_pack
from contextplane.authoring.source_file import MAX_BYTES, AuthorFile, AuthorFileTooLarge, read_json_file
from contextplane.authoring.yaml_reader import YamlRefused, read_yaml_file
from contextplane.errors import ContextPlaneError
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.pointer import pointer
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
NAMES = st.one_of(TEXTS, st.sampled_from(["a/b", "m~n", "true", "null", "1", "on", "é", "", "<<", "- x", "k: v", "#c"]))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(-1e15, 1e15),
    TEXTS,
    st.sampled_from(["yes", "on", "2026-05-09", "1.0", "0x1f", "~", "1e3", ".inf", "!tag", "&a", "*a", "|", "\ttab"]),
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@given(DOCUMENTS, st.sampled_from([None, 1, 3]))
def test_json_keeps_its_meaning_on_the_way_to_canonical_bytes_and_back(value: Any, indent: int | None) -> None:  # noqa: ANN401
    file = read_json_file(json.dumps(value, indent=indent, ensure_ascii=indent == 1).encode())
    assert file.canonical == canonical(file.value)
    again = read_json_file(file.canonical)
    assert (again.value, again.canonical) == (file.value, file.canonical)


class Quoting(yaml.SafeDumper):
    """Writes every text in quotes: its library knows an older YAML, in which other texts need them."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def as_yaml_text(value: Any, *, flow: bool = False) -> bytes:  # noqa: ANN401  any JSON
    dumped: str = yaml.dump(value, Dumper=Quoting, allow_unicode=True, default_flow_style=flow, width=60)
    return dumped.encode()


@given(DOCUMENTS, st.booleans())
def test_yaml_and_json_of_one_value_are_the_same_document(value: Any, flow: bool) -> None:  # noqa: ANN401, FBT001
    as_json = read_json_file(json.dumps(value).encode())
    as_yaml = read_yaml_file(as_yaml_text(as_json.value, flow=flow))
    assert as_yaml.canonical == as_json.canonical
    back = read_yaml_file(as_yaml_text(json.loads(as_yaml.canonical)))
    assert back.canonical == as_yaml.canonical


def pointers(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str, Any]]:  # noqa: ANN401  any JSON
    """Every part but the root, with the text that its place must begin with: its key, or itself."""
    places: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        for key, member in value.items():
            places += [(pointer((*path, key)), key), *pointers(member, (*path, key))]
    elif isinstance(value, list):
        for n, element in enumerate(value):
            places += [(pointer((*path, n)), element), *pointers(element, (*path, n))]
    return places


def text_at(file: AuthorFile, lines: list[str], at: str) -> str:
    place = file.place(at)
    return lines[place.line - 1][place.column - 1 :]


@given(DOCUMENTS, st.sampled_from([None, 2]))
def test_at_the_place_of_a_part_stands_its_key_or_its_value_in_json(value: Any, indent: int | None) -> None:  # noqa: ANN401
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    file = read_json_file(text.encode())
    for at, expected in pointers(value):
        begins = (
            "["
            if isinstance(expected, list)
            else "{"
            if isinstance(expected, dict)
            else json.dumps(expected, ensure_ascii=False)
        )
        assert text_at(file, text.split("\n"), at).startswith(begins)


WORDS = st.text("abcxyzé", min_size=1, max_size=6)
PLAIN = st.recursive(
    WORDS,
    lambda inner: st.lists(inner, min_size=1, max_size=4) | st.dictionaries(WORDS, inner, min_size=1, max_size=4),
    max_leaves=12,
)


@given(PLAIN, st.booleans())
def test_at_the_place_of_a_part_stands_its_key_or_its_value_in_yaml(value: Any, flow: bool) -> None:  # noqa: ANN401, FBT001
    text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow, width=40)
    file = read_yaml_file(text.encode())
    for at, expected in pointers(value):
        if isinstance(expected, str):
            assert text_at(file, text.split("\n"), at).startswith(expected), at


def test_a_part_that_is_missing_has_the_place_of_what_it_would_be_in() -> None:
    file = read_json_file(b'{\n  "a": {\n    "b": 1\n  }\n}')
    assert file.place("/a/c/d") == file.place("/a")
    assert (file.place("/a/b").line, file.place("/a/b").column) == (3, 5)
    assert (file.place("/nowhere").line, file.place("/nowhere").column) == (1, 1)


@cases(
    ("text", "line", "column", "words"),
    [
        ("a: !!python/object:os.system x", 1, 4, "tag"),
        ("a: !x 1", 1, 4, "tag"),
        ("a: &x [1]\nb: *x", 1, 4, "anchor"),
        ("a: 1\nb: *x", 2, 4, "alias"),
        ("a: 1\n\nb: 2\na: 3", 4, 1, "again"),
        ("a: 1\n---\nb: 2", 2, 1, "second document"),
        ("a: [1, 2", 2, 1, ""),
        ("a: 1\n  b: 2", 2, 4, ""),
        ("? [1]\n: 2", 1, 3, "no text"),
        ("? {a: 1}\n: 2", 1, 3, "no text"),
        ("a: .inf", 1, 4, "not finite"),
        ("a: 1\nb: 9007199254740992", 2, 4, "beyond 2^53-1"),
        ("a:\n  - -9007199254740992", 2, 5, "beyond 2^53-1"),
        (f"a: {'1' * 31}", 1, 4, "beyond 2^53-1"),
        (f"a: -{'1' * 5000}", 1, 4, "beyond 2^53-1"),
        (f"a: 0x{'f' * 41}", 1, 4, "beyond 2^53-1"),
        (f"a: 0o{'7' * 20}", 1, 4, "beyond 2^53-1"),
        ("", 1, 1, "empty"),
        ("# only a comment\n", 1, 1, "empty"),
        ("a: \x00", 1, 1, "character"),
        ("a: \x07b", 1, 1, "character"),
        ("\t- a", 1, 1, ""),
        ("a: '\n", 2, 1, ""),
        ("%FOO\n---\na: b", 1, 5, "directive"),
    ],
)
def test_yaml_that_is_no_plain_data_is_refused_with_its_place(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(YamlRefused) as caught:
        read_yaml_file(text.encode())
    assert words in caught.value.message
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column)
    assert caught.value.at == f"line {line}, column {column}"


@pytest.mark.parametrize(
    ("text", "line"), [("a: 1\nb: 1e20", 2), ("a: 1\n\nb: [1, 1e999]", 3), ("a: 1.7e308\nb:\n- x\n- 1e400", 4)]
)
def test_a_number_that_has_no_canonical_form_is_refused_with_its_place(text: str, line: int) -> None:
    with pytest.raises(JsonRefused) as caught:
        read_yaml_file(text.encode())
    assert caught.value.details["line"] == line
    assert f"line {line}, column " in str(caught.value)


@given(st.integers(-(10**60), 10**60))
def test_yaml_and_json_take_and_refuse_the_same_integers(number: int) -> None:
    taken = abs(number) <= 2**53 - 1
    for read in (read_json_file, read_yaml_file):
        if taken:
            assert read(b"[%d]" % number).value == [number]
        else:
            with pytest.raises(ContextPlaneError, match=r"beyond 2\^53-1"):
                read(b"[%d]" % number)


def test_yaml_is_read_as_its_version_1_2_has_it() -> None:
    text = (
        "a: on\nb: no\nc: 2026-05-09\nd: 012\ne: 0o17\nf: 0x1F\ng: 1_000\nh: 12:30\ni: ~\nj: 1.50\nk: 1.0.0\nl: 3.0\n"
    )
    assert read_yaml_file(text.encode()).value == {
        "a": "on",
        "b": "no",
        "c": "2026-05-09",
        "d": 12,
        "e": 15,
        "f": 31,
        "g": "1_000",
        "h": "12:30",
        "i": None,
        "j": 1.5,
        "k": "1.0.0",
        "l": 3,
    }
    assert read_yaml_file(b"\xef\xbb\xbfa: 1\n").value == {"a": 1}
    assert read_yaml_file(b"a: 1\r\nb: 2\r\n").value == {"a": 1, "b": 2}


BOMB = "\n".join(
    ["a: &a [x, x]", *(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]" for n in range(20))]
)


@cases(
    "data",
    [
        BOMB.encode(),
        b"[" * 100_000,
        b"{a: " * 100_000,
        b"- " * 100_000,
        b"? " * 100_000,
        b"a: " + b"'" * 100_001,
        b"&a " * 50_000,
        b"\xff\xfea\x00",
        b"a: \xc3\x28",
        b"a: 99999999999999999999999",
        b"a: 1e999",
        b"a: -9007199254740993",
        b'a: "\\ud800"',
        b"a: |\n  x\n b",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_yaml_that_would_explode_or_cannot_be_kept_is_refused(data: bytes) -> None:
    with pytest.raises(ContextPlaneError) as caught:
        read_yaml_file(data)
    assert caught.value.family == "refused"
    assert caught.value.at


@pytest.mark.parametrize("read", [read_json_file, read_yaml_file])
def test_a_file_that_is_larger_than_anybody_reviews_is_refused_before_it_is_read(read: Any) -> None:  # noqa: ANN401
    with pytest.raises(AuthorFileTooLarge):
        read(b" " * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    ("read", "data"),
    [(read_json_file, b"[" + b"1," * 150_000 + b"1]"), (read_yaml_file, b"- a\n" * 150_000)],
)
def test_a_file_with_more_parts_than_anybody_reviews_is_refused(read: Any, data: bytes) -> None:  # noqa: ANN401
    with pytest.raises(AuthorFileTooLarge, match="100000 parts"):
        read(data)


def test_a_long_line_costs_no_more_than_many() -> None:
    many = [{"n": n} for n in range(40_000)]
    file = read_json_file(json.dumps(many, separators=(",", ":")).encode())
    places = [file.place(f"/{n}/n") for n in range(40_000)]
    assert places[0].column < places[-1].column
    assert {place.line for place in places} == {1}


@proves("context-pack:mvp:six-parts-suffice")
@pytest.mark.parametrize("as_yaml", [True, False])
def test_the_starting_point_passes_every_gate_in_both_forms(as_yaml: bool) -> None:  # noqa: FBT001
    text = template_text(as_yaml=as_yaml)
    file = read_yaml_file(text) if as_yaml else read_json_file(text)
    report = judge_pack(file.value, ENVIRONMENT)
    assert [finding for finding in report.findings if finding.code != "golden_cases_unstable"] == []
    assert isinstance(file.value, dict)
    assert set(EXAMPLE) <= set(file.value)
    assert file.canonical == read_json_file(template_text(as_yaml=False)).canonical
    assert textwrap.dedent(text.decode()).startswith("#" if as_yaml else "{")
