"""The tool `output`: one bounded page of markdown, and what it refuses."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from contextplane.model.timestamp import Timestamp
from tests.spec.manifest import proves
from tests.surfaces.agents import DOCUMENT, Agent, serving, sources

MANY: dict[str, Any] = {
    "title": "Many",
    "sections": [
        {
            "key": "findings",
            "title": "Findings",
            "refs": [
                {
                    "key": f"ref-{n:02}",
                    "path": "src/auth.py",
                    "line_start": 1,
                    "line_end": 2,
                    "why": f"Reason {n} TODO({n})",
                }
                for n in range(20)
            ],
        }
    ],
}


def legend(text: str) -> dict[str, str]:
    """The fields of the LEGEND."""
    head = text.partition("[CONTENT]")[0].splitlines()
    return dict(line[2:].split(": ", 1) for line in head if line.startswith("- "))


def put(folder: Path, ident: str, **changed: Any) -> str:  # noqa: ANN401
    """Write a pack as the reference server stores it."""
    pack: dict[str, Any] = dict.fromkeys(["name", "title", "brief"])
    pack |= {"schema_version": 2, "id": f"pk_{ident:a<8}", "status": "draft", "revision": 1, "tags": [], "sections": []}
    pack |= dict.fromkeys(["created_at", "updated_at"], "2026-01-01T00:00:00Z") | {"expires_at": "2099-01-01T00:00:00Z"}
    pack |= changed
    (folder / "packs").mkdir(exist_ok=True)
    (folder / "packs" / f"{pack['id']}.json").write_bytes(msgspec.json.encode(pack))
    return str(pack["id"])


def moved(agent: Agent, seconds: int) -> str:
    """The time `seconds` from now, by the server's clock."""
    pack = agent.does("write", document={"sections": []}, validate_only=True)
    now = Timestamp.parse(pack["created_at"])
    return str(Timestamp(seconds=now.seconds + seconds, nanos=0))


# --- reading ----------------------------------------------------------------------------------------------------------


@proves(
    "handoff-pack:example:compact-default-read",
    "handoff-pack:migration-profiles:read-by-id",
    "handoff-pack:migration-compact:bounded-default",
    "handoff-pack:tool:output-action-read",
    "handoff-pack:tool:read-defaults-to-orchestrator",
    "handoff-pack:tool:orchestrator-default-limit",
    "handoff-pack:paging:legend-selected-by-exact-id",
    "handoff-pack:paging:legend-profile",
)
def test_a_pack_is_read_by_its_id_alone(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=MANY)
        text = agent.reads(action="read", id=pack["id"])
        fields = legend(text)
        assert text.startswith("[LEGEND]\n# Context pack: Many\n")
        assert (fields["profile"], fields["mode"], fields["limit"]) == ("orchestrator", "compact", "6")
        assert (fields["chunks_returned"], fields["chunks_total"], fields["has_more"]) == ("6", "20", "true")
        assert (fields["selected_by"], fields["selected_revision"], fields["selected_status"]) == (
            "exact_id",
            "1",
            "draft",
        )
        assert "## Handoff summary [handoff]" in text
        assert text.count("- path: src/auth.py") == 6
        assert agent.reads(id=pack["id"]) == text  # read is what is meant by an id


@proves(
    "handoff-pack:example:reviewer-read",
    "handoff-pack:example:executor-read",
    "handoff-pack:migration-profiles:read-with-reviewer",
    "handoff-pack:migration-profiles:action-read-with-profiles",
    "handoff-pack:tool:executor-default-bound",
    "handoff-pack:profiles:orchestrator",
    "handoff-pack:profiles:executor",
    "handoff-pack:tool:compact-omits-code-fences",
    "handoff-pack:tool:compact-keeps-ref-metadata",
)
def test_each_profile_shows_as_much_as_it_says(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=MANY)
        reviewer = agent.reads(action="read", id=pack["id"], profile="reviewer")
        executor = agent.reads(action="read", id=pack["id"], profile="executor")
        assert reviewer.count("   1: import time\n") == 20
        assert "next_page_token" not in legend(reviewer)
        assert (legend(executor)["limit"], executor.count("#### ref-")) == ("12", 12)
        assert "```" not in executor
        assert executor.count("- lines: 1-2") == executor.count("- path: src/auth.py") == 12


