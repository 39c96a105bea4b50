"""The document that an agent writes: what is refused, that all of it is told at once, and that the schema agrees."""

from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.handoff.document import MAX_SPAN, READ_ONLY, read_document
from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.freshness import MAX_TTL_MINUTES
from contextplane.mcp.schemas import DOCUMENT
from contextplane.model.handoff import HandoffPack, LineRange
from tests.spec.manifest import ROOT
from tests.support.cases import cases

REF: dict[str, Any] = {"key": "ref-1", "path": "src/app.py", "line_start": 1, "line_end": 9}
DIAGRAM: dict[str, Any] = {"key": "flow", "title": "Flow", "mermaid": "graph TD"}
SECTION: dict[str, Any] = {"key": "findings", "title": "Findings", "refs": [REF], "diagrams": [DIAGRAM]}
WHOLE: dict[str, Any] = {
    "name": "login-bug",
    "title": "Login bug",
    "brief": "Why it fails",
    "tags": ["auth", "bug"],
    "ttl_minutes": 60,
    "status": "draft",
    "sections": [SECTION],
}
SCHEMA = jsonschema_rs.validator_for(DOCUMENT)
PUBLISHED = jsonschema_rs.validator_for(
    msgspec.json.decode((ROOT / "src/contextplane/schemas/handoff-document.v1.schema.json").read_bytes())
)


def problems(document: object) -> list[dict[str, Any]]:
    """What is wrong with it."""
    with pytest.raises(HandoffInvalid) as refused:
        read_document(document)  # type: ignore[arg-type]
    details = refused.value.details
    problems = msgspec.convert(details["problems"], list[dict[str, Any]])
    assert (details["problems_total"], details["field"]) == (len(problems), problems[0]["path"])
    return problems


def test_a_whole_document_is_read() -> None:
    document = read_document(WHOLE)
    assert (document.name, document.title, document.tags, document.ttl_minutes) == (
        "login-bug",
        "Login bug",
        ("auth", "bug"),
        60,
    )
    assert document.sections[0].refs[0].lines == LineRange(start=1, end=9)
    assert document.sections[0].diagrams[0].mermaid == "graph TD"
    assert SCHEMA.is_valid(WHOLE)


def test_the_smallest_document_is_read() -> None:
    document = read_document({"sections": []})
    assert (document.sections, document.status, document.name, document.ttl_minutes) == ((), "draft", None, None)


def test_what_get_returns_can_be_sent_back() -> None:
    pack = HandoffPack(
        id="pk_abcd2345",
        name=None,
        title=None,
        brief=None,
        status="finalized",
        tags=(),
        sections=read_document(WHOLE).sections,
        revision=3,
        created_at="2026-05-04T09:31:42Z",
        updated_at="2026-05-04T09:31:42Z",
        expires_at="2026-05-04T09:31:42Z",
    )
    returned = msgspec.to_builtins(pack) | dict.fromkeys(READ_ONLY, "whatever")
    document = read_document(msgspec.json.decode(msgspec.json.encode(returned)))
    assert document.sections == pack.sections
    assert document.status == "finalized"
    assert SCHEMA.is_valid(msgspec.json.decode(msgspec.json.encode(returned)))


def test_both_forms_of_a_range_are_read() -> None:
    nested: dict[str, Any] = {"key": "ref-1", "path": "a", "lines": {"start": 2, "end": 4}}
    both = {**nested, "line_start": 2, "line_end": 4}
    for ref in (nested, both):
        document = read_document({"sections": [{**SECTION, "refs": [ref]}]})
        assert document.sections[0].refs[0].lines == LineRange(start=2, end=4)
    contradicting = {**nested, "line_start": 2, "line_end": 5}
    assert [problem["path"] for problem in problems({"sections": [{**SECTION, "refs": [contradicting]}]})] == [
        "document.sections[0].refs[0].lines"
    ]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    document = {
        "nmae": "x",
        "title": 7,
        "tags": "a, b",
        "ttl_minutes": 0,
        "status": "done",
        "sections": [
            {"key": "A", "refs": [{"key": "ok", "path": "../x", "line_start": 5, "line_end": 4, "paht": 1}]},
            "text",
            {"key": "same", "title": "", "refs": [7], "diagrams": [None]},
            {"key": "same", "title": "", "diagrams": [{"key": "d1"}]},
        ],
    }
    assert {problem["path"] for problem in problems(document)} == {
        "document.nmae",
        "document.title",
        "document.tags",
        "document.ttl_minutes",
        "document.status",
        "document.sections[0].key",
        "document.sections[0].title",
        "document.sections[0].refs[0].paht",
        "document.sections[0].refs[0].path",
        "document.sections[0].refs[0].line_end",
        "document.sections[1]",
        "document.sections[2].refs[0]",
        "document.sections[2].diagrams[0]",
        "document.sections[3].diagrams[0].title",
        "document.sections[3].diagrams[0].mermaid",
        "document.sections[3].key",
    }


