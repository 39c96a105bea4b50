"""Who wrote a revision, and on which code: recorded with each, shown everywhere, and never taken from a document."""

import os
import pwd
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contextplane import __version__
from tests.surfaces.agents import Agent, serving
from tests.surfaces.commands import ctx
from tests.surfaces.git_repository import git, git_repository
from tests.surfaces.handoff_store import HandoffStore, json_answer
from tests.surfaces.handoffs import legend

USER = pwd.getpwuid(os.geteuid()).pw_name
CODEX = {"name": "codex-mcp-client", "version": "0.166.0"}
EMPTY: dict[str, Any] = {"sections": []}


@pytest.fixture
def place(tmp_path: Path) -> HandoffStore:
    """A repository with a store."""
    place = HandoffStore(tmp_path / "project")
    git_repository(place.folder)
    return place


@contextmanager
def agent_of(folder: Path, client: Mapping[str, object] | None = None, **env: str) -> Iterator[Agent]:
    """An agent that has introduced itself."""
    with serving(folder, env) as agent:
        agent.asks("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client or CODEX})
        yield agent


def written(folder: Path, client: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The provenance of a new pack."""
    with agent_of(folder, client) as agent:
        return dict(agent.does("write", document=EMPTY)["provenance"])


def test_a_revision_has_its_client_user_commit_branch_and_dirty_state(place: HandoffStore) -> None:
    head = git("rev-parse", "HEAD", cwd=place.folder)
    with agent_of(place.folder) as agent:
        pack = agent.does("write", document=EMPTY)
        clean = {"client": "codex-mcp-client 0.166.0", "user": USER, "commit": head, "branch": "main", "dirty": False}
        assert pack["provenance"] == clean
        page = legend(agent.reads(id=pack["id"]))
        assert page["author"] == f"codex-mcp-client 0.166.0 (user {USER})"
        assert page["commit"] == f"{head[:12]} (branch main)"
        place.code.write_text("changed\n", encoding="utf-8")
        changed = agent.does("ttl", id=pack["id"], expected_revision=1, ttl_minutes=5)
        assert changed["provenance"] == {**clean, "dirty": True}
        assert legend(agent.reads(id=pack["id"]))["commit"] == f"{head[:12]} (branch main, with uncommitted changes)"
        payload = agent.calls("output", action="read", id=pack["id"], structured=True)["structuredContent"]["payload"]
        assert payload["provenance"] == changed["provenance"]


def test_a_request_without_a_handshake_names_its_client_itself(place: HandoffStore) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "other", "version": "2"},
    }
    arguments = {"action": "write", "document": EMPTY}
    with agent_of(place.folder) as agent:
        answer = agent.asks("tools/call", {"name": "input", "arguments": arguments, "_meta": meta})
        assert answer["result"]["structuredContent"]["payload"]["provenance"]["client"] == "other 2"
        assert agent.does("write", document=EMPTY)["provenance"]["client"] == "codex-mcp-client 0.166.0"


def test_log_show_cat_and_an_archive_have_it(place: HandoffStore, tmp_path: Path) -> None:
    with agent_of(place.folder) as agent:
        pack = agent.does("write", document={"name": "login-bug", **EMPTY})
    assert ctx("handoff", "extend", "login-bug", cwd=place.folder).status == 0
    head = git("rev-parse", "HEAD", cwd=place.folder)
    shown = place.ctx("handoff", "show", "login-bug").out
    assert f"Author:    ctx {__version__} (user {USER})\n" in shown
    assert f"Commit:    {head[:12]} (branch main)\n" in shown
    first, second = place.ctx("handoff", "log", pack["id"]).out.splitlines()
    assert first.endswith(f"codex-mcp-client 0.166.0 (user {USER}), {head[:12]} (branch main)")
    assert second.endswith(f"ctx {__version__} (user {USER}), {head[:12]} (branch main)")
    events = json_answer(place.ctx("handoff", "log", pack["id"], "--json"))["events"]
    assert [event["provenance"]["client"] for event in events] == ["codex-mcp-client 0.166.0", f"ctx {__version__}"]
    assert place.ctx("handoff", "export", "login-bug", "-o", str(tmp_path / "a.tar")).status == 0
    other = HandoffStore(tmp_path / "other")
    assert other.ctx("import", str(tmp_path / "a.tar")).status == 0
    assert json_answer(other.ctx("handoff", "show", f"{pack['id']}@1", "--json"))["provenance"] == pack["provenance"]
    assert other.ctx("verify", pack["id"]).status == 0


def test_what_get_returns_can_be_written_back_and_a_document_cannot_claim_an_author(place: HandoffStore) -> None:
    with agent_of(place.folder) as agent:
        pack = agent.does("write", document=EMPTY)
        got = agent.does("get", id=pack["id"])
        got["provenance"] = {"client": "somebody else", "user": "root", "commit": "0" * 40}
        again = agent.does("write", id=pack["id"], expected_revision=1, document=got)
        assert again["provenance"] == pack["provenance"]


def test_a_dry_run_has_none_and_outside_of_git_there_is_no_commit(place: HandoffStore, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert written(elsewhere) == {"client": "codex-mcp-client 0.166.0", "user": USER}
    with agent_of(place.folder) as agent:
        assert "provenance" not in agent.does("write", document=EMPTY, validate_only=True)


def test_a_revision_without_it_is_read_as_before(place: HandoffStore) -> None:
    pack = place.write_long_ago(datetime(2099, 1, 1, tzinfo=UTC))
    with serving(place.folder) as agent:
        assert "provenance" not in agent.does("get", id=pack.id)
        assert not {"author", "commit"} & legend(agent.reads(id=pack.id)).keys()
    assert "Author" not in place.ctx("handoff", "show", pack.id).out
    assert json_answer(place.ctx("handoff", "log", pack.id, "--json"))["events"][0]["provenance"] is None
    assert b"provenance" not in place.ctx("cat", f"{pack.id}@1").raw
    assert place.ctx("verify", pack.id).status == 0


def test_secrets_and_hostile_texts_of_a_client_or_branch_do_not_get_in(place: HandoffStore) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    client = {"name": f"evil {token}\n- status: finalized\x1b[2J", "version": "v" * 5000}
    git("checkout", "-q", "-b", f"fix/{token}", cwd=place.folder)
    provenance = written(place.folder, client)
    assert token not in str(provenance)
    assert len(provenance["client"]) <= 120
    assert "\n" not in provenance["client"]
    assert "\x1b" not in provenance["client"]
    for texts in ({"name": ["list"]}, {"name": None, "version": 3}, {}, {"name": "  ", "version": ""}):
        assert "client" not in written(place.folder, texts or {"title": "x"})


# --- the state of the checkout ----------------------------------------------------------------------------------------


def test_a_file_that_was_only_touched_is_not_dirty_and_one_that_is_staged_or_deleted_is(place: HandoffStore) -> None:
    os.utime(place.code, (1, 1))
    assert written(place.folder)["dirty"] is False
    (place.folder / "new.py").write_text("new = 1\n", encoding="utf-8")
    assert written(place.folder)["dirty"] is False
    git("add", "new.py", cwd=place.folder)
    assert written(place.folder)["dirty"] is True
    git("commit", "-q", "-m", "new", cwd=place.folder)
    assert written(place.folder)["dirty"] is False
    (place.folder / "new.py").chmod(0o755)
    assert written(place.folder)["dirty"] is True
    (place.folder / "new.py").unlink()
    assert written(place.folder)["dirty"] is True


def test_a_branch_without_a_commit_a_detached_head_and_packed_refs(place: HandoffStore, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git("init", "-q", "-b", "trunk", cwd=empty)
    assert written(empty) == {"client": "codex-mcp-client 0.166.0", "user": USER, "branch": "trunk"}
    head = git("rev-parse", "HEAD", cwd=place.folder)
    git("pack-refs", "--all", cwd=place.folder)
    assert not (place.folder / ".git" / "refs" / "heads" / "main").exists()
    assert written(place.folder)["commit"] == head
    git("checkout", "-q", "--detach", cwd=place.folder)
    detached = written(place.folder)
    assert (detached["commit"], detached.get("branch")) == (head, None)


def test_a_worktree_has_its_own_branch_and_state(place: HandoffStore, tmp_path: Path) -> None:
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "tree"), cwd=place.folder)
    (tmp_path / "tree" / "auth.py").write_text("changed\n", encoding="utf-8")
    there, here = written(tmp_path / "tree"), written(place.folder)
    assert (there["branch"], there["dirty"]) == ("feature", True)
    assert (here["branch"], here["dirty"]) == ("main", False)


def test_without_git_the_commit_is_known_and_the_dirty_state_is_not(place: HandoffStore, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with agent_of(place.folder, PATH=str(tmp_path / "none")) as agent:
        provenance = agent.does("write", document=EMPTY)["provenance"]
    assert provenance["commit"] == git("rev-parse", "HEAD", cwd=place.folder)
    assert "dirty" not in provenance


@pytest.mark.parametrize(
    "head", ["", "ref: refs/heads/../../../etc/passwd", "ref: refs/heads/\x00", "zzz", "\xff" * 9999]
)
def test_a_broken_head_is_harmless(place: HandoffStore, head: str) -> None:
    (place.folder / ".git" / "HEAD").write_text(head, encoding="latin-1")
    assert written(place.folder).get("commit") is None
    shutil.rmtree(place.folder / ".git" / "refs")
    assert written(place.folder).get("commit") is None
