"""Answers: text alone, their size limit, what is left out beyond it, and that they can be written back."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from contextplane.mcp.results import MAX_ANSWER, MAX_TEXT
from contextplane.mcp.schemas import TOOLS
from tests.surfaces.agents import DOCUMENT, Agent, says, serving, sources

ANSWER = jsonschema_rs.validator_for(TOOLS[0]["outputSchema"])
LARGE = {"CONTEXT_PACK_MAX_PACK_BYTES": str(20 << 20)}


def page(folder: Path, line: str, refs: int, *, lines: int = 2000) -> dict[str, Any]:
    """A document with refs that all show the same file, which has 2,000 such lines."""
    (folder / "wide.py").write_text(f"{line}\n" * 2000, encoding="utf-8")
    entries = [{"key": f"r{n}", "path": "wide.py", "line_start": 1, "line_end": lines} for n in range(10, 10 + refs)]
    return {"sections": [{"key": "findings", "title": "Findings", "refs": entries}]}


def answered(agent: Agent, tool: str, **arguments: object) -> tuple[dict[str, Any], int]:
    """The result of a call, and the size of its answer in bytes."""
    assert agent.process.stdout is not None
    agent.send(says("tools/call", {"name": tool, "arguments": arguments}))
    line = agent.process.stdout.readline()
    result = msgspec.json.decode(line, type=dict[str, Any])["result"]
    if tool == "input":
        ANSWER.validate(result["structuredContent"])
    return result, len(line)


# --- text alone -------------------------------------------------------------------------------------------------------


def test_output_promises_no_structured_content_and_sends_none(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        tools = agent.asks("tools/list")["result"]["tools"]
        assert ["outputSchema" in tool for tool in tools] == [True, False]
        pack = agent.does("write", document=DOCUMENT)
        calls: list[tuple[dict[str, Any], set[str]]] = [
            ({"action": "list"}, {"content"}),
            ({"action": "read", "id": pack["id"]}, {"content"}),
            ({"action": "read", "id": pack["id"], "profile": "reviewer", "structured": False}, {"content"}),
            ({"action": "read", "id": pack["id"], "structured": None}, {"content"}),
            ({"action": "read", "id": "pk_zzzzzzzz"}, {"content", "isError"}),
            ({"action": "read", "id": pack["id"], "limit": "many"}, {"content", "isError"}),
        ]
        for arguments, members in calls:
            assert set(agent.calls("output", **arguments)) == members


def test_a_program_that_asks_for_data_gets_it_beside_the_text(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document=DOCUMENT)
        page = agent.calls("output", id=pack["id"], structured=True)
        assert page["structuredContent"]["action"] == "read"
        data = page["structuredContent"]["payload"]
        assert [chunk["key"] for chunk in data["chunks"]] == ["scope", "check", "qa"]
        assert set(page["structuredContent"]) == {"action", "payload"}
        assert page["content"][0]["text"] == agent.reads(id=pack["id"])
        listed = agent.calls("output", structured=True)["structuredContent"]["payload"]
        assert (listed["total"], listed["packs"][0]["id"]) == (1, pack["id"])
        assert agent.fails("output", id="pk_zzzzzzzz", structured=True)["code"] == "not_found"


def shown(result: dict[str, Any]) -> str:
    """The text that a model sees in clients that prefer structured content to the text, if there is any."""
    structured = result.get("structuredContent")
    return str(result["content"][0]["text"]) if structured is None else msgspec.json.encode(structured).decode()


def test_a_page_of_forty_refs_is_shown_once_and_whole_by_every_client(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("".join(f"value_{n} = compute({n})\n" for n in range(1000)), encoding="utf-8")
    refs = [
        {
            "key": f"ref-{n}",
            "path": "app.py",
            "line_start": 20 * n + 1,
            "line_end": 20 * n + 8,
            "title": "Session renewal",
            "why": "The expiry is compared in local time.",
        }
        for n in range(40)
    ]
    with serving(tmp_path) as agent:
        pack = agent.does("write", document={"sections": [{"key": "findings", "title": "Findings", "refs": refs}]})
        compact = shown(agent.calls("output", id=pack["id"], limit=40))
        assert (compact.count("\n#### "), compact.startswith("[LEGEND]\n")) == (40, True)
        assert len(compact.encode()) <= 10_000  # what Codex shows of a result with the models that count bytes
        whole = shown(agent.calls("output", id=pack["id"], profile="reviewer"))
        assert whole.count("value_") == 320
        assert len(whole.encode()) <= 4 * 10_000  # what Codex shows with the others, in bytes; Claude Code shows more


# --- how large --------------------------------------------------------------------------------------------------------


def test_a_page_of_seven_megabytes_is_shown_with_its_data(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        pack = agent.does("write", document=page(tmp_path, '"' * 900, 4))
        result, size = answered(agent, "output", action="read", id=pack["id"], profile="reviewer", structured=True)
        assert len(result["content"][0]["text"]) > 7_000_000
        assert size <= MAX_ANSWER + 1000
        assert "left_out" not in result["structuredContent"]
        assert len(result["structuredContent"]["payload"]["chunks"]) == 4


def test_data_that_would_make_a_page_too_large_is_left_out_and_that_is_told(tmp_path: Path) -> None:
    with serving(tmp_path, LARGE) as agent:
        document = page(tmp_path, '"' * 900, 4)
        why = document["sections"][0]["refs"][0]["why"] = '"' * 3_100_000
        pack = agent.does("write", document=document)
        result, size = answered(agent, "output", action="read", id=pack["id"], profile="reviewer", structured=True)
        assert size <= MAX_ANSWER + 1000
        assert result["structuredContent"] == {"action": "read", "left_out": ["payload"]}
        assert why in result["content"][0]["text"]


def test_data_that_would_make_an_answer_too_large_is_only_in_the_text(tmp_path: Path) -> None:
    with serving(tmp_path, LARGE) as agent:
        document = {"sections": [], "title": '"' * (9 << 19)}
        result, size = answered(agent, "input", action="write", document=document)
        assert size <= MAX_ANSWER + 1000
        assert result["structuredContent"] == {"action": "write", "left_out": ["payload"]}
        answer = msgspec.json.decode(result["content"][0]["text"])
        assert (answer["payload"]["title"], answer["payload"]["revision"]) == (document["title"], 1)


def test_a_text_over_ten_mebibytes_is_an_error_with_details(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        pack = agent.does("write", document=page(tmp_path, "x" * 1000, 6))
        error = agent.fails("output", action="read", id=pack["id"], profile="reviewer")
        assert "tool output too large" in error["message"]
        details = error["details"]
        assert (details["max_bytes"], details["carried_out"]) == (MAX_TEXT, True)
        assert details["size_bytes"] > MAX_TEXT == 10 << 20
        assert len(agent.reads(id=pack["id"], profile="reviewer", limit=5)) < MAX_TEXT


def test_a_refusal_that_is_too_large_does_not_claim_that_anything_was_done(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        error = agent.fails("input", action="write", op='"' * (9 << 19), document={"sections": []})
        assert (error["code"], error["details"]["carried_out"]) == ("invalid_data", False)
        assert "tool output too large" in error["message"]
    assert list(tmp_path.iterdir()) == []


def test_a_write_of_six_mebibytes_is_answered_whole(tmp_path: Path) -> None:
    with serving(tmp_path, LARGE) as agent:
        assert agent.does("write", document={"sections": [], "title": "x" * (6 << 20)})["revision"] == 1


# --- what a write answers can be written back -------------------------------------------------------------------------


def test_every_answer_of_a_write_can_be_written_back(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        dry = agent.does("write", document={**DOCUMENT, "name": "login-bug"}, validate_only=True)
        assert dry["validated_only"] is True
        pack = agent.does("write", document=dry)
        file = tmp_path / "src" / "auth.py"
        file.write_text("# a new line\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        got = agent.does("get", id=pack["id"])
        final = agent.does("write", id=pack["id"], expected_revision=1, document={**got, "status": "finalized"})
        assert final["moved_refs"]
        again = agent.does("write", id=pack["id"], expected_revision=2, document=final)
        assert (again["sections"], again["revision"]) == (final["sections"], 3)
        longer = agent.does("ttl", id=pack["id"], expected_revision=3, extend_minutes=5)
        assert agent.does("write", id=pack["id"], expected_revision=4, document=longer)["revision"] == 5


def test_a_draft_is_told_which_of_its_refs_hold_on_to_nothing_and_why(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\n")
    refs = [
        {"key": "fine", "path": "src/auth.py", "line_start": 1, "line_end": 2},
        {"key": "missing", "path": "src/later.py", "line_start": 1, "line_end": 1},
        {"key": "past-end", "path": "src/auth.py", "line_start": 3, "line_end": 99},
        {"key": "no-text", "path": "binary", "line_start": 1, "line_end": 1},
        {"key": "no-file", "path": "folder", "line_start": 1, "line_end": 1},
    ]
    with serving(sources(tmp_path)) as agent:
        document = {"sections": [{"key": "scope", "title": ""}, {"key": "findings", "title": "", "refs": refs}]}
        for payload in (
            agent.does("write", document=document, validate_only=True),
            agent.does("write", document=document),
        ):
            assert [
                (unanchored_ref["section_key"], unanchored_ref["ref_key"])
                for unanchored_ref in payload["unanchored_refs"]
            ] == [
                ("findings", "missing"),
                ("findings", "past-end"),
                ("findings", "no-text"),
                ("findings", "no-file"),
            ]
            reasons = {
                unanchored_ref["ref_key"]: unanchored_ref["reason"] for unanchored_ref in payload["unanchored_refs"]
            }
            assert reasons["missing"] == "the file is missing"
            assert all(reasons.values())
        again = agent.does("write", id=payload["id"], expected_revision=1, document=payload)
        assert again["unanchored_refs"] == payload["unanchored_refs"]


@pytest.mark.parametrize("status", ["draft", "finalized"])
def test_where_every_ref_is_anchored_nothing_is_told(tmp_path: Path, status: str) -> None:
    with serving(sources(tmp_path)) as agent:
        assert "unanchored_refs" not in agent.does("write", document={**DOCUMENT, "status": status})
