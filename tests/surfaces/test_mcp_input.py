"""The tool `input`: list, get, write, ttl, delete, and what each of them refuses."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from contextplane.model.timestamp import Timestamp
from tests.spec.manifest import proves
from tests.surfaces.agents import DOCUMENT, Agent, serving, sources

SECTIONS: list[Any] = DOCUMENT["sections"]


@proves(
    "handoff-pack:tool:pack-id-format",
    "handoff-pack:tool:input-action-list",
    "handoff-pack:tool:input-action-get",
    "handoff-pack:tool:input-action-write",
    "handoff-pack:tool:input-action-delete",
    "handoff-pack:tool:create-omits-identity-and-revision",
)
def test_a_pack_is_written_listed_got_and_deleted(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document={**DOCUMENT, "name": "login-bug"})
        assert re.fullmatch(r"pk_[a-z2-7]{8}", pack["id"])
        assert (pack["revision"], pack["status"], pack["schema_version"]) == (1, "draft", 2)
        assert pack["created_at"] == pack["updated_at"]
        listed = agent.does("list")
        assert (listed["count"], listed["total"]) == (1, 1)
        assert set(listed["packs"][0]) == {
            *("id", "name", "title", "status", "revision", "updated_at", "expires_at"),
            *("ttl_remaining_seconds", "ttl_remaining_human", "ttl_remaining", "freshness_state"),
        }
        for identity in ({"id": pack["id"]}, {"name": "login-bug"}, {"name": pack["id"]}, {"id": "login-bug"}):
            got = agent.does("get", **identity)
            assert {key: got[key] for key in pack} == pack
            assert (got["freshness_state"], got["ttl_remaining"]) == ("fresh", "6d")
        assert agent.does("delete", name="login-bug") == {"id": pack["id"], "deleted": True}
        assert agent.does("delete", id=pack["id"]) == {"id": pack["id"], "deleted": False}
        assert agent.fails("input", action="get", id=pack["id"])["code"] == "not_found"
        assert agent.fails("input", action="delete", name="login-bug")["code"] == "not_found"
        assert agent.fails("input", action="get", id="PK_ABCD2345")["code"] == "not_found"
        assert agent.does("list")["count"] == 0


@proves(
    "handoff-pack:tool:write-is-full-replace-document",
    "handoff-pack:tool:update-requires-id-or-name",
    "handoff-pack:tool:update-requires-expected-revision",
)
def test_an_update_replaces_the_whole_pack_and_needs_its_identity_and_revision(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document={**DOCUMENT, "name": "login-bug", "tags": ["a"]})
        written = agent.does("write", id=pack["id"], expected_revision=1, document={"sections": SECTIONS[:1]})
        assert (written["id"], written["name"], written["revision"]) == (pack["id"], "login-bug", 2)
        assert (written["title"], written["brief"], written["tags"], len(written["sections"])) == (None, None, [], 1)
        assert written["expires_at"] == pack["expires_at"]
        by_name = agent.does("write", name="login-bug", expected_revision=2, document={"sections": []})
        assert by_name["revision"] == 3
        alias = agent.does("write", identifier=pack["id"], expected_revision=3, document={"sections": []})
        assert alias["revision"] == 4
        error = agent.fails("input", action="write", id=pack["id"], document={"sections": []})
        assert error["details"]["required_fields"] == ["expected_revision"]
        assert error["details"]["guidance"][-1].startswith("for a new pack leave out id and name")
        error = agent.fails("input", action="write", expected_revision=1, document={"sections": []})
        assert error["details"]["required_fields"] == ["id", "name"]
        assert error["details"]["unsupported_field"] == "expected_revision"
        error = agent.fails(
            "input", action="write", name="login-bug", expected_revision=4, document={**DOCUMENT, "name": "new"}
        )
        assert "immutable" in error["message"]
        assert agent.fails("input", action="write", document={**DOCUMENT, "name": "login-bug"})["code"] == "conflict"
        assert agent.does("get", id=pack["id"])["revision"] == 4


def test_what_get_returned_can_be_sent_back_unchanged(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document={**DOCUMENT, "status": "finalized"})
        got = agent.does("get", id=pack["id"])
        written = agent.does("write", id=pack["id"], expected_revision=1, document=got)
        again = agent.does("get", id=pack["id"])
        assert (written["revision"], again["sections"], again["status"]) == (2, got["sections"], "finalized")


@proves("handoff-pack:tool:validate-only-persists-nothing", "handoff-pack:tool:validate-only-runs-same-validations")
def test_a_dry_run_checks_everything_and_stores_nothing(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        checked = agent.does("write", document={**DOCUMENT, "name": "login-bug"}, validate_only=True)
        assert (checked["validated_only"], checked["id"], checked["revision"]) == (True, None, 1)
        assert agent.does("list")["count"] == 0
        assert [path.name for path in tmp_path.iterdir()] == ["src"]
        pack = agent.does("write", document={**DOCUMENT, "name": "login-bug"}, validate_only=False)
        assert "validated_only" not in pack
        checked = agent.does("write", id=pack["id"], expected_revision=1, document=DOCUMENT, validate_only=True)
        assert (checked["validated_only"], checked["id"], checked["revision"]) == (True, pack["id"], 2)
        refused = [
            ({"document": {**DOCUMENT, "name": "login-bug"}}, "conflict"),
            ({"document": {"sections": [], "status": "finalized"}}, "finalize_validation"),
            ({"document": {"sections": [], "title": "x" * 600_000}}, "invalid_data"),
            ({"document": DOCUMENT, "id": pack["id"], "expected_revision": 7}, "revision_conflict"),
        ]
        for arguments, code in refused:
            for validate_only in (True, False):
                error = agent.fails("input", action="write", validate_only=validate_only, **arguments)
                assert error["code"] == code
        assert agent.does("get", id=pack["id"])["revision"] == 1


@pytest.mark.parametrize("value", ["true", "false", 1, 0, [], {}])
def test_a_dry_run_that_is_not_clearly_meant_writes_nothing(tmp_path: Path, value: object) -> None:
    with serving(tmp_path) as agent:
        error = agent.fails("input", action="write", document={"sections": []}, validate_only=value)
        assert (error["details"]["field"], error["details"]["required_type"]) == ("validate_only", "boolean")
        assert agent.does("list")["total"] == 0
    assert list(tmp_path.iterdir()) == []


def seconds(text: str) -> int:
    return Timestamp.parse(text).seconds


@proves(
    "handoff-pack:tool:input-action-ttl",
    "handoff-pack:tool:ttl-exactly-one-argument",
    "handoff-pack:tool:ttl-minutes",
    "handoff-pack:tool:extend-minutes",
)
def test_a_lifetime_is_set_or_extended_and_never_both(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        pack = agent.does("write", document={"sections": [], "ttl_minutes": 60})
        extended = agent.does("ttl", id=pack["id"], expected_revision=1, extend_minutes=30)
        assert seconds(extended["expires_at"]) - seconds(pack["expires_at"]) == 30 * 60
        shortened = agent.does("ttl", id=pack["id"], expected_revision=2, ttl_minutes=10)
        assert seconds(shortened["expires_at"]) - seconds(shortened["updated_at"]) == 10 * 60
        assert (extended["revision"], shortened["revision"]) == (2, 3)
        for both in ({}, {"ttl_minutes": 5, "extend_minutes": 5}):
            details = agent.fails("input", action="ttl", id=pack["id"], expected_revision=3, **both)["details"]
            assert details["required_fields"] == ["ttl_minutes", "extend_minutes"]
            assert (details["required_mode"], details["provided_fields"]) == ("exactly_one_of", list(both))
        details = agent.fails("input", action="ttl", id=pack["id"], ttl_minutes=5)["details"]
        assert details["required_fields"] == ["expected_revision"]
        for minutes in (0, -1, 2_628_001, "5m", True, 1.5):
            details = agent.fails("input", action="ttl", id=pack["id"], expected_revision=3, ttl_minutes=minutes)[
                "details"
            ]
            assert details["field"] == "ttl_minutes"


@proves(
    "handoff-pack:migration-conflict:expected-revision",
    "handoff-pack:migration-conflict:current-revision",
    "handoff-pack:migration-conflict:last-updated-at",
    "handoff-pack:migration-conflict:changed-section-keys",
    "handoff-pack:migration-conflict:guidance",
    "handoff-pack:migration-conflict:retry-pattern",
)
def test_a_writer_who_comes_too_late_is_told_what_changed_and_can_retry(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=DOCUMENT)
        changed = [SECTIONS[0], {**SECTIONS[1], "title": "Other"}, SECTIONS[2], {"key": "more", "title": ""}]
        later = agent.does("write", id=pack["id"], expected_revision=1, document={**DOCUMENT, "sections": changed})
        error = agent.fails("input", action="write", id=pack["id"], expected_revision=1, document=DOCUMENT)
        assert (error["kind"], error["code"]) == ("conflict", "revision_conflict")
        details = error["details"]
        assert (details["expected_revision"], details["current_revision"], details["actual_revision"]) == (1, 2, 2)
        assert details["changed_section_keys"] == ["findings", "more"]
        assert Timestamp.parse(details["last_updated_at"]) == Timestamp.parse(later["updated_at"])
        assert details["guidance"]
        latest = agent.does("get", id=pack["id"])
        latest["sections"].append({"key": "mine", "title": "Mine"})
        merged = agent.does("write", id=pack["id"], expected_revision=latest["revision"], document=latest)
        assert [section["key"] for section in merged["sections"]] == ["scope", "findings", "qa", "more", "mine"]


def test_of_two_servers_that_write_at_once_exactly_one_wins(tmp_path: Path) -> None:
    with serving(tmp_path) as first, serving(tmp_path) as other:
        pack = first.does("write", document={"sections": []})
        for revision in range(1, 6):

            def write(agent: Agent, revision: int = revision) -> bool:
                document = {"sections": [], "title": str(id(agent))}
                result = agent.calls(
                    "input", action="write", id=pack["id"], expected_revision=revision, document=document
                )
                answer = result["structuredContent"]
                assert answer.get("code", "revision_conflict") == "revision_conflict"
                return "payload" in answer

            with ThreadPoolExecutor(2) as pool:
                assert sorted(pool.map(write, (first, other))) == [False, True]
        assert other.does("get", id=pack["id"])["revision"] == 6


@proves(
    "handoff-pack:finalize:missing-sections",
    "handoff-pack:finalize:missing-fields",
    "handoff-pack:migration-finalize:machine-readable-details",
    "handoff-pack:migration-finalize:stale-refs-block",
)
def test_what_is_not_ready_is_not_finalized(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        missing = {**SECTIONS[1], "refs": [{**SECTIONS[1]["refs"][0], "path": "src/gone.py"}]}
        error = agent.fails("input", action="write", document={"status": "finalized", "sections": [missing]})
        assert (error["kind"], error["code"]) == ("invalid_state", "finalize_validation")
        assert error["details"]["missing_sections"] == ["scope", "qa"]
        assert set(error["details"]) >= {"missing_sections", "missing_fields", "invalid_refs"}
        [ref] = error["details"]["invalid_refs"]
        assert (ref["section_key"], ref["ref_key"], ref["path"]) == ("findings", "check", "src/gone.py")
        assert (ref["line_start"], ref["line_end"]) == (2, 3)
        assert ref["reason"]
        hollow = [{"key": key, "title": ""} for key in ("scope", "findings", "qa")]
        error = agent.fails("input", action="write", document={"status": "finalized", "sections": hollow})
        assert error["details"]["missing_fields"] == ["scope.content", "findings.content", "qa.verdict"]
        draft = agent.does("write", document={"sections": [missing]})
        assert draft["status"] == "draft"


# --- what is refused --------------------------------------------------------------------------------------------------


@proves("handoff-pack:error:normalized-and-stable", "handoff-pack:error:kind", "handoff-pack:error:code", case="*")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"action": 7}, "action"),
        ({"action": "list", "limit": "five"}, "limit"),
        ({"action": "list", "limit": -1}, "limit"),
        ({"action": "list", "offset": 1.5}, "offset"),
        ({"action": "list", "status": "done"}, "status"),
        ({"action": "list", "status": ["draft"]}, "status"),
        ({"action": "list", "freshness": "stale"}, "freshness"),
        ({"action": "list", "query": 7}, "query"),
        ({"action": "get", "id": 7}, "id"),
        ({"action": "list", "id": "pk_abcd2345"}, "id"),
        ({"action": "delete", "id": "pk_abcd2345", "expected_revision": 1}, "expected_revision"),
        ({"action": "get", "id": "pk_abcd2345", "fresness": 1}, "fresness"),
        ({"action": "write", "document": {"sections": []}, "id": "x", "expected_revision": "one"}, "expected_revision"),
        ({"action": "write", "document": {"sections": []}, "id": "x", "expected_revision": True}, "expected_revision"),
        ({"action": "write", "document": []}, "document"),
        ({"action": "write", "document": "text"}, "document"),
        ({"action": "write", "document": {"sections": {}}}, "document.sections"),
        ({"action": "write"}, "document"),
    ],
)
def test_a_mistyped_argument_is_refused_with_its_place(tmp_path: Path, arguments: dict[str, Any], field: str) -> None:
    with serving(tmp_path) as agent:
        error = agent.fails("input", **arguments)
        assert (error["kind"], error["code"], error["details"]["field"]) == ("validation", "invalid_data", field)
        assert agent.fails("input", **arguments) | {"request_id": ""} == error | {"request_id": ""}


def test_several_wrong_arguments_are_told_together(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        details = agent.fails("input", action="list", limit="x", offset=-1, qery="a")["details"]
        assert [problem["path"] for problem in details["problems"]] == ["qery", "limit", "offset"]
        assert details["supported_field"] == "query"


def test_null_counts_as_left_out(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        nothing = dict.fromkeys(
            ["id", "name", "status", "freshness", "query", "limit", "offset", "document", "ttl_minutes"]
        )
        assert agent.does("list", **nothing)["count"] == 0


@proves("handoff-pack:error:details-required-inputs")
@proves("handoff-pack:error:delete-names-identifier-keys", case="delete")
@pytest.mark.parametrize("action", ["get", "ttl", "delete"])
def test_a_missing_identity_is_told_by_both_names(tmp_path: Path, action: str) -> None:
    with serving(tmp_path) as agent:
        for arguments in ({}, {"id": "  "}, {"id": None, "name": ""}):
            details = agent.fails("input", action=action, **arguments)["details"]
            assert details["required_fields"] == details["mutually_interchangeable"] == ["id", "name"]


def test_the_list_is_filtered_and_paged(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack_ids = [agent.does("write", document={"sections": [], "title": f"Pack {n}"})["id"] for n in range(5)]
        agent.does("write", document={**DOCUMENT, "title": "Done", "status": "finalized"})
        page = agent.does("list", status="draft", limit=2, offset=1)
        assert (page["count"], page["total"]) == (2, 5)
        assert [pack["id"] for pack in page["packs"]] == [pack_ids[3], pack_ids[2]]
        assert [pack["title"] for pack in agent.does("list", query="pACK 4")["packs"]] == ["Pack 4"]
        assert agent.does("list", limit=0)["packs"] == []
        tagged = agent.does("write", document={"sections": [], "title": "Plan", "tags": ["Auth", "token expiry"]})
        for query in ("auth", "TOKEN EXP", "plan"):
            assert [pack["id"] for pack in agent.does("list", query=query)["packs"]] == [tagged["id"]]
            assert tagged["id"] in agent.reads(action="list", query=query)
        agent.does("delete", id=tagged["id"])
        assert agent.does("list", status="Finalized")["total"] == 1


def test_refs_that_moved_since_are_told_when_a_pack_is_finalized(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=DOCUMENT)
        file = tmp_path / "src" / "auth.py"
        file.write_text("# a new line\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        got = agent.does("get", id=pack["id"])
        final = agent.does("write", id=pack["id"], expected_revision=1, document={**got, "status": "finalized"})
        [moved] = final["moved_refs"]
        assert (moved["section_key"], moved["ref_key"]) == ("findings", "check")


def test_what_the_disk_refuses_is_told_and_the_server_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with serving(tmp_path, {"CONTEXT_PACK_ROOT": str(tmp_path / "file")}) as agent:
        for _ in range(2):
            error = agent.fails("input", action="write", document=DOCUMENT)
            assert (error["kind"], error["code"], bool(error["details"]["reason"])) == ("io_error", "io_error", True)
        assert agent.does("list")["count"] == 0
        (tmp_path / "file").unlink()
        assert agent.does("write", document=DOCUMENT)["revision"] == 1