@proves(
    "handoff-pack:example:continue-paging",
    "handoff-pack:migration-profiles:read-with-page-token",
    "handoff-pack:migration-profiles:page-token-replaces-cursor",
    "handoff-pack:tool:orchestrator-next-page-token",
    "handoff-pack:paging:continuation-by-limit-and-page-token",
    "handoff-pack:paging:first-page-by-limit-and-offset",
    "handoff-pack:paging:legend-has-more",
    "handoff-pack:paging:legend-next-page-token",
)
def test_page_after_page_shows_every_chunk_once(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=MANY)
        pages = [agent.reads(action="read", id=pack["id"], limit=7)]
        while (token := legend(pages[-1])["next_page_token"]) != "null":
            assert legend(pages[-1])["has_more"] == "true"
            pages.append(agent.reads(action="read", id=pack["id"], page_token=token))
        assert [legend(page)["offset"] for page in pages] == ["0", "7", "14"]
        assert legend(pages[-1])["has_more"] == "false"
        keys = [line.split()[1] for page in pages for line in page.splitlines() if line.startswith("#### ")]
        assert keys == [f"ref-{n:02}" for n in range(20)]
        assert (
            agent.reads(action="read", id=pack["id"], limit=7, offset=7).partition("[CONTENT]")[2].count("#### ") == 7
        )
    with serving(tmp_path) as other:  # the key is the store's, and not the server's
        token = legend(pages[0])["next_page_token"]
        assert other.reads(action="read", id=pack["id"], page_token=token) == pages[1]


def test_a_token_that_does_not_fit_is_refused_with_details(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=MANY)
        other = agent.does("write", document=MANY)
        token = legend(agent.reads(id=pack["id"]))["next_page_token"]
        turned = token[:-4] + ("A" if token[-4] != "A" else "B") + token[-3:]
        wrong: list[dict[str, Any]] = [
            {"id": other["id"], "page_token": token},
            {"id": pack["id"], "page_token": turned},
            {"id": pack["id"], "page_token": "v1:7b7d"},
            {"id": pack["id"], "page_token": "\u00e9"},
            {"id": pack["id"], "page_token": token, "offset": 6},
            {"id": pack["id"], "page_token": token, "limit": 5},
            {"id": pack["id"], "page_token": token, "contains": "x"},
        ]
        for arguments in wrong:
            error = agent.fails("output", action="read", **arguments)
            assert "invalid_page_token" in error["message"]
            assert (error["details"]["field"], bool(error["details"]["guidance"])) == ("page_token", True)
        agent.does("ttl", id=pack["id"], expected_revision=1, ttl_minutes=60)
        assert "invalid_page_token" in agent.fails("output", action="read", id=pack["id"], page_token=token)["message"]


@proves(
    "handoff-pack:example:filter-by-substring",
    "handoff-pack:migration-profiles:contains-replaces-match",
    "handoff-pack:tool:contains-is-case-insensitive-substring",
    "handoff-pack:tool:read-additive-args",
)
def test_only_chunks_with_a_text_are_shown_and_the_text_is_no_pattern(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=MANY)
        text = agent.reads(action="read", id=pack["id"], contains="todo(7)")
        assert [line for line in text.splitlines() if line.startswith("#### ")] == ["#### ref-07 [findings]"]
        nothing = agent.reads(action="read", id=pack["id"], profile="reviewer", contains="todo(.)")
        assert "_No chunks matched current filters._" in nothing
        page = agent.reads(action="read", id=pack["id"], contains="REF-1", limit=3, offset=2)
        assert (legend(page)["chunks_total"], legend(page)["offset"]) == ("10", "2")


def test_the_status_that_is_asked_for_must_be_that_of_the_pack(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=MANY)
        error = agent.fails("output", action="read", id=pack["id"], status="finalized")
        assert (error["kind"], error["code"]) == ("invalid_state", "invalid_state")
        assert agent.reads(action="read", id=pack["id"], status="draft")


@proves("handoff-pack:tool:output-is-markdown")
def test_the_text_is_markdown_and_the_data_stands_beside_it_when_asked_for(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=DOCUMENT)
        result = agent.calls("output", action="read", id=pack["id"], structured=True)
        assert result["content"][0]["text"].startswith("[LEGEND]\n")
        assert result["structuredContent"]["action"] == "read"
        assert result["structuredContent"]["payload"]["verdict"] == "pass"


# --- which pack, and how fresh ----------------------------------------------------------------------------------------


@proves(
    "handoff-pack:tool:name-resolution-prefers-finalized",
    "handoff-pack:tool:name-resolution-latest-updated-at",
    "handoff-pack:tool:name-resolution-highest-revision",
    "handoff-pack:tool:name-resolution-ambiguous",
    "handoff-pack:migration-name-resolution:deterministic-priority",
    "handoff-pack:migration-name-resolution:fail-closed-ambiguity",
    "handoff-pack:migration-name-resolution:success-legend",
    "handoff-pack:paging:legend-selected-by-name-policy",
)
def test_a_name_that_several_packs_have_means_one_or_none(tmp_path: Path) -> None:
    later = {"updated_at": "2026-02-01T00:00:00Z"}
    put(tmp_path, "draft", name="by-status", **later)
    by_status = put(tmp_path, "final", name="by-status", status="finalized")
    put(tmp_path, "old", name="by-time", revision=9)
    by_time = put(tmp_path, "new", name="by-time", **later)
    put(tmp_path, "low", name="by-revision")
    by_revision = put(tmp_path, "high", name="by-revision", revision=2)
    twins = sorted([put(tmp_path, "twin", name="twins"), put(tmp_path, "twinb", name="twins")])
    with serving(tmp_path, {"CONTEXT_PACK_ROOT": str(tmp_path)}) as agent:
        for name, expected in (("by-status", by_status), ("by-time", by_time), ("by-revision", by_revision)):
            fields = legend(agent.reads(action="read", name=name))
            assert fields["id"] == expected
            tier = "finalized" if name == "by-status" else "draft"
            assert fields["selected_by"] == f"name_latest_{tier}_updated_at_then_revision"
            assert fields["selected_status"] == tier
        error = agent.fails("output", action="read", name="twins")
        assert (error["kind"], error["code"], error["details"]["candidate_ids"]) == ("conflict", "ambiguous", twins)
        error = agent.fails("output", action="read", name="by-tmie")
        assert (error["code"], error["details"]["nearest_name"]) == ("not_found", "by-time")
        assert "did you mean 'by-time'?" in error["details"]["guidance"]


