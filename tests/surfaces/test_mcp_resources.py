"""Resources: every listed one can be read, in pages; a missing one is an error."""

from pathlib import Path

import msgspec
import pytest

from tests.surfaces.agents import DOCUMENT, Agent, serving, sources
from tests.surfaces.commands import ctx

LOG = {"model": {"identifier": "m-1"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}


def read(agent: Agent, uri: str) -> tuple[str, str]:
    [contents] = agent.asks("resources/read", {"uri": uri})["result"]["contents"]
    assert contents["uri"] == uri
    return contents["mimeType"], contents["text"]


def test_a_pack_is_read_as_a_reviewer_sees_it(tmp_path: Path) -> None:
    with serving(sources(tmp_path)) as agent:
        pack = agent.does("write", document={**DOCUMENT, "name": "login-bug"})
        [listed] = agent.asks("resources/list")["result"]["resources"]
        assert (listed["name"], listed["title"], listed["mimeType"]) == ("login-bug", "Login bug", "text/markdown")
        kind, text = read(agent, listed["uri"])
        assert (kind, text) == ("text/markdown", agent.reads(action="read", id=pack["id"], profile="reviewer"))


def test_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        pack_ids = [agent.does("write", document={"sections": []})["id"] for _ in range(53)]
        first = agent.asks("resources/list")["result"]
        last = agent.asks("resources/list", {"cursor": first["nextCursor"]})["result"]
        assert "nextCursor" not in last
        uris = [resource["uri"] for resource in first["resources"] + last["resources"]]
        assert uris == [f"ctx://handoff/{ident}" for ident in reversed(pack_ids)]


@pytest.mark.parametrize("cursor", ["x", "-1", 7, "", "\u0663", "9" * 30])
def test_a_cursor_of_somebody_else_is_refused(tmp_path: Path, cursor: object) -> None:
    with serving(tmp_path) as agent:
        assert agent.asks("resources/list", {"cursor": cursor})["error"]["code"] == -32602


@pytest.mark.parametrize(
    "uri",
    [
        "ctx://handoff/pk_zzzzzzzz",
        "ctx://handoff/login-bug",
        "ctx://executions",
        "ctx://executions/abc",
        "file:///etc/passwd",
        "",
    ],
)
def test_what_is_not_there_is_told_by_its_uri(tmp_path: Path, uri: str) -> None:
    with serving(tmp_path) as agent:
        error = agent.asks("resources/read", {"uri": uri})["error"]
        assert (error["code"], error["data"]) == (-32002, {"uri": uri})
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        assert agent.asks("resources/read", {"uri": uri, "_meta": meta})["error"]["code"] == -32602
        assert agent.asks("resources/read", {"uri": 7})["error"]["code"] == -32602
    assert list(tmp_path.iterdir()) == []


def test_recorded_runs_are_found_by_an_agent(tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    with serving(tmp_path) as agent:
        assert agent.asks("resources/list")["result"]["resources"] == []
        assert agent.asks("resources/read", {"uri": "ctx://executions"})["error"]["code"] == -32002
        (tmp_path / "log.json").write_bytes(msgspec.json.encode(LOG))
        packed = msgspec.json.decode(ctx("pack", "log.json", "--json", cwd=tmp_path).raw)
        [listed] = agent.asks("resources/list")["result"]["resources"]
        kind, text = read(agent, listed["uri"])
        listing = msgspec.json.decode(text)
        assert (listed["uri"], kind, listing["more"]) == ("ctx://executions", "application/json", False)
        rows = {row["ref"]: row for row in listing["executions"]}
        assert list(rows) == [packed["ref"]]
        assert (rows[packed["ref"]]["model"], rows[packed["ref"]]["steps"]) == ("m-1", 0)
        kind, text = read(agent, rows[packed["ref"]]["uri"])
        manifest = msgspec.json.decode(text)
        assert manifest["model"]["identifier"] == "m-1"
        assert packed["ref"].endswith(manifest["hash"].removeprefix("sha256:"))


def test_a_manifest_that_is_damaged_or_unknown_is_told(tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    (tmp_path / "log.json").write_bytes(msgspec.json.encode(LOG))
    digest = msgspec.json.decode(ctx("pack", "log.json", "--json", cwd=tmp_path).raw)["ref"].removeprefix("ctx://")
    path = tmp_path / ".ctx" / "objects" / digest[:2] / digest[2:]
    path.chmod(0o644)
    path.write_bytes(b"{}")
    with serving(tmp_path) as agent:
        for name, number in ((digest, -32603), ("0" * 64, -32002), ("xyz", -32002)):
            error = agent.asks("resources/read", {"uri": f"ctx://executions/{name}"})["error"]
            assert error["code"] == number
        assert agent.asks("ping")["result"] == {}


def test_what_a_pack_is_called_is_one_short_line_of_what_is_there(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        title = "a\nb\x1b[31mc\u202ed" + "e" * 10_000
        agent.does("write", document={"sections": [], "name": "log\nin\x1b\u202e", "title": title})
        agent.does("write", document={"sections": [], "title": " \n "})
        untitled, named = agent.asks("resources/list")["result"]["resources"]
        assert named["name"] == r"log in\x1b\u202e"
        assert named["title"].startswith(r"a b\x1b[31mc\u202edee")
        assert len(named["title"]) == 140
        assert (untitled["name"], untitled["title"]) == (untitled["uri"].removeprefix("ctx://handoff/"), "Untitled")


@pytest.mark.parametrize(("content", "code"), [(None, "catalog_missing"), (b"junk" * 2000, "catalog_corrupt")])
def test_a_store_that_cannot_be_used_is_told_with_the_way_out_and_tried_again(
    tmp_path: Path, content: bytes | None, code: str
) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    catalog = tmp_path / ".ctx" / "catalog.db"
    original = catalog.read_bytes()
    catalog.unlink()
    if content is not None:
        catalog.write_bytes(content)
    with serving(tmp_path) as agent:
        for method, params in (("resources/list", {}), ("resources/read", {"uri": "ctx://handoff/pk_zzzzzzzz"})):
            error = agent.asks(method, params)["error"]
            assert (error["code"], error["data"]["reason"]) == (-32603, code)
            assert "ctx fsck" in error["data"]["hint"]
            assert error["data"]["hint"] in error["message"]
        catalog.write_bytes(original)
        assert agent.asks("resources/list")["result"]["resources"] == []


def test_the_store_is_free_for_others_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    with serving(tmp_path) as agent:
        pack = agent.does("write", document={"sections": []})
        assert ctx("fsck", "--rebuild", cwd=tmp_path).status == 0  # needs the store for itself
        assert agent.does("get", id=pack["id"])["revision"] == 1
