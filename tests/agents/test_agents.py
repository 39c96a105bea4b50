"""Real coding agents, connected by `ctx mcp install`, hand over findings: write, read, list, stale ref, conflict.

The model is a script on loopback (`loopback_model.py`); everything else is the agent as people install it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.loopback_model import Call, LoopbackModel, serve_model
from tests.agents.programs import INSTALLED, World, make_world, node, program, write_json

pytestmark = pytest.mark.skipif(INSTALLED is None, reason="make agents installs the agents")

PROMPT = "Hand over your findings."
TITLE = "Login accepts expired tokens"


def document(verdict: str) -> dict[str, Any]:
    ref = {"key": "check", "path": "auth.py", "line_start": 2, "line_end": 3, "why": "the claim is read and not used"}
    return {
        "name": "login-bug",
        "title": TITLE,
        "sections": [
            {"key": "scope", "title": "Scope", "description": "The token check only."},
            {"key": "findings", "title": "Findings", "refs": [ref]},
            {"key": "qa", "title": "QA", "description": f"verdict: {verdict}"},
        ],
    }


def script(world: World) -> tuple[Call, ...]:
    """The turns of the model. Before the second read, somebody changes the code."""

    def change_code() -> None:
        (world.project / "auth.py").write_text("def check(token):\n    raise NotImplementedError\n", encoding="utf-8")

    changed = {"action": "write", "name": "login-bug", "expected_revision": 1}
    return (
        Call("input", {"action": "write", "document": document("fail")}),
        Call("output", {"action": "read", "name": "login-bug"}),
        Call("output", {"action": "list"}),
        Call("output", {"action": "read", "name": "login-bug", "profile": "reviewer"}, before=change_code),
        Call("input", {**changed, "document": document("pass")}),
        Call("input", {**changed, "document": document("unknown")}),
    )


def run_codex(world: World, address: str) -> str:
    (world.home / ".codex").mkdir()
    (world.home / ".codex" / "config.toml").write_text(
        f'model = "model-x"\nmodel_provider = "loopback"\n\n'
        f'[model_providers.loopback]\nname = "loopback"\nbase_url = "{address}/v1"\nwire_api = "responses"\n\n'
        f'[projects."{world.project}"]\ntrust_level = "trusted"\n',
        encoding="utf-8",
    )
    result = world.run(program("codex"), "exec", "--json", PROMPT)
    return result.stdout + result.stderr


def run_gemini(world: World, address: str) -> str:
    write_json(world.home / ".gemini" / "settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    result = world.run(
        *(node(), program("gemini"), "--prompt", PROMPT, "--model", "gemini-2.5-flash", "--approval-mode", "yolo"),
        GEMINI_API_KEY="none",
        GOOGLE_GEMINI_BASE_URL=address,
        GEMINI_CLI_TRUST_WORKSPACE="true",
    )
    return result.stdout + result.stderr


def run_opencode(world: World, address: str) -> str:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{address}/v1", "apiKey": "none"},
        "models": {"model-x": {"tool_call": True}},
    }
    settings = {
        "provider": {"loopback": provider},
        "model": "loopback/model-x",
        "autoupdate": False,
        "share": "disabled",
    }
    write_json(world.home / ".config" / "opencode" / "opencode.json", settings)
    result = world.run(program("opencode"), "run", PROMPT, OPENCODE_DISABLE_MODELS_FETCH="true")
    return result.stdout + result.stderr


@pytest.mark.parametrize(
    ("name", "run"),
    [("codex", run_codex), ("gemini", run_gemini), ("opencode", run_opencode)],
    ids=["codex", "gemini", "opencode"],
)
def test_an_agent_hands_over(tmp_path: Path, name: str, run: Callable[[World, str], str]) -> None:
    world = make_world(tmp_path)
    world.ctx("mcp", "install", name, "--yes")
    model = LoopbackModel(script(world))
    with serve_model(model) as address:
        output = run(world, address)
    assert len(model.results) == len(model.script), (output[-4000:], model.results, len(model.requests))
    written, page, packs, stale, rewritten, conflict = model.results
    assert model.tools == ["input", "output"]
    assert '"revision":1' in written.replace(" ", "")
    assert "auth.py" in page
    assert 'verdict="fail"' in page
    assert TITLE in packs
    assert "stale ref" in stale
    assert '"revision":2' in rewritten.replace(" ", "")
    assert "revision_conflict" in conflict
    assert "current_revision" in conflict
    assert page.count("the claim is read and not used") == 1, "a page is shown once"
    assert "Pass findings to another agent" in str(model.requests[-1]), "the skill is offered"
    assert "login-bug" in world.ctx("handoff", "list")