def test_an_unknown_field_is_told_with_the_one_that_was_meant() -> None:
    [problem] = problems({"sections": [{"key": "ab", "title": "", "descripton": "x"}]})
    assert (problem["unsupported_field"], problem["supported_field"]) == ("descripton", "description")


def test_what_is_required_is_listed() -> None:
    with pytest.raises(HandoffInvalid) as refused:
        read_document({"sections": [{"refs": [{"key": "ab"}]}]})
    assert refused.value.details["required_fields"] == [
        "document.sections[0].key",
        "document.sections[0].title",
        "document.sections[0].refs[0].path",
        "document.sections[0].refs[0].line_start",
        "document.sections[0].refs[0].line_end",
    ]
    with pytest.raises(HandoffInvalid) as refused:
        read_document({})
    assert refused.value.details["required_fields"] == ["document.sections"]
    values: tuple[Any, ...] = (None, [], "text", 7)
    for value in values:
        with pytest.raises(HandoffInvalid) as refused:
            read_document(value)
        assert refused.value.details["field"] == "document"
        assert refused.value.details["required_type"] == "object"


@cases(
    ("name", "fine"),
    [
        ("abc", True),
        ("ab", False),
        ("  abc  ", True),
        (" ab ", False),
        ("x" * 120, True),
        ("x" * 121, False),
        ("\u00e9" * 60, True),
        ("\u00e9" * 61, False),
        ("pk_abcd2345", False),
        (" pk_abcd2345 ", False),
        ("pk_abcd2341", True),
        ("a\nb\0", True),
        (None, True),
    ],
)
def test_a_name_has_its_bounds_in_bytes_and_is_no_id(name: str | None, fine: bool) -> None:  # noqa: FBT001
    if fine:
        assert read_document({"sections": [], "name": name}).name == (name.strip() if name else None)
    else:
        assert [problem["path"] for problem in problems({"sections": [], "name": name})] == ["document.name"]


@cases("key", ["a", "", "A1", "-a", "a b", "x" * 65, "\u043a\u043b\u044e\u0447", "a\u0131", "ab\n.", "\u0661\u0662"])
def test_a_key_in_another_form_or_another_script_is_refused(key: str) -> None:
    [problem] = problems({"sections": [{"key": key, "title": ""}]})
    assert problem["pattern"] == "^[a-z0-9][a-z0-9_-]{1,63}$"


@cases(
    "path",
    ["", " ", "/etc/passwd", "..", "../x", "a/../b", "a\\..\\b", "C:\\x", "c:x", "\\\\host\\x", "a\0b", "x" * 1025],
)
def test_a_path_that_can_lead_out_is_refused(path: str) -> None:
    [problem] = problems({"sections": [{**SECTION, "refs": [{**REF, "path": path}]}]})
    assert problem["path"] == "document.sections[0].refs[0].path"


@cases(("path", "read"), [("./x", "./x"), ("a\\b", "a/b"), (" a ", "a"), ("a..b", "a..b"), ("...", "...")])
def test_a_path_below_the_root_is_taken(path: str, read: str) -> None:
    document = read_document({"sections": [{**SECTION, "refs": [{**REF, "path": path}]}]})
    assert document.sections[0].refs[0].path == read


@cases(
    ("start", "end", "fine"),
    [
        (1, 1, True),
        (1, MAX_SPAN, True),
        (1, MAX_SPAN + 1, False),
        (0, 1, False),
        (2, 1, False),
        (True, 1, False),
        ("1", 2, True),
        ("one", 2, False),
        (1, 2.5, False),
        (1, None, False),
    ],
)
def test_lines_count_from_one_and_span_no_more_than_allowed(start: object, end: object, fine: bool) -> None:  # noqa: FBT001
    for ref in (
        {**REF, "line_start": start, "line_end": end},
        {"key": "ab", "path": "a", "lines": {"start": start, "end": end}},
    ):
        document = {"sections": [{**SECTION, "refs": [ref]}]}
        if fine:
            read_document(document)  # type: ignore[arg-type]
        else:
            assert problems(document)


