"""The contract of the tools `input` and `output`, asked of the server process itself."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextplane.testing.proofs import proves
from tests.surfaces.agents import Agent
from tests.surfaces.handoffs import Place, content, finding, later, legend, section, whole

FRESHNESS = ("freshness_state", "expires_at", "ttl_remaining")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def agent(place: Place) -> Iterator[Agent]:
    with place.serving() as agent:
        yield agent


def ids(agent: Agent, **arguments: object) -> list[str]:
    return [pack["id"] for pack in agent.does("list", **arguments)["packs"]]


# --- input ------------------------------------------------------------------------------------------------------------


@proves(
    "handoff-pack:tool:pack-id-format",
    "handoff-pack:tool:input-action-write",
    "handoff-pack:tool:create-omits-identity-and-revision",
)
def test_a_write_without_identity_makes_a_pack_with_a_new_id(agent: Agent) -> None:
    pack_ids = [agent.does("write", document=whole())["id"] for _ in range(20)]
    assert len(set(pack_ids)) == 20
    assert all(re.fullmatch(r"pk_[a-z2-7]{8}", pack_id) for pack_id in pack_ids)
    for other in ("pk_ABCD2345", "pk_abcd234", "pk_abcd23456", "pk_abcd2301", "abcd2345"):
        assert agent.fails("input", action="get", id=other)["code"] == "not_found"


@proves("handoff-pack:tool:input-action-list", "handoff-pack:tool:input-action-get")
def test_a_pack_is_listed_and_got(agent: Agent) -> None:
    written = agent.does("write", document=whole(name="plan", brief="why", tags=["a"]))
    listed = agent.does("list")
    assert (listed["count"], listed["total"], ids(agent)) == (1, 1, [written["id"]])
    for identity in ({"id": written["id"]}, {"name": "plan"}, {"id": "plan"}, {"name": written["id"]}):
        got = agent.does("get", **identity)
        assert {**got, **written} == got
    # Without an action, input lists; output reads what is named, else it lists.
    assert agent.calls("input")["structuredContent"]["payload"]["count"] == 1
    assert agent.reads(id=written["id"]).startswith("[LEGEND]")
    assert agent.reads().startswith("# Context packs")


@proves("handoff-pack:tool:write-is-full-replace-document")
def test_an_update_replaces_the_whole_pack(agent: Agent) -> None:
    first = agent.does("write", document=whole(brief="why", tags=["a"], name="plan"))
    document = {"sections": [section("other")]}
    second = agent.does("write", id=first["id"], expected_revision=1, document=document)
    assert (second["id"], second["revision"]) == (first["id"], 2)
    assert [section["key"] for section in second["sections"]] == ["other"]
    assert (second["title"], second["brief"], second["tags"], second["status"]) == (None, None, [], "draft")
    assert (second["name"], second["expires_at"]) == ("plan", first["expires_at"])


def test_what_get_returns_is_written_back_unchanged(agent: Agent) -> None:
    first = agent.does("write", document=whole(name="plan", status="finalized"))
    got = agent.does("get", id=first["id"])
    second = agent.does("write", id=first["id"], expected_revision=1, document=got)
    changed = {"revision", "updated_at", "digest"}
    assert {key: first[key] for key in first.keys() - changed} == {key: second[key] for key in second.keys() - changed}


@proves("handoff-pack:tool:update-requires-id-or-name", "handoff-pack:tool:update-requires-expected-revision")
def test_an_update_needs_the_pack_and_the_revision(agent: Agent) -> None:
    pack = agent.does("write", document=whole(name="plan"))["id"]
    for identity in ({"id": pack}, {"name": "plan"}):
        error = agent.fails("input", action="write", document=whole(), **identity)
        assert error["details"]["required_fields"] == ["expected_revision"]
    error = agent.fails("input", action="write", document=whole(), expected_revision=1)
    assert error["details"]["required_fields"] == ["id", "name"]
    assert error["details"]["unsupported_field"] == "expected_revision"
    assert agent.does("get", id=pack)["revision"] == 1
    assert agent.does("write", document=whole(), name="plan", expected_revision=1)["revision"] == 2


@proves("handoff-pack:tool:validate-only-persists-nothing")
def test_a_write_that_only_validates_stores_nothing_and_says_so(place: Place, agent: Agent) -> None:
    checked = agent.does("write", document=whole(name="plan"), validate_only=True)
    assert (checked["id"], checked["validated_only"]) == (None, True)
    assert sorted(path.name for path in place.folder.iterdir()) == ["src"]
    pack = agent.does("write", document=whole(name="plan"), validate_only=False)
    checked = agent.does("write", id=pack["id"], expected_revision=1, document={"sections": []}, validate_only=True)
    assert (checked["id"], checked["revision"], checked["validated_only"]) == (pack["id"], 2, True)
    assert {**agent.does("get", id=pack["id"]), **pack} == agent.does("get", id=pack["id"])


@proves("handoff-pack:tool:validate-only-runs-same-validations")
@pytest.mark.parametrize(
    "arguments",
    [
        {"document": {"sections": [section("x y")]}},
        {"document": {"sections": [], "status": "finalized"}},
        {"document": whole(status="finalized", refs=99)},
        {"document": {"sections": [], "name": "taken"}},
        {"document": {"sections": [section("big", description="x" * 600_000)]}},
        {"document": whole(), "id": "pk_aaaaaaaa", "expected_revision": 1},
        {"document": whole(), "name": "taken", "expected_revision": 7},
        {"document": whole(name="renamed"), "name": "taken", "expected_revision": 1},
    ],
    ids=["key", "unfinished", "stale", "taken", "size", "unknown", "revision", "renamed"],
)
def test_a_write_that_only_validates_is_refused_for_the_same_reasons(agent: Agent, arguments: dict[str, Any]) -> None:
    agent.does("write", document=whole(name="taken"))
    errors = [agent.fails("input", action="write", **arguments, validate_only=only) for only in (True, False)]
    for (
        error
    ) in errors:  # what differs from call to call: the new id, and the length of the time that is part of the pack
        error.pop("request_id")
        error["details"].pop("size_bytes", None)
        error["message"] = re.sub("pk_[a-z2-7]{8}|[0-9]{6} bytes", "...", error["message"])
    assert errors[0] == errors[1]


@proves("handoff-pack:tool:input-action-ttl", "handoff-pack:tool:ttl-minutes", "handoff-pack:tool:extend-minutes")
def test_ttl_sets_and_extends_the_lifetime(agent: Agent) -> None:
    pack = agent.does("write", document=whole(ttl_minutes=60))
    assert pack["expires_at"] == later(pack["created_at"], 3600)
    longer = agent.does("ttl", id=pack["id"], expected_revision=1, extend_minutes=30)
    assert (longer["revision"], longer["expires_at"]) == (2, later(pack["expires_at"], 1800))
    anew = agent.does("ttl", id=pack["id"], expected_revision=2, ttl_minutes=5)
    assert (anew["revision"], anew["expires_at"]) == (3, later(anew["updated_at"], 300))
    assert anew["sections"] == pack["sections"]


@proves("handoff-pack:tool:input-action-delete")
def test_delete_removes_a_pack_by_id_or_by_name(agent: Agent) -> None:
    for identity in ("id", "name"):
        pack = agent.does("write", document=whole(name="plan"))["id"]
        answer = agent.does("delete", **{identity: pack if identity == "id" else "plan"})
        assert answer == {"id": pack, "deleted": True}
        assert agent.fails("input", action="get", id=pack)["code"] == "not_found"
        assert agent.fails("output", action="read", name="plan")["code"] == "not_found"
        assert ids(agent) == []
        assert agent.does("delete", id=pack) == {"id": pack, "deleted": False}


@proves("handoff-pack:tool:input-actions-are-closed", case="input")
@proves("handoff-pack:tool:output-actions-are-closed", case="output")
@pytest.mark.parametrize(
    ("tool", "actions"),
    [("input", ["list", "get", "write", "ttl", "delete"]), ("output", ["list", "read"])],
    ids=["input", "output"],
)
def test_any_other_action_is_refused_with_those_that_there_are(agent: Agent, tool: str, actions: list[str]) -> None:
    others: tuple[object, ...] = ("purge", "LIST", "", "render", 7, [])
    for action in others:
        error = agent.fails(tool, action=action)
        assert error["details"]["allowed_actions"] == actions
    tools = agent.asks("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["input", "output"]
    schema = next(entry for entry in tools if entry["name"] == tool)["inputSchema"]
    assert schema["properties"]["action"]["anyOf"][0]["enum"] == actions


@proves("handoff-pack:finalize:drafts-stay-flexible")
def test_a_draft_may_be_unfinished_and_becomes_finalized_only_when_it_is_not(agent: Agent) -> None:
    document = {"sections": [section("findings", refs=[finding(99), finding(1, path="no/such/file.py")])]}
    pack = agent.does("write", document=document)
    error = agent.fails(
        "input", action="write", id=pack["id"], expected_revision=1, document={**document, "status": "finalized"}
    )
    assert error["code"] == "finalize_validation"
    assert agent.does("get", id=pack["id"])["status"] == "draft"
    finished = agent.does("write", id=pack["id"], expected_revision=1, document=whole(status="Finalized"))
    assert (finished["status"], finished["revision"]) == ("finalized", 2)


# --- output -----------------------------------------------------------------------------------------------------------


@proves("handoff-pack:tool:output-action-list", "handoff-pack:tool:output-action-read")
def test_output_lists_and_reads(agent: Agent) -> None:
    assert agent.reads(action="list") == "No context packs found."
    pack = agent.does("write", document=whole())["id"]
    assert f"- `{pack}` \u2014 Login bug (revision `1`, " in agent.reads(action="list")
    assert legend(agent.reads(action="read", id=pack))["id"] == pack


@proves("handoff-pack:tool:output-is-markdown")
def test_an_answer_is_markdown_and_nothing_else(agent: Agent) -> None:
    pack = agent.does("write", document=whole())["id"]
    for arguments in ({"action": "list"}, {"id": pack}, {"id": pack, "profile": "reviewer"}):
        result = agent.calls("output", **arguments)
        [block] = result["content"]
        assert block["text"].startswith(("# Context packs\n", "[LEGEND]\n# Context pack: "))
        # Some clients show a model structured content in place of the text.
        assert "structuredContent" not in result


@proves(
    "handoff-pack:tool:read-additive-args",
    "handoff-pack:tool:read-defaults-to-orchestrator",
    "handoff-pack:tool:read-profile-values",
)
def test_read_takes_profile_limit_offset_token_and_contains(agent: Agent) -> None:
    pack = agent.does("write", document=whole(refs=20))["id"]
    assert legend(agent.reads(id=pack))["profile"] == "orchestrator"
    for profile in ("orchestrator", "reviewer", "executor"):
        assert legend(agent.reads(id=pack, profile=profile))["profile"] == profile
    page = legend(agent.reads(id=pack, profile="executor", limit=2, offset=3, contains="STEP"))
    assert (page["offset"], page["limit"], page["contains"], page["chunks_returned"]) == ("3", "2", "STEP", "2")
    after = legend(agent.reads(id=pack, page_token=page["next_page_token"]))
    assert (after["offset"], after["profile"], after["contains"]) == ("5", "executor", "STEP")
    error = agent.fails("output", id=pack, profile="manager")
    assert error["details"]["allowed"] == ["orchestrator", "executor", "reviewer"]


@proves("handoff-pack:tool:orchestrator-is-compact-handoff-first", case="orchestrator-6")
@proves("handoff-pack:tool:executor-is-actionable-compact", case="executor-12")
@pytest.mark.parametrize(("profile", "bound"), [("orchestrator", 6), ("executor", 12)])
def test_the_compact_profiles_begin_with_the_summary_and_show_no_code(agent: Agent, profile: str, bound: int) -> None:
    pack = agent.does("write", document=whole(refs=20))["id"]
    page = agent.reads(id=pack, profile=profile)
    assert content(page).lstrip().startswith("## Handoff summary [handoff]\n- objective: Login bug\n")
    assert '- verdict_status: status=draft, freshness_state=fresh, verdict="pass"\n' in page
    assert (legend(page)["mode"], legend(page)["chunks_returned"]) == ("compact", str(bound))
    assert "return 1" not in page
    assert page.count("- path: src/auth.py") == bound - 1


@proves(
    "handoff-pack:tool:freshness-metadata-is-stable",
    "handoff-pack:tool:freshness-state",
    "handoff-pack:tool:expires-at",
    "handoff-pack:tool:ttl-remaining",
    "handoff-pack:migration-freshness:stable-metadata",
)
def test_the_same_freshness_is_in_every_list_and_read(agent: Agent) -> None:
    pack = agent.does("write", document=whole(ttl_minutes=150))
    row, got = agent.does("list")["packs"][0], agent.does("get", id=pack["id"])
    assert [row[name] for name in FRESHNESS] == ["fresh", pack["expires_at"], "2h"]
    assert [got[name] for name in FRESHNESS] == ["fresh", pack["expires_at"], "2h"]
    assert 8900 < got["ttl_remaining_seconds"] <= 9000
    expiry = pack["expires_at"].replace("Z", "+00:00")
    page = agent.reads(id=pack["id"])
    assert [legend(page)[name] for name in FRESHNESS] == ["fresh", expiry, "2h"]
    assert f"ttl `2h`, freshness `fresh`) (status `draft`, expires_at `{expiry}`)" in agent.reads(action="list")
    for listed in (agent.calls("output", action="list", structured=True), agent.calls("input", action="list")):
        row = listed["structuredContent"]["payload"]["packs"][0]
        assert [row[name] for name in FRESHNESS] == ["fresh", pack["expires_at"], "2h"]


@proves("handoff-pack:paging:legend-selected-by-exact-id", "handoff-pack:paging:legend-selected-by-name-policy")
def test_the_legend_says_how_the_pack_was_selected(agent: Agent) -> None:
    pack = agent.does("write", document=whole(name="plan"))["id"]
    assert legend(agent.reads(id=pack))["selected_by"] == "exact_id"
    assert legend(agent.reads(name="plan"))["selected_by"] == "name_latest_draft_updated_at_then_revision"
    agent.does("write", id=pack, expected_revision=1, document=whole(status="finalized"))
    assert legend(agent.reads(name="plan"))["selected_by"] == "name_latest_finalized_updated_at_then_revision"
