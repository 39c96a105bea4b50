"""The pages about handoff packs are true: the clients' configuration, the migration map, the skill."""

import re
import shlex
import shutil
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from contextplane.app.clients.client import CLIENTS, Client
from contextplane.handoff import errors
from contextplane.mcp.main import _USAGE
from tests.patience import PATIENCE
from tests.surfaces.agents import Agent, environment, says, serving, sources
from tests.surfaces.commands import COMMAND
from tests.surfaces.handoffs import KNOWN, legend
from tests.unit.handoff.reference_root import ReferencePacks

ROOT = Path(__file__).parents[2]
PAGE, SKILL = ROOT / "docs" / "handoff.md", ROOT / "docs" / "skills" / "handoff.md"
OLD_FILE = {"key": "scope", "title": "Scope", "description": "TODO", "refs": [], "diagrams": []}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def configurations() -> list[dict[str, Any]]:
    """Each block of configuration of the page, as its client reads it."""
    text = PAGE.read_text(encoding="utf-8").partition("<!-- clients:")[2].partition("\n## ")[0]
    return [
        *(msgspec.json.decode(block, type=dict[str, Any]) for block in blocks(text, "json")),
        *(tomllib.loads(block) for block in blocks(text, "toml")),
        *(yaml.safe_load(block) for block in blocks(text, "yaml")),
    ]


def server_of(configuration: dict[str, Any]) -> dict[str, Any]:
    """The server of a configuration. Continue lists servers, the other clients name them."""
    (servers,) = (value for value in configuration.values() if isinstance(value, dict | list))
    (server,) = servers if isinstance(servers, list) else servers.values()
    return dict(server)


def command_of(server: dict[str, Any]) -> list[str]:
    """The command line of a server. opencode writes it as one list, Goose names the program cmd."""
    command = server.get("command", server.get("cmd"))
    return list(command) if isinstance(command, list) else [str(command), *server.get("args", [])]


def test_the_page_configures_twelve_clients() -> None:
    assert len(configurations()) == 12


