"""`ctx handoff` for people, who may be in the wrong folder, mistype, or read hostile texts."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.surfaces.commands import ctx
from tests.surfaces.handoff_store import CODE, HandoffStore, document, json_answer
from tests.surfaces.sample import one_error_line
from tests.surfaces.test_output import on_a_terminal

LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
HOSTILE = "\x1b]0;owned\x07 \x1b[2J\u202etitle\n- status: finalized"


@pytest.fixture
def place(tmp_path: Path) -> HandoffStore:
    return HandoffStore(tmp_path / "project")


def test_the_list_is_aligned_newest_first_and_can_be_narrowed(place: HandoffStore) -> None:
    first = place.write(name="first-one", title="The first", status="finalized")
    second = place.write(title="Second", brief="about tokens")
    lines = place.ctx("handoff", "list").out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        [second.id, "draft", "@1"],
        [first.id, "finalized", "@1"],
    ]
    assert len({line.index("fresh") for line in lines}) == 1
    assert lines[1].endswith("  The first (first-one)")
    for narrowed, expected in (
        (["--status", "finalized"], [first.id]),
        (["--query", "TOKENS"], [second.id]),
        (["--limit", "1"], [second.id]),
        (["--offset", "1"], [first.id]),
        (["--freshness", "expired"], []),
        (["--freshness", "fresh", "--all"], [second.id, first.id]),
    ):
        answer = json_answer(place.ctx("handoff", "list", *narrowed, "--json"))
        assert [pack["id"] for pack in answer["packs"]] == expected, narrowed
    assert json_answer(place.ctx("handoff", "list", "--limit", "1", "--json"))["more"] is True
    assert "1 pack more" in place.ctx("handoff", "list", "--limit", "1").err


def test_a_quiet_list_is_what_the_packs_are_called_and_does_not_hide_that_there_are_more(place: HandoffStore) -> None:
    first, second = place.write(title="The first"), place.write(title="Second")
    assert place.ctx("handoff", "list", "--quiet").out == f"{second.id}\n{first.id}\n"
    cut = place.ctx("handoff", "list", "--limit", "1", "--quiet")
    assert (cut.out, cut.err) == (f"{second.id}\n", "ctx: 1 pack more: use --limit N or --all\n")
    place.write(second.id, revision=1, title="Again")
    assert place.ctx("handoff", "log", second.id, "--quiet").out == f"{second.id}@1\n{second.id}@2\n"
    assert place.ctx("handoff", "read", first.id, "--quiet").out == place.ctx("handoff", "read", first.id).out


def test_what_is_read_is_the_page_of_an_agent_and_in_a_pipe_not_a_byte_more(place: HandoffStore) -> None:
    pack = place.write(name="login-bug", status="finalized")
    by_id = place.ctx("handoff", "read", pack.id)
    assert (by_id.status, by_id.err) == (0, "")
    assert by_id.out.startswith("[LEGEND]\n# Context pack: Login bug\n")
    assert "   4: def check(token):\n   5:     # expiry\n" in by_id.out
    by_name = json_answer(place.ctx("handoff", "read", "login-bug", "--json"))
    assert by_name["selected_by"] == "name_latest_finalized_updated_at_then_revision"
    assert by_name["markdown"].endswith(by_id.out[by_id.out.index("[CONTENT]") :])
    compact = place.ctx("handoff", "read", pack.id, "--profile", "orchestrator", "--limit", "1").out
    assert "- chunks_returned: 1\n" in compact
    assert 'verdict="pass"' in compact
    assert "_No chunks matched" in place.ctx("handoff", "read", pack.id, "--contains", "nowhere").out


def test_a_terminal_shows_code_in_colour_and_marks_what_moved_and_what_is_gone(place: HandoffStore) -> None:
    pack = place.write(status="finalized")
    plain = place.ctx("handoff", "read", pack.id).out
    screen = on_a_terminal("handoff", "read", pack.id, cwd=place.folder, env={"PAGER": ""})
    assert "\x1b[2m   4: \x1b[0m\x1b[35mdef\x1b[0m check(token):" in screen
    assert "\x1b[2m# expiry\x1b[0m" in screen
    assert '\x1b[32m"ok"\x1b[0m' in screen
    assert uncolored(screen).replace("\r\n", "\n") == plain
    place.code.write_text(f"# one more\n{CODE}", encoding="utf-8")
    moved = on_a_terminal("handoff", "read", pack.id, cwd=place.folder, env={"PAGER": ""})
    assert "\x1b[33m- lines: 4-6 (moved: now 5-7)\x1b[0m" in moved
    place.code.unlink()
    gone = on_a_terminal("handoff", "read", pack.id, cwd=place.folder, env={"PAGER": ""})
    assert "\x1b[31m> stale ref: the file is missing\x1b[0m" in gone
    assert "\x1b" not in on_a_terminal("handoff", "read", pack.id, "--no-color", cwd=place.folder, env={"PAGER": ""})


def test_drawings_and_code_in_texts_are_shown_as_they_are(place: HandoffStore) -> None:
    diagram = {"key": "flow", "title": "Flow", "mermaid": "graph TD\n  a-->b"}
    text = "See:\n\n```python\nreturn 1\n```\n\n```\n```"
    section = {"key": "findings", "title": "Findings", "description": text, "diagrams": [diagram]}
    pack = place.write(sections=[section])
    screen = on_a_terminal("handoff", "read", pack.id, cwd=place.folder, env={"PAGER": ""})
    assert "\x1b[35mreturn\x1b[0m \x1b[36m1\x1b[0m" in screen
    assert "graph TD\r\n  a-->b" in screen
    assert uncolored(screen).replace("\r\n", "\n") == place.ctx("handoff", "read", pack.id).out
    assert "    flow  diagram: Flow" in place.ctx("handoff", "show", pack.id).out


def test_what_lies_in_a_reference_root_and_cannot_be_taken_in_is_told(place: HandoffStore) -> None:
    packs = place.folder / ".agents" / "mcp" / "context_pack" / "packs"
    packs.mkdir(parents=True)
    (packs / "pk_abcd2345.json").write_bytes(b"{")
    result = place.ctx("handoff", "list")
    assert (result.status, result.out) == (0, "No handoff packs.\n")
    assert result.err.startswith("ctx: not imported, left unchanged: pk_abcd2345.json: ")
    assert (packs / "pk_abcd2345.json").read_bytes() == b"{"


def uncolored(text: str) -> str:
    for code in ("0", "1", "2", "31", "32", "33", "35", "36"):
        text = text.replace(f"\x1b[{code}m", "")
    return text


def test_long_pages_go_through_the_pager_on_a_terminal(place: HandoffStore) -> None:
    sections = [{"key": f"part-{n}", "title": "Part", "description": "text"} for n in range(60)]
    pack = place.write(sections=sections)
    screen = on_a_terminal("handoff", "read", pack.id, cwd=place.folder, env={"PAGER": "sed s/^/paged:/"})
    assert screen.count("paged:") > 60
    assert "paged:" not in place.ctx("handoff", "read", pack.id, env={"PAGER": "sed s/^/paged:/"}).out


def test_show_is_a_summary_with_the_state_of_every_ref(place: HandoffStore) -> None:
    pack = place.write(name="login-bug", status="finalized")
    place.write(pack.id, revision=1, title="Login bug, again")
    place.code.write_text(f"\n\n{CODE}", encoding="utf-8")
    answer = json_answer(place.ctx("handoff", "show", "login-bug", "--json"))
    assert (answer["revision"], answer["status"], answer["frozen"]["revision"]) == (2, "draft", 1)
    assert [revision["revision"] for revision in answer["revisions"]] == [1, 2]
    assert answer["signature"] is None
    (ref,) = answer["sections"][1]["refs"]
    assert (ref["state"], ref["now_lines"]) == ("moved", {"start": 6, "end": 8})
    text = place.ctx("handoff", "show", f"{pack.id}@1").out
    assert f"Handoff:   {pack.id}@1   sha256:" in text
    assert "the newest is @2" in text
    assert "check  auth.py:4-6  moved, now 6-8\n" in text
    assert "Signature: none" in text


def test_show_says_of_an_older_revision_which_later_ones_are_frozen(place: HandoffStore) -> None:
    pack = place.write()
    assert "Frozen:    no revision is finalized\n" in place.ctx("handoff", "show", f"{pack.id}@1").out
    for revision, frozen in enumerate(("@2 is", "@2 and @3 are", "@2, @3 and @4 are", "@2, @3, @4 and more are"), 1):
        place.write(pack.id, revision=revision, status="finalized")
        text = place.ctx("handoff", "show", f"{pack.id}@1").out
        assert f"Frozen:    not up to this revision; {frozen}\n" in text
    assert json_answer(place.ctx("handoff", "show", f"{pack.id}@1", "--json"))["frozen"] is None
    assert "Frozen:    @5   sha256:" in place.ctx("handoff", "show", pack.id).out


def test_what_is_not_found_comes_with_the_way_to_the_list_and_the_name_that_was_meant(place: HandoffStore) -> None:
    place.write(name="login-bug")
    for line in (["handoff", "log"], ["handoff", "show"], ["show"], ["cat"], ["verify"], ["log"]):
        message = one_error_line(place.ctx(*line, "pk_abcd2345"), 13, "handoff_not_found")
        assert "'ctx handoff list' shows what there is" in message, line
    for verb in ("read", "show", "log"):
        message = one_error_line(place.ctx("handoff", verb, "login-bgu"), 13, "handoff_not_found")
        assert "did you mean 'login-bug'? 'ctx handoff list' shows" in message, verb
    assert "did you mean" not in place.ctx("handoff", "read", "weather").err


def test_the_log_tells_everything_also_of_a_deleted_pack_until_it_is_collected(place: HandoffStore) -> None:
    pack = place.write(name="login-bug")
    place.write(pack.id, revision=1, status="finalized")
    with place.session() as session:
        session.repository.ttl(pack.id, expected_revision=2, extend_minutes=5)
    place.delete(pack.id)
    one_error_line(place.ctx("handoff", "read", pack.id), 13, "handoff_not_found")
    answer = json_answer(place.ctx("handoff", "log", pack.id, "--json"))
    assert [(event["kind"], event["revision"], event["status"], event["frozen"]) for event in answer["events"]] == [
        ("written", 1, "draft", False),
        ("written", 2, "finalized", True),
        ("ttl", 3, "finalized", True),
        ("deleted", 3, None, False),
    ]
    assert answer["deleted_at"]
    lines = place.ctx("handoff", "log", pack.id).out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["@1", "@2", "@3"]
    assert "  frozen  " in lines[1]
    assert lines[3].endswith("deleted at revision 3")
    assert place.ctx("handoff", "show", f"{pack.id}@2").status == 0
    assert "Deleted:" in place.ctx("handoff", "show", f"{pack.id}@2").out
    assert place.ctx("gc", "--grace", "0s").status == 0
    collected = json_answer(place.ctx("handoff", "log", pack.id, "--json"))
    assert collected["collected"] is True
    assert {event["problem"] for event in collected["events"] if event["digest"]} == {"collected"}
    one_error_line(place.ctx("handoff", "show", f"{pack.id}@2"), 13, "handoff_not_found")


def test_a_deleted_pack_is_not_found_and_the_way_to_its_revisions_is_told(place: HandoffStore) -> None:
    pack = place.write(name="login-bug")
    place.delete(pack.id)
    line = one_error_line(place.ctx("handoff", "show", pack.id), 13, "handoff_not_found")
    assert "it was deleted at " in line
    assert f"ctx show {pack.id}@1" in line
    one_error_line(place.ctx("handoff", "show", "login-bug"), 13, "handoff_not_found")


def test_an_expired_pack_is_hidden_and_after_its_grace_time_not_found(place: HandoffStore) -> None:
    pack = place.write_long_ago(LONG_AGO, ttl_minutes=60)
    endless = {"CONTEXT_PACK_EXPIRED_GRACE_SECONDS": "9999999999"}
    assert json_answer(place.ctx("handoff", "list", "--json", env=endless))["packs"] == []
    assert place.ctx("handoff", "list", "--freshness", "expired", env=endless).out.split()[3] == "expired"
    assert "- warning: expired" in place.ctx("handoff", "read", pack.id, env=endless).out
    assert json_answer(place.ctx("handoff", "list", "--json"))["packs"] == []
    line = one_error_line(place.ctx("handoff", "read", pack.id), 13, "handoff_expired")
    assert "expired at 2025-01-01T01:00:00Z" in line
    assert json_answer(place.ctx("handoff", "log", pack.id, "--json"))["events"][0]["kind"] == "written"
    assert "(expired)" in place.ctx("show", f"{pack.id}@1").out


def test_no_title_speaks_to_the_terminal_or_breaks_its_line(place: HandoffStore) -> None:
    pack = place.write(title=HOSTILE, brief=HOSTILE, tags=[HOSTILE])
    for line in (["list"], ["show", pack.id], ["read", pack.id], ["log", pack.id]):
        result = place.ctx("handoff", *line)
        assert result.status == 0
        assert all(character.isprintable() for character in result.out.replace("\n", "").replace("\t", "")), line
    assert len(place.ctx("handoff", "list").out.splitlines()) == 1
    screen = on_a_terminal("handoff", "read", pack.id, cwd=place.folder, env={"PAGER": ""})
    assert "\x1b]0;" not in screen
    assert "\x1b[2J" not in screen


def test_where_there_is_no_store_there_are_no_packs_and_none_is_made(tmp_path: Path) -> None:
    result = ctx("handoff", "list", cwd=tmp_path)
    assert (result.status, result.out) == (0, "No handoff packs, and no store.\n")
    for line in (["handoff", "read"], ["handoff", "log"], ["show"], ["cat"], ["verify"], ["log"]):
        one_error_line(ctx(*line, "pk_abcd2345", cwd=tmp_path), 13, "handoff_not_found")
    one_error_line(ctx("handoff", "export", "pk_abcd2345", "-o", "x.tar", cwd=tmp_path), 13, "handoff_not_found")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["frobnicate"],
        ["read"],
        ["list", "pk_abcd2345"],
        ["list", "--profile", "reviewer"],
        ["read", "pk_abcd2345", "--status", "draft"],
        ["read", "pk_abcd2345", "--profile", "boss"],
        ["log", "pk_abcd2345@3"],
        ["log", "pk_abcd2345", "--limit", "3"],
        ["list", "--limit", "3", "--all"],
        ["list", "--offset", "-1"],
        ["export", "pk_abcd2345"],
    ],
    ids=" ".join,
)
def test_a_line_that_makes_no_sense_is_refused_as_such(place: HandoffStore, line: list[str]) -> None:
    one_error_line(place.ctx("handoff", *line), 2, "usage")


def test_a_damaged_revision_is_told_as_damaged_and_never_as_not_found(place: HandoffStore) -> None:
    pack = place.write(status="finalized")
    file = place.object_of(pack)
    file.chmod(0o644)
    file.write_bytes(file.read_bytes().replace(b"Login", b"Logic"))
    for line in (["handoff", "read"], ["handoff", "show"], ["show"]):
        one_error_line(place.ctx(*line, pack.id), 11, "handoff_unreadable")
    assert "[this revision cannot be read: " in place.ctx("handoff", "log", pack.id).out
    assert place.ctx("handoff", "list").status == 0


def test_a_name_that_two_packs_have_and_nothing_decides_is_told_with_both(place: HandoffStore) -> None:
    other = HandoffStore(place.folder.parent / "other")
    packs = [
        handed_on.write_long_ago(LONG_AGO, name="login-bug", ttl_minutes=2_628_000) for handed_on in (place, other)
    ]
    assert place.ctx("handoff", "export", "login-bug", "-o", "../one.tar").status == 0
    assert other.ctx("import", "../one.tar").status == 0
    error = other.ctx("handoff", "read", "login-bug", "--json")
    assert error.status == 14
    problem = msgspec.json.decode(error.err)["error"]
    assert (problem["code"], problem["details"]["candidate_ids"]) == (
        "handoff_ambiguous",
        sorted(pack.id for pack in packs),
    )


def test_a_huge_pack_is_shown(place: HandoffStore) -> None:
    sections = [{"key": f"part-{n}", "title": f"Part {n}", "description": "x" * 20} for n in range(4_000)]
    pack = place.write(sections=sections)
    assert place.ctx("handoff", "read", pack.id).out.count("## Part") == 4_000
    assert place.ctx("handoff", "show", pack.id).out.count("\n  [part-") == 4_000


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_file_is_written_as_a_new_pack_and_edited_as_its_next_revision(place: HandoffStore) -> None:
    file = place.folder / "findings.json"
    file.write_bytes(msgspec.json.encode(document(name="login-bug")))
    written = place.ctx("handoff", "write", "findings.json")
    assert (written.status, written.err) == (0, "")
    [pack] = json_answer(place.ctx("handoff", "list", "--json"))["packs"]
    assert written.out.startswith(f"Written: {pack['id']}@1, draft, until ")
    edited = msgspec.json.decode(place.ctx("cat", f"{pack['id']}@1").raw) | {"title": "Edited", "status": "finalized"}
    file.write_bytes(msgspec.json.encode(edited))
    for update in ("login-bug", f"{pack['id']}@2"):  # the revision is that of the document, or of the reference
        answer = json_answer(place.ctx("handoff", "write", "findings.json", "--update", update, "--json"))
        shown = json_answer(place.ctx("handoff", "show", pack["id"], "--json"))
        assert (answer["id"], answer["stored"], answer["status"]) == (pack["id"], True, "finalized")
        assert (answer["digest"], answer["revision"]) == (shown["digest"], shown["revision"])
    late = place.ctx("handoff", "write", "findings.json", "--update", "login-bug")
    assert (late.status, "revision_conflict" in late.err or "conflict" in late.err) == (14, True)


def test_yaml_and_standard_input_are_read_and_quiet_prints_the_revision(place: HandoffStore) -> None:
    text = "title: Login bug\nsections:\n- key: findings\n  title: Findings\n  refs:\n"
    text += f"  - {{key: check, path: '{place.folder}/auth.py', line_start: 4, line_end: 6}}\n"
    (place.folder / "findings.yaml").write_text(text, encoding="utf-8")
    for name, data in (("findings.yaml", None), ("-", text.encode())):
        result = place.ctx("handoff", "write", name, "--quiet", input=data)
        assert (result.status, result.err) == (0, ""), result
        ident = result.out.removesuffix("@1\n")
        assert "- path: auth.py\n" in place.ctx("handoff", "read", ident).out


def test_a_dry_run_says_what_would_be_wrong_and_stores_nothing(place: HandoffStore) -> None:
    file = place.folder / "findings.json"
    file.write_bytes(msgspec.json.encode(document(status="finalized")))
    assert place.ctx("handoff", "write", "findings.json", "--dry-run").out.startswith("Valid, nothing was stored: ")
    answer = json_answer(place.ctx("handoff", "write", "findings.json", "--dry-run", "--json"))
    assert (answer["id"], answer["stored"], answer["digest"]) == (None, False, None)
    file.write_bytes(msgspec.json.encode({"title": 7, "nmae": "x", "sections": [{"key": "A", "title": ""}]}))
    wrong = place.ctx("handoff", "write", "findings.json", "--dry-run")
    assert wrong.status == 10
    assert [line.partition(":")[0] for line in wrong.out.splitlines()] == [
        "document.nmae",
        "document.title",
        "document.sections[0].key",
    ]
    assert wrong.err.startswith("ctx: handoff_invalid: document.nmae: ")
    details = msgspec.json.decode(place.ctx("handoff", "write", "findings.json", "--json").err)["error"]["details"]
    assert details["problems_total"] == 3
    assert json_answer(place.ctx("handoff", "list", "--json"))["packs"] == []


def test_refs_that_lead_nowhere_are_named(place: HandoffStore) -> None:
    file = place.folder / "findings.json"
    place.code.unlink()
    file.write_bytes(msgspec.json.encode(document()))
    result = place.ctx("handoff", "write", "findings.json")
    assert (result.status, result.err) == (0, "ctx: not anchored: findings/check: the file is missing\n")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "write needs a FILE"),
        (("findings.json", "--update", "login-bug"), "the revision that you edited is missing"),
        (("findings.json", "--update", "pk_abcd2345"), "the revision that you edited is missing"),
        (("findings.json", "--profile", "reviewer"), "not allowed with write"),
    ],
)
def test_a_write_that_is_not_clear_is_refused(place: HandoffStore, args: tuple[str, ...], words: str) -> None:
    (place.folder / "findings.json").write_bytes(msgspec.json.encode(document()))
    result = place.ctx("handoff", "write", *args)
    assert (result.status, words in result.err) == (2, True), result
    assert "not allowed with read" in place.ctx("handoff", "read", "x", "--dry-run").err


def test_a_first_write_in_a_folder_without_a_store_makes_one(tmp_path: Path) -> None:
    (tmp_path / "findings.json").write_bytes(msgspec.json.encode({"sections": []}))
    assert ctx("handoff", "write", "findings.json", "--dry-run", cwd=tmp_path).status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["findings.json"]
    assert ctx("handoff", "write", "findings.json", cwd=tmp_path).status == 0
    assert len(json_answer(ctx("handoff", "list", "--json", cwd=tmp_path))["packs"]) == 1
