"""The calls that the contract prints, word for word."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.spec.manifest import proves
from tests.surfaces.agents import Agent, serving, sources

READS = {
    "compact": """
    {
      "name": "output",
      "arguments": {
        "action": "read",
        "id": "pk_abcd2345"
      }
    }""",
    "reviewer": """
    {
      "name": "output",
      "arguments": {
        "action": "read",
        "id": "pk_abcd2345",
        "profile": "reviewer"
      }
    }""",
    "executor": """
    {
      "name": "output",
      "arguments": {
        "action": "read",
        "id": "pk_abcd2345",
        "profile": "executor"
      }
    }""",
    "continue": """
    {
      "name": "output",
      "arguments": {
        "action": "read",
        "id": "pk_abcd2345",
        "page_token": "<next_page_token-from-legend>"
      }
    }""",
    "expired": """
    {
      "name": "output",
      "arguments": {
        "action": "list",
        "freshness": "expired"
      }
    }""",
    "contains": """
    {
      "name": "output",
      "arguments": {
        "action": "read",
        "id": "pk_abcd2345",
        "contains": "TODO"
      }
    }""",
    "mapped": """
    {
      "name": "output",
      "arguments": {
        "action": "read",
        "id": "pk_abcd2345",
        "profile": "reviewer",
        "page_token": "<page_token>",
        "contains": "TODO"
      }
    }""",
}
LEGACY = '{ "action":"get", "id":"pk_abcd2345", "mode":"full", "cursor":"<cursor>", "match":"TODO" }'
ARGUMENTS = [
    '{ "action":"list" }',
    '{ "action":"list", "freshness":"expired" }',
    '{ "action":"read", "id":"pk_abcd2345" }',
    '{ "action":"read", "id":"pk_abcd2345", "profile":"reviewer" }',
]
REFS = [
    {"key": f"ref-{n}", "path": "src/auth.py", "lines": {"start": 1, "end": 2}, "why": "TODO" if n % 2 else "done"}
    for n in range(9)
]
PACK: dict[str, Any] = {
    "schema_version": 2,
    "id": "pk_abcd2345",
    "name": None,
    "title": "Example",
    "brief": None,
    "status": "draft",
    "tags": [],
    "sections": [{"key": "findings", "title": "Findings", "description": None, "refs": REFS, "diagrams": []}],
    "revision": 1,
    "created_at": "2026-01-01T00:00:00.123456789Z",
    "updated_at": "2026-01-01T00:00:00.123456789Z",
    "expires_at": "2099-01-01T00:00:00Z",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root of the reference server with the pack of the examples."""
    (sources(tmp_path) / "packs").mkdir()
    (tmp_path / "packs" / "pk_abcd2345.json").write_bytes(msgspec.json.encode(PACK))
    return tmp_path


def called(agent: Agent, text: str, **changed: str) -> dict[str, Any]:
    params = msgspec.json.decode(text, type=dict[str, Any])
    params["arguments"] |= changed
    return dict(agent.asks("tools/call", params)["result"])


def refs_of(result: dict[str, Any]) -> int:
    assert "isError" not in result
    return str(result["content"][0]["text"]).count("\n#### ref-")


def next_token(result: dict[str, Any]) -> str:
    """The `next_page_token` of the LEGEND."""
    return str(result["content"][0]["text"]).partition("- next_page_token: ")[2].partition("\n")[0]


@proves("handoff-pack:example:compact-default-read", "handoff-pack:example:continue-paging")
def test_every_example_works_as_it_is_printed(place: Path) -> None:
    with serving(place, {"CONTEXT_PACK_ROOT": str(place)}) as agent:
        compact = called(agent, READS["compact"])
        assert refs_of(compact) == 6
        assert refs_of(called(agent, READS["reviewer"])) == 9
        assert refs_of(called(agent, READS["executor"])) == 9
        token = next_token(compact)
        assert refs_of(called(agent, READS["continue"], page_token=token)) == 3
        assert called(agent, READS["expired"])["content"][0]["text"] == "No context packs found."
        assert refs_of(called(agent, READS["contains"])) == 4
        first = called(agent, READS["mapped"].replace('"page_token": "<page_token>",', '"limit": 3,'))
        token = next_token(first)
        assert refs_of(called(agent, READS["mapped"], page_token=token)) == 1
        for text in ARGUMENTS:
            result = agent.calls("output", **msgspec.json.decode(text))
            assert "isError" not in result
    assert msgspec.json.decode((place / "packs" / "pk_abcd2345.json").read_bytes()) == PACK


@pytest.mark.parametrize("name", ["continue", "mapped"])
def test_a_placeholder_is_no_token(place: Path, name: str) -> None:
    with serving(place, {"CONTEXT_PACK_ROOT": str(place)}) as agent:
        error = msgspec.json.decode(called(agent, READS[name])["content"][0]["text"])
        assert (error["code"], error["details"]["field"]) == ("invalid_data", "page_token")


def test_the_legacy_example_is_answered_with_its_new_form(place: Path) -> None:
    with serving(place, {"CONTEXT_PACK_ROOT": str(place)}) as agent:
        details = agent.fails("output", **msgspec.json.decode(LEGACY))["details"]
        mapped = msgspec.json.decode(READS["mapped"])["arguments"]
        assert details["replacement"].keys() == mapped.keys()
        assert {**details["replacement"], "page_token": mapped["page_token"]} == mapped


def test_a_file_that_is_no_pack_is_reported_and_kept(place: Path) -> None:
    bad = place / "packs" / "pk_zzzzzzzz.json"
    bad.write_bytes(b'{"id": secret')
    with serving(place, {"CONTEXT_PACK_ROOT": str(place)}, stderr=-1) as agent:
        assert agent.does("list")["total"] == 1
        agent.send(b'{"method":"exit"}\n')
        assert agent.process.stderr is not None
        messages = agent.process.stderr.read().decode()
        assert "warn: not imported, left unchanged: " in messages
        assert "pk_zzzzzzzz" in messages
        assert "secret" not in messages
    assert bad.read_bytes() == b'{"id": secret'