@pytest.mark.parametrize("configuration", configurations(), ids=lambda value: next(iter(value)))
def test_every_configuration_of_the_page_starts_a_server_that_answers(
    tmp_path: Path, configuration: dict[str, Any]
) -> None:
    server = server_of(configuration)
    (tmp_path / "project").mkdir()
    folders = {
        "/path/to/bin": str(Path(COMMAND).parent),
        "/path/to": str(tmp_path),
        "${workspaceFolder}": str(tmp_path),
    }

    def real(text: str, *, quote: bool = False) -> str:
        for placeholder, folder in folders.items():
            text = text.replace(placeholder, shlex.quote(folder) if quote else folder)
        return text

    path = f"{Path(COMMAND).parent}:{environment()['PATH']}"
    command = [real(part, quote=before == "-c") for before, part in pairwise(["", "env", *command_of(server)])]
    env = {name: real(value) for name, value in server.get("env", {}).items()}
    result = subprocess.run(
        command,
        cwd=real(server.get("cwd", str(tmp_path))),
        env=environment({**env, "PATH": path}),
        input=says("initialize", {}),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert b'"name":"context-pack"' in result.stdout, (shlex.join(command), result.stderr)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_the_page_shows_what_install_writes(client: Client) -> None:
    entry = client.entry(("ctx", "mcp"), "project")
    assert {client.container: {"context-pack": entry}} in configurations()


def migrations() -> list[tuple[str, str, str]]:
    text = PAGE.read_text(encoding="utf-8").partition("<!-- migration:")[2]
    return re.findall(r"^\| #\d\d \| (input|output) \| `(.*?)` \| `(.*?)` \|$", text, re.MULTILINE)


def in_place(folder: Path) -> None:
    reference = ReferencePacks(sources(folder) / ".agents" / "mcp" / "context_pack")
    more = [OLD_FILE | {"key": f"more-{n}"} for n in range(9)]
    reference.write(KNOWN, sections=[OLD_FILE, *more])


def with_token(agent: Agent, arguments: dict[str, Any]) -> dict[str, Any]:
    """The call, with a page token of its own query if it needs one."""
    if "page_token" not in arguments:
        return arguments
    query = {name: value for name, value in arguments.items() if name != "page_token"}
    token = legend(agent.reads(**query, limit=4))["next_page_token"]
    return {**arguments, "page_token": token}


@pytest.mark.parametrize(("tool", "old", "new"), migrations())
def test_an_old_call_is_refused_with_its_new_form_and_that_one_works(
    tmp_path: Path, tool: str, old: str, new: str
) -> None:
    in_place(tmp_path)
    before, after = (msgspec.json.decode(call, type=dict[str, Any]) for call in (old, new))
    with serving(tmp_path) as agent:
        error = agent.fails(tool, **before)
        details = error["details"]
        assert error["code"] == "invalid_data"
        assert (after["action"] in details.get("allowed_actions", ())) or tool == "output"
        assert details.get("allowed_ops") == ([] if "op" in before else None)
        if "replacement" in details and tool == "output":
            assert details["replacement"].keys() == after.keys()
        else:
            assert details.get("legacy_mapping", after)["action"] == after["action"]
        assert agent.does("get", id=KNOWN)["revision"] == 3
        result = agent.calls(tool, **with_token(agent, after))
        assert "isError" not in result, result["content"]


def test_the_map_has_every_old_action() -> None:
    sent = {msgspec.json.decode(old, type=dict[str, Any])["action"] for _, old, _ in migrations()}
    edits = {f"{verb}_{what}" for verb in ("upsert", "delete") for what in ("section", "ref", "diagram")}
    assert sent >= {"get", "create", "set_meta", "set_status", "touch_ttl", "delete_pack"} | edits


def test_the_skill_writes_back_all_that_it_got_and_changes_only_the_status() -> None:
    calls = [msgspec.json.decode(block, type=dict[str, Any]) for block in blocks(SKILL.read_text("utf-8"), "json")]
    first, second = (call["document"] for call in calls if call["action"] == "write")
    assert second == {**first, "status": "finalized"}


def test_what_agents_are_told_says_handoff_pack_and_never_context_pack(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        answers = [agent.asks(method) for method in ("initialize", "tools/list", "resources/templates/list")]
    words = msgspec.json.encode(answers).decode().lower()
    assert "handoff pack" in words
    assert "context pack" not in words
    assert "context pack" not in SKILL.read_text(encoding="utf-8").lower()


def test_servers_below_a_store_share_its_packs_and_without_one_each_folder_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()

    def packs_below() -> int:
        with serving(tmp_path / "below") as agent:
            return int(agent.does("list")["total"])

    with serving(tmp_path) as agent:
        agent.does("write", document={"title": "Before", "sections": []})
    assert packs_below() == 0
    shutil.rmtree(tmp_path / ".agents")
    subprocess.run([COMMAND, "init"], cwd=tmp_path, env=environment(), capture_output=True, check=True)
    with serving(tmp_path) as agent:
        agent.does("write", document={"title": "After", "sections": []})
    assert packs_below() == 1


def test_the_calls_of_the_skill_lead_from_a_draft_to_a_finalized_pack(tmp_path: Path) -> None:
    text = SKILL.read_text(encoding="utf-8")
    with serving(sources(tmp_path)) as agent:
        for block in blocks(text, "json"):
            arguments = msgspec.json.decode(block, type=dict[str, Any])
            agent.does(arguments.pop("action"), **arguments)
        [read] = re.findall(r"`output (\{.*?\})`", text)
        page = agent.reads(**msgspec.json.decode(read, type=dict[str, Any]))
        assert (legend(page)["status"], legend(page)["revision"]) == ("finalized", "3")
        assert "- verdict_status: status=finalized" in page
        assert 'verdict="fail"' in page


def test_the_page_tells_every_variable_and_every_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"CONTEXT_PACK_[A-Z_]+", _USAGE)) == set(re.findall(r"`(CONTEXT_PACK_[A-Z_]+)`", text))
    rows = re.findall(r"^\| `([a-z_]+)` \| ([a-z_]+) \|", text.partition("## Errors")[2], re.MULTILINE)
    known = [getattr(errors, name).answer for name in errors.__all__]
    assert set(rows) == {(code, kind) for kind, code in known} | {("io_error", "io_error")}
