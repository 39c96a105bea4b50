"""Wrong calls of every kind are refused with a reason, and nothing is stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.surfaces.agents import Agent, says
from tests.surfaces.handoffs import Place, finding, legend, section, whole

INPUT, OUTPUT = "input", "output"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def agent(place: Place) -> Iterator[Agent]:
    with place.serving() as agent:
        yield agent


def nothing_was_made(place: Place) -> bool:
    return [path.name for path in place.folder.iterdir()] == ["src"]


def problems(agent: Agent, document: object) -> list[dict[str, Any]]:
    """The problems of a refused document."""
    details = agent.fails(INPUT, action="write", document=document)["details"]
    entries: list[dict[str, Any]] = details["problems"]
    assert details["problems_total"] >= len(entries) > 0
    return entries


# --- mistyped ---------------------------------------------------------------------------------------------------------

MISTYPED: list[tuple[str, dict[str, Any], str, str]] = [
    (INPUT, {"action": "write", "document": {"sections": []}}, "validate_only", "boolean"),
    (INPUT, {"action": "write", "document": {"sections": []}}, "id", "string"),
    (INPUT, {"action": "write", "document": {"sections": []}, "id": "plan"}, "expected_revision", "integer"),
    (INPUT, {"action": "write"}, "document", "object"),
    (INPUT, {"action": "list"}, "status", "string"),
    (INPUT, {"action": "list"}, "freshness", "string"),
    (INPUT, {"action": "list"}, "query", "string"),
    (INPUT, {"action": "list"}, "limit", "integer"),
    (INPUT, {"action": "list"}, "offset", "integer"),
    (INPUT, {"action": "get", "id": "plan"}, "name", "string"),
    (INPUT, {"action": "ttl", "id": "plan", "expected_revision": 1}, "ttl_minutes", "integer"),
    (INPUT, {"action": "ttl", "id": "plan", "expected_revision": 1}, "extend_minutes", "integer"),
    (OUTPUT, {"action": "read", "id": "plan"}, "profile", "string"),
    (OUTPUT, {"action": "read", "id": "plan"}, "contains", "string"),
    (OUTPUT, {"action": "read", "id": "plan"}, "page_token", "string"),
    (OUTPUT, {"action": "read", "id": "plan"}, "limit", "integer"),
    (OUTPUT, {"action": "read", "id": "plan"}, "offset", "integer"),
    (OUTPUT, {"action": "read", "id": "plan"}, "status", "string"),
]
WRONG: dict[str, tuple[object, ...]] = {
    "boolean": ("true", "false", 1, 0, [True], {}, ""),
    "string": (7, True, ["x"], {"x": 1}, 1.5),
    "integer": ("five", "", "05", "5.0", "1e3", "0x5", "1_000", "\u0665", "9" * 16, 1.5, True, [5], {}),
    "object": ("{", "{]", "[]", "text", '{"a":1,"a":2}', [], 7, True),
}


def test_a_mistyped_argument_is_refused_with_its_name_and_type_and_never_ignored(place: Place, agent: Agent) -> None:
    for tool, arguments, field, kind in MISTYPED:
        for wrong in WRONG[kind]:
            details = agent.fails(tool, **arguments, **{field: wrong})["details"]
            assert (details["field"], details["required_type"]) == (field, kind), (arguments, field, wrong)
    assert nothing_was_made(place)


def test_a_dry_run_that_is_mistyped_does_not_write(place: Place, agent: Agent) -> None:
    mistyped: tuple[object, ...] = ("true", "True", 1, "yes", [], {"value": True})
    for wrong in mistyped:
        error = agent.fails(INPUT, action="write", document=whole(), validate_only=wrong)
        assert error["details"]["field"] == "validate_only"
    assert nothing_was_made(place)


@pytest.mark.parametrize("name", ["expected_revision", "limit", "offset", "id", "name", "query", "freshness", "status"])
def test_null_is_the_same_as_left_out_elsewhere(agent: Agent, name: str) -> None:
    assert agent.does("list", **{name: None})["count"] == 0


def test_a_flag_that_is_false_or_null_is_left_out_by_every_action(agent: Agent) -> None:
    pack = agent.does("write", document=whole(), validate_only=None)["id"]
    for nothing in (False, None):
        assert agent.does("list", validate_only=nothing)["count"] == 1
        revision = agent.does("get", id=pack, validate_only=nothing)["revision"]
        agent.does("ttl", id=pack, expected_revision=revision, ttl_minutes=9, validate_only=nothing)
        assert agent.reads(id=pack, structured=nothing)
        assert agent.reads(action="list", structured=nothing)
    for action, arguments in (("list", {}), ("get", {"id": pack}), ("delete", {"id": pack})):
        assert agent.fails(INPUT, action=action, **arguments, validate_only=True)["details"]["field"] == "validate_only"
    assert agent.does("delete", id=pack, validate_only=False)["deleted"] is True


def test_null_is_left_out_in_every_part_of_a_document(agent: Agent) -> None:
    members = {"name": None, "title": None, "brief": None, "tags": None, "ttl_minutes": None, "status": None}
    ref = {"key": "check", "path": "src/auth.py", "line_start": 1, "line_end": 2, "lines": None, "why": None}
    part = {"key": "findings", "title": "Findings", "description": None, "diagrams": None, "refs": [ref]}
    pack = agent.does("write", document={**members, "sections": [part, {"key": "qa", "title": "", "refs": None}]})
    assert (pack["tags"], pack["status"], pack["sections"][1]["refs"]) == ([], "draft", [])
    nothing = {"sections": [{"key": None, "title": None, "refs": [{"key": None, "path": None}]}]}
    assert {problem["message"] for problem in problems(agent, nothing)} == {"is required"}
    assert problems(agent, {"sections": None})[0]["message"] == "is required"


def test_what_gemini_cli_adds_to_every_tool_is_ignored(agent: Agent) -> None:
    for waits in (True, False, None):
        pack = agent.does("write", document=whole(), wait_for_previous=waits)["id"]
        assert agent.reads(id=pack, wait_for_previous=waits).startswith("[LEGEND]")
        assert agent.reads(wait_for_previous=waits).startswith("# Context packs")
    assert agent.fails(INPUT, action="list", wait_for="x")["details"]["field"] == "wait_for"


# --- text where something else is meant -------------------------------------------------------------------------------


def test_a_text_that_holds_json_is_taken_for_the_object_or_the_list(agent: Agent) -> None:
    document = whole(name="plan", tags=["a"])
    text = msgspec.json.encode(document).decode()
    pack = agent.does("write", document=f" {text}\n")
    assert (pack["name"], pack["tags"], len(pack["sections"])) == ("plan", ["a"], len(document["sections"]))
    ref = '{"key": "check", "path": "src/auth.py", "lines": "{\\"start\\": 1, \\"end\\": 2}"}'
    parts = [{"key": "findings", "title": "{}", "refs": f"[{ref}]"}, '{"key": "qa", "title": "[1]"}']
    other = agent.does("write", document={"sections": msgspec.json.encode(parts).decode(), "tags": '["b"]'})
    assert (other["tags"], [part["title"] for part in other["sections"]]) == (["b"], ["{}", "[1]"])
    assert other["sections"][0]["refs"][0]["lines"] == {"start": 1, "end": 2}


def test_arguments_that_are_a_text_of_json_are_read(agent: Agent) -> None:
    result = agent.asks("tools/call", {"name": "input", "arguments": '{"action":"list","limit":"1"}'})["result"]
    assert result["structuredContent"]["action"] == "list"


def test_an_integer_may_be_a_text_or_have_a_fraction_of_zero(agent: Agent) -> None:
    ref = {"key": "check", "path": "src/auth.py", "line_start": "1", "line_end": 2.0}
    document = {"sections": [{"key": "findings", "title": "", "refs": [ref]}], "ttl_minutes": " 60 "}
    pack = agent.does("write", document=document)
    assert pack["sections"][0]["refs"][0]["lines"] == {"start": 1, "end": 2}
    changed = agent.does("write", id=pack["id"], expected_revision="1", document=document)
    longer = agent.does("ttl", id=pack["id"], expected_revision=2.0, extend_minutes="5")
    assert (changed["revision"], longer["revision"]) == (2, 3)
    assert agent.does("list", limit="0", offset="0")["packs"] == []
    assert "- limit: 1\n" in agent.reads(id=pack["id"], limit="1")
    error = agent.fails(INPUT, action="list", limit="-1")
    assert (error["details"]["field"], error["details"]["minimum"]) == ("limit", 0)


# --- unknown ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "action", "argument", "meant"),
    [
        (INPUT, "write", "documnt", "document"),
        (INPUT, "write", "expected_rev", "expected_revision"),
        (INPUT, "write", "validateOnly", "validate_only"),
        (INPUT, "write", "dry_run", None),
        (INPUT, "list", "freshnes", "freshness"),
        (INPUT, "ttl", "ttl_minute", "ttl_minutes"),
        (OUTPUT, "read", "page_tokn", "page_token"),
        (OUTPUT, "read", "profil", "profile"),
        (OUTPUT, "read", "contain", "contains"),
        (OUTPUT, "read", "zzz", None),
    ],
)
def test_an_unknown_argument_is_named_with_the_nearest_known_one(
    agent: Agent, tool: str, action: str, argument: str, meant: str | None
) -> None:
    details = agent.fails(tool, action=action, **{argument: "x"})["details"]
    assert (details["unsupported_field"], details.get("supported_field")) == (argument, meant)
    assert meant is None or meant in details["allowed_fields"]


@pytest.mark.parametrize(
    ("document", "path", "meant"),
    [
        ({"sections": [], "titel": "x"}, "document.titel", "title"),
        ({"sections": [], "pack_id": "x"}, "document.pack_id", None),
        ({"sections": [section("ab", descripton="x")]}, "document.sections[0].descripton", "description"),
        (
            {"sections": [section("ab", refs=[finding(1, lineEnd=2)])]},
            "document.sections[0].refs[0].lineEnd",
            "line_end",
        ),
        ({"sections": [section("ab", refs=[finding(1, reason="x")])]}, "document.sections[0].refs[0].reason", None),
    ],
)
def test_an_unknown_field_of_the_document_is_named_with_the_nearest_known_one(
    agent: Agent, document: dict[str, Any], path: str, meant: str | None
) -> None:
    [problem] = problems(agent, document)
    assert (problem["path"], problem.get("supported_field")) == (path, meant)
    assert agent.does("list")["count"] == 0


def test_everything_that_is_wrong_is_told_at_once(agent: Agent) -> None:
    refs = [finding(0, path="../x"), finding(5, line_end=4), finding(1, line_end=3000)]
    errors = problems(agent, {"name": "x", "ttl_minutes": 0, "status": 7, "sections": [section("A", refs=refs), 5]})
    assert {error["path"] for error in errors} == {
        "document.name",
        "document.ttl_minutes",
        "document.status",
        "document.sections[0].key",
        "document.sections[0].refs[0].path",
        "document.sections[0].refs[0].line_start",
        "document.sections[0].refs[0].line_end",
        "document.sections[0].refs[1].line_end",
        "document.sections[0].refs[2].line_end",
        "document.sections[1]",
    }


# --- names, keys and paths --------------------------------------------------------------------------------------------


def test_what_looks_like_an_id_is_never_a_name(agent: Agent) -> None:
    [problem] = problems(agent, {"sections": [], "name": "pk_abcd2345"})
    assert problem["path"] == "document.name"
    assert problems(agent, {"sections": [], "name": "  pk_abcd2345 "})
    for alike in ("pk_ABCD2345", "pk_abcd2340", "xpk_abcd2345"):
        pack = agent.does("write", document={"sections": [], "name": alike})["id"]
        assert agent.does("get", name=alike)["id"] == pack
    assert agent.fails(INPUT, action="get", name="pk_abcd2345")["code"] == "not_found"


def test_keys_are_plain_and_names_and_titles_are_in_any_script(agent: Agent) -> None:
    wrong = ("ключ", "naïve", "\uff41\uff42", "e\u0301x", "a\u200bb", "a b", "A1", "-a", "a", "a" * 65, "ab\0", "")
    errors = problems(agent, {"sections": [section("ok"), *({"key": key, "title": "t"} for key in wrong)]})
    assert [error["path"] for error in errors] == [f"document.sections[{n + 1}].key" for n in range(len(wrong))]
    name = "план 計画 \u0645\u0634\u0631\u0648\u0639"
    pack = agent.does("write", document={"name": name, "title": name, "sections": [section("ok", description=name)]})
    assert agent.does("get", name=name)["id"] == pack["id"]
    assert name in agent.reads(name=name, profile="reviewer")
    assert agent.does("list", query="ПЛАН")["count"] == 1
    assert problems(agent, {"sections": [], "name": "ж" * 61})


@pytest.mark.parametrize(
    "path",
    [
        *("../secret", "src/../../secret", "src/..", "..\\secret", "src\\..\\..\\secret", "/etc/passwd", "\\\\host\\x"),
        *("C:\\secret", "c:/secret", "C:secret", "src/a\0b", "", "   ", "x" * 1025),
    ],
)
def test_a_path_that_leaves_the_root_is_refused(place: Place, agent: Agent, path: str) -> None:
    [problem] = problems(agent, {"sections": [section("ab", refs=[finding(1, path=path)])]})
    assert problem["path"] == "document.sections[0].refs[0].path"
    assert nothing_was_made(place)


def test_a_link_out_of_the_root_is_stale_and_spoils_nothing_else(
    place: Place, agent: Agent, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").write_text("swordfish = 1\n" * 5, encoding="utf-8")
    (place.folder / "src" / "file.py").symlink_to(outside / "secret.py")
    (place.folder / "src" / "folder").symlink_to(outside)
    (place.folder / "src" / "within.py").symlink_to("auth.py")
    (place.folder / "src" / "loop.py").symlink_to("loop.py")
    (place.folder / "src" / "binary.py").write_bytes(b"\xff\xfe\0")
    bad = ("src/file.py", "src/folder/secret.py", "src/loop.py", "src/binary.py", "src/folder", "src/none.py", "src")
    refs = [finding(1), finding(2, path="./src/within.py"), *(finding(n + 3, path=path) for n, path in enumerate(bad))]
    document = {**whole(), "sections": [*whole()["sections"], section("more", refs=refs)]}
    pack = agent.does("write", document=document)["id"]
    page = agent.reads(id=pack, profile="reviewer")
    assert "swordfish" not in page
    assert page.count("> stale ref: ") == len(bad)
    assert page.count("return 1\n") == 2
    assert "   2: def step_2(token): return 2\n" in page
    error = agent.fails(
        INPUT, action="write", id=pack, expected_revision=1, document={**document, "status": "finalized"}
    )
    assert error["code"] == "finalize_validation"
    assert {invalid_ref["path"] for invalid_ref in error["details"]["invalid_refs"]} == set(bad)
    assert {invalid_ref["state"] for invalid_ref in error["details"]["invalid_refs"]} == {"unreadable"}


# --- absolute paths ---


def test_an_absolute_path_inside_the_source_root_is_taken_and_stored_as_a_relative_one(place: Place) -> None:
    link = place.folder.parent / "link"
    link.symlink_to(place.folder)
    with place.serving() as agent:
        for path in (
            f"{place.folder}/src/auth.py",
            f"{place.folder}//src/../src/./auth.py",
            f"{link}/src/auth.py",
            f" {place.folder}\\src\\auth.py ",
        ):
            pack = agent.does("write", document={"sections": [section("findings", refs=[finding(1, path=path)])]})
            assert pack["sections"][0]["refs"][0]["path"] == "src/auth.py"
            assert "unanchored_refs" not in pack


def test_an_absolute_path_outside_of_the_source_root_is_refused(place: Place, agent: Agent) -> None:
    outside = (
        f"{place.folder}x/a.py",
        f"{place.folder}/../a.py",
        "/etc/passwd",
        "/",
        f"{place.folder.parent}",
        "//a.py",
    )
    for path in outside:
        [problem] = problems(agent, {"sections": [section("findings", refs=[finding(1, path=path)])]})
        assert problem["path"] == "document.sections[0].refs[0].path"
        assert "is absolute" in problem["message"]
        assert str(place.folder) in problem["guidance"]


# --- as it is spelled ---


@pytest.mark.parametrize("profile", ["Reviewer", "EXECUTOR", "review", "orchestrator,reviewer"])
def test_a_profile_is_spelled_as_in_the_contract(agent: Agent, profile: str) -> None:
    pack = agent.does("write", document=whole())["id"]
    details = agent.fails(OUTPUT, id=pack, profile=profile)["details"]
    assert (details["field"], details["requested"]) == ("profile", profile)
    assert details["allowed"] == ["orchestrator", "executor", "reviewer"]


@pytest.mark.parametrize("ident", [0, 1, -1, 2**53 - 1, "0", "", "call-7"])
def test_a_refusal_repeats_the_id_of_its_request(agent: Agent, ident: int | str) -> None:
    for tool in (INPUT, OUTPUT):
        agent.send(says("tools/call", {"name": tool, "arguments": {"action": "nonsense"}}, ident=ident))
        answer = agent.receive()
        error = msgspec.json.decode(answer["result"]["content"][0]["text"])
        assert (answer["id"], error["request_id"]) == (ident, str(ident))


# --- large and strange ------------------------------------------------------------------------------------------------


def test_ten_thousand_sections_are_refused_by_size_or_stored_and_read_in_pages(place: Place) -> None:
    many = {"sections": [section(f"part-{n}", description=f"text {n}") for n in range(10_000)]}
    with place.serving() as agent:
        details = agent.fails(INPUT, action="write", document=many)["details"]
        assert details["size_bytes"] > details["max_pack_bytes"] == 524_288
        refusal = agent.fails(INPUT, action="write", document={"sections": [{}] * 10_000})["details"]
        assert (len(refusal["problems"]), refusal["problems_total"]) == (100, 20_000)
        assert agent.does("list")["count"] == 0
    with place.serving(max_pack_bytes="9000000") as agent:
        pack = agent.does("write", document=many)["id"]
        assert legend(agent.reads(id=pack))["chunks_total"] == "10000"
        page = legend(agent.reads(id=pack, offset=9_998))
        assert (page["chunks_returned"], page["has_more"]) == ("2", "false")
        assert legend(agent.reads(id=pack, contains="text 9999"))["chunks_total"] == "1"
        assert "## Part-9999 [part-9999]\n\ntext 9999\n" in agent.reads(id=pack, profile="reviewer")
    with place.serving() as agent:  # a smaller limit does not destroy what is there
        assert len(agent.does("get", id=pack)["sections"]) == 10_000


@pytest.mark.parametrize(
    "text",
    [
        '{"action":"write","document":{"sections":[],"title":"a","title":"b"}}',
        '{"action":"list","action":"write"}',
        '{"action":"write","document":{"sections":[],"title":"\\ud800"}}',
        '{"action":"list","limit":1e400}',
        '{"action":"list","limit":9007199254740992}',
        '{"action":"write","document":' + '{"sections":[' * 300 + "]}" * 300 + "}",
    ],
    ids=["twice", "action twice", "surrogate", "infinite", "inexact", "deep"],
)
def test_json_that_means_two_things_or_nothing_is_refused(place: Place, agent: Agent, text: str) -> None:
    agent.send(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"input","arguments":%b}}\n' % text.encode()
    )
    answer = agent.receive()
    assert "error" in answer or answer["result"]["isError"], answer
    assert nothing_was_made(place)
    assert agent.does("list")["count"] == 0


def test_a_lifetime_is_bounded_and_may_be_extended_beyond_that(agent: Agent) -> None:
    for minutes in (-1, 0, 2_628_001, 2**53 - 1):
        details = agent.fails(INPUT, action="ttl", id="plan", expected_revision=1, ttl_minutes=minutes)["details"]
        assert (details["field"], details["minimum"], details["maximum"]) == ("ttl_minutes", 1, 2_628_000)
        [problem] = problems(agent, {"sections": [], "ttl_minutes": minutes})
        assert (problem["path"], problem["maximum"]) == ("document.ttl_minutes", 2_628_000)
    pack = agent.does("write", document=whole(ttl_minutes=2_628_000))
    for _ in range(3):
        longer = {"id": pack["id"], "expected_revision": pack["revision"], "extend_minutes": 2_628_000}
        pack = agent.does("ttl", **longer)
    assert pack["expires_at"] > "2040"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.sampled_from(
    ["action", "id", "name", "document", "expected_revision", "validate_only", "limit", "profile", "op", "page_token"]
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    tool=st.sampled_from([INPUT, OUTPUT]),
    arguments=st.dictionaries(_NAMES, _JSON | st.sampled_from(["list", "get", "write", "read"]), max_size=5),
)
def test_whatever_is_sent_the_answer_is_a_result_or_a_refusal_with_details(
    agent: Agent, tool: str, arguments: dict[str, Any]
) -> None:
    result = agent.calls(tool, **arguments)
    if "isError" in result:
        answer = msgspec.json.decode(result["content"][0]["text"])
        assert answer["code"] in {"invalid_data", "not_found"}, answer
        assert answer["details"]