@proves(
    "handoff-pack:example:list-expired",
    "handoff-pack:migration-freshness:list-hides-expired",
    "handoff-pack:migration-freshness:explicit-stale-path",
    "handoff-pack:migration-freshness:stable-metadata",
    "handoff-pack:tool:input-list-freshness-filter",
    "handoff-pack:tool:output-list-freshness-filter",
    "handoff-pack:tool:output-action-list",
    "handoff-pack:tool:freshness-fresh",
    "handoff-pack:tool:freshness-expiring-soon",
    "handoff-pack:tool:freshness-expired",
    "handoff-pack:tool:list-is-stale-safe-by-default",
    "handoff-pack:tool:expired-readable-during-grace",
    "handoff-pack:tool:expired-unavailable-after-grace",
    "handoff-pack:tool:expired-grace-default",
)
def test_expired_packs_are_hidden_readable_for_a_while_and_then_gone(tmp_path: Path) -> None:
    with serving(tmp_path, {"CONTEXT_PACK_ROOT": str(tmp_path)}) as agent:
        fresh = put(tmp_path, "fresh")
        soon = put(tmp_path, "soon", expires_at=moved(agent, 600))
        expired = put(tmp_path, "expired", name="stale", expires_at=moved(agent, -800))
        gone = put(tmp_path, "gone", expires_at=moved(agent, -910))
    with serving(tmp_path, {"CONTEXT_PACK_ROOT": str(tmp_path)}) as agent:

        def listed(**filters: str) -> set[str]:
            ids = {pack["id"] for pack in agent.does("list", **filters)["packs"]}
            markdown = agent.reads(action="list", **filters)
            assert {line.split("`")[1] for line in markdown.splitlines() if line.startswith("- `")} == ids
            assert markdown.count("expires_at `") == markdown.count("freshness `") == len(ids)
            return ids

        assert listed() == {fresh, soon}
        assert listed(freshness="fresh") == {fresh}
        assert listed(freshness="expiring_soon") == {soon}
        assert listed(freshness="expired") == {expired}
        assert "[warning: " in agent.reads(action="list", freshness="expired")
        assert legend(agent.reads(action="read", name="stale"))["freshness_state"] == "expired"
        assert "warning" in legend(agent.reads(action="read", id=soon))
        assert legend(agent.reads(action="read", id=expired, freshness="expired"))["id"] == expired
        assert agent.does("get", id=expired, freshness="expired")["freshness_state"] == "expired"
        for tool, action in (("input", "get"), ("output", "read")):
            error = agent.fails(tool, action=action, id=expired, freshness="fresh")
            assert (error["code"], error["details"]["freshness_state"]) == ("invalid_state", "expired")
        for tool, action in (("input", "get"), ("output", "read")):
            assert agent.fails(tool, action=action, id=gone)["code"] == "not_found"
    with serving(tmp_path, {"CONTEXT_PACK_ROOT": str(tmp_path), "CONTEXT_PACK_EXPIRED_GRACE_SECONDS": "10"}) as agent:
        assert agent.fails("input", action="get", id=expired)["code"] == "not_found"


# --- what is refused --------------------------------------------------------------------------------------------------


@proves("handoff-pack:tool:read-profile-values")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"profile": "manager"}, "profile"),
        ({"profile": 7}, "profile"),
        ({"limit": 0}, "limit"),
        ({"limit": "six"}, "limit"),
        ({"offset": -1}, "offset"),
        ({"contains": ["x"]}, "contains"),
        ({"page_token": 7}, "page_token"),
        ({"status": "open"}, "status"),
        ({"freshness": "stale"}, "freshness"),
        ({"query": "x"}, "query"),
        ({"contain": "x"}, "contain"),
    ],
)
def test_a_mistyped_argument_is_refused_with_its_place(tmp_path: Path, arguments: dict[str, Any], field: str) -> None:
    with serving(tmp_path) as agent:
        assert agent.fails("output", action="read", id="pk_abcd2345", **arguments)["details"]["field"] == field


@proves("handoff-pack:error:read-names-identifier-keys")
def test_a_read_without_a_pack_names_both_keys(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        details = agent.fails("output", action="read")["details"]
        assert (details["tool"], details["action"]) == ("output", "read")
        assert details["required_fields"] == details["mutually_interchangeable"] == ["id", "name"]