@cases(
    ("minutes", "fine"),
    [
        (1, True),
        (MAX_TTL_MINUTES, True),
        (0, False),
        (MAX_TTL_MINUTES + 1, False),
        (True, False),
        ("5", True),
        ("5 min", False),
    ],
)
def test_a_lifetime_has_its_bounds(minutes: object, fine: bool) -> None:  # noqa: FBT001
    document = {"sections": [], "ttl_minutes": minutes}
    if fine:
        read_document(document)  # type: ignore[arg-type]
    else:
        assert [problem["path"] for problem in problems(document)] == ["document.ttl_minutes"]


def test_a_status_may_be_written_in_any_case() -> None:
    assert read_document({"sections": [], "status": " Finalized "}).status == "finalized"


def test_ten_thousand_sections_are_read_and_as_many_problems_are_bounded() -> None:
    many = [{"key": f"key-{n}", "title": ""} for n in range(10_000)]
    assert len(read_document({"sections": many}).sections) == 10_000  # type: ignore[dict-item]
    with pytest.raises(HandoffInvalid) as refused:
        read_document({"sections": [{"bad": 1} for _ in range(10_000)]})
    assert refused.value.details["problems_total"] == 30_000
    assert len(refused.value.details["problems"]) == 100  # type: ignore[arg-type]


# --- the schema says the same -----------------------------------------------------------------------------------------

_TEXT = st.text(max_size=6)
_ANY: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-2, 5) | _TEXT | st.just([]) | st.just({})
_KEYS = st.sampled_from(["ab", "cd", "ef-1", "A", "", "x", " ab "])


def _some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these fields, now and then of a wrong type, now and then with a stranger."""
    mixed = {name: values | values | values | _ANY for name, values in fields.items()}
    return st.fixed_dictionaries({}, optional={**mixed, "stranger": st.none()})


_NUMBER = st.integers(-1, 3000)
_LINES = _some({"start": _NUMBER, "end": _NUMBER})
_REFS = _some(
    {
        "key": _KEYS,
        "path": st.just("src/a.py"),
        "line_start": _NUMBER,
        "line_end": _NUMBER,
        "lines": _LINES,
        "title": _TEXT,
    }
)
_DIAGRAMS = _some({"key": _KEYS, "title": _TEXT, "mermaid": _TEXT, "why": _TEXT})
_SECTIONS = _some(
    {"key": _KEYS, "title": _TEXT, "refs": st.lists(_REFS, max_size=2), "diagrams": st.lists(_DIAGRAMS, max_size=2)}
)
_DOCUMENTS = _some(
    {
        "name": st.sampled_from(["abc", "some name"]),
        "title": _TEXT,
        "tags": st.lists(_TEXT, max_size=2),
        "ttl_minutes": st.integers(-1, 3),
        "status": st.sampled_from(["draft", "finalized", "done"]),
        "sections": st.lists(_SECTIONS, max_size=2),
        "revision": _ANY,
    }
)
# What a schema cannot say: bytes, uniqueness by key, one number against another, null for what is left out.
_BEYOND = (
    "is that of",
    "before the first line",
    "more than 2000",
    "something else",
    "bytes",
    "is required",
    "empty",
    "look like",
)


@given(_DOCUMENTS)
def test_schema_and_reader_agree(document: dict[str, Any]) -> None:
    try:
        read_document(document)
    except HandoffInvalid as refused:
        problems = msgspec.convert(refused.details["problems"], list[dict[str, Any]])
        if not all(any(words in problem["message"] for words in _BEYOND) for problem in problems):
            assert not PUBLISHED.is_valid(document), problems
    else:
        assert PUBLISHED.is_valid(document), [*PUBLISHED.iter_errors(document)]
        assert SCHEMA.is_valid(without_nulls(document)), [*SCHEMA.iter_errors(without_nulls(document))]


def without_nulls(value: Any) -> Any:  # noqa: ANN401  any JSON
    """The value without members that are null: the schema of the tool names null only where `get` returns it."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_what_get_returns_is_a_document_by_the_schema() -> None:
    ref = {**REF, "title": None, "why": None, "group": None, "anchor": {"digest": "x"}, "lines": {"start": 1, "end": 9}}
    section = {**SECTION, "description": None, "refs": [ref], "diagrams": [{**DIAGRAM, "why": None}]}
    document = {**WHOLE, "name": None, "brief": None, "sections": [section], "revision": 3, "digest": "x"}
    read_document(document)
    assert SCHEMA.is_valid(document)
    assert PUBLISHED.is_valid(document)
