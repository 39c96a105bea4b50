"""`ctx mcp install`, `uninstall` and `check`: clients are connected, and their files keep everything else."""

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.clients.client import CLIENTS
from contextplane.app.clients.installation import ClientConfigChanged, apply_plan, plan_installation
from contextplane.app.clients.jsonc import parse_jsonc
from contextplane.app.settings import client_folders
from contextplane.cli.exit import CONFLICT, NOT_FOUND, REFUSED
from tests.surfaces.commands import COMMAND, Result, ctx, ctx_as_nobody, public_folder
from tests.surfaces.sample import one_error_line
from tests.surfaces.test_key_access import typed

NAMES = sorted(CLIENTS)
SKILL = Path(__file__).parents[2] / "docs" / "skills" / "handoff.md"
PROJECT = {
    "claude-code": (".mcp.json", ".claude/skills"),
    "codex": (".codex/config.toml", ".agents/skills"),
    "gemini": (".gemini/settings.json", ".gemini/skills"),
    "cursor": (".cursor/mcp.json", ".cursor/skills"),
    "vscode": (".vscode/mcp.json", ".github/skills"),
    "opencode": ("opencode.json", ".opencode/skills"),
}
USER = {
    "claude-code": (".claude.json", ".claude/skills"),
    "codex": (".codex/config.toml", ".agents/skills"),
    "gemini": (".gemini/settings.json", ".gemini/skills"),
    "cursor": (".cursor/mcp.json", ".cursor/skills"),
    "vscode": (".config/Code/User/mcp.json", ".copilot/skills"),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/skills"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    (tmp_path / "home").mkdir()
    return folder


def run(project: Path, *args: str, **more: str) -> Result:
    """`ctx mcp` in a subfolder of the project, for a user with an empty home and this `ctx` in PATH."""
    unset = dict.fromkeys(("CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"), "")
    env = {
        **unset,
        "HOME": str(project.parent / "home"),
        "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}",
        **more,
    }
    return ctx("mcp", *args, cwd=project / "src", env=env)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def load(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else parse_jsonc(text).decode()


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("name", NAMES)
def test_a_client_is_connected_checked_and_disconnected_without_a_trace(project: Path, name: str, scope: str) -> None:
    base = project if scope == "project" else project.parent / "home"
    config, skills = (PROJECT if scope == "project" else USER)[name]
    result = run(project, "install", name, f"--{scope}", "--yes")
    assert result.status == 0, result.err
    assert set(files(base)) == {config, f"{skills}/handoff/SKILL.md"}
    entry = load(base / config)[CLIENTS[name].container]["context-pack"]
    command = entry["command"] if name == "opencode" else [entry["command"], *entry["args"]]
    assert command == (["ctx", "mcp"] if scope == "project" else [COMMAND, "mcp"])
    assert (base / skills / "handoff" / "SKILL.md").read_bytes().startswith(SKILL.read_bytes())

    before = files(base)
    again = run(project, "install", name, f"--{scope}", "--yes")
    assert (again.status, again.out) == (0, f"{CLIENTS[name].title} is connected already: nothing to change\n")
    assert files(base) == before

    (report,) = json.loads(run(project, "check", name, "--json").out)
    assert (report["client"], report["scope"], report["problem"]) == (name, scope, None)
    assert report["folder"] == str(project)
    assert report["server"].startswith("context-pack ")
    assert [tool["name"] for tool in report["tools"]] == ["input", "output"]
    assert not any(tool["hints"]["destructiveHint"] for tool in report["tools"])
    assert 500 < report["tokens"] < 5000
    assert report["skill"] == "current"

    assert run(project, "uninstall", name, f"--{scope}", "--yes").status == 0
    assert files(base) == {}
    assert [path.name for path in base.iterdir()] == (
        [".git", "src"] if scope == "project" else []
    ) or scope == "project"
    assert {path.name for path in base.iterdir()} <= {".git", "src", ".config"}
    gone = run(project, "uninstall", name, f"--{scope}", "--yes")
    assert (gone.status, gone.out) == (0, f"{CLIENTS[name].title} is not connected: nothing to change\n")


SETTINGS = {
    "claude-code": '{\n  "numStartups": 12345678901234567890,\n  "mcpServers": {"x": {"command": "y"}}\n}\n',
    "codex": '# mine\nmodel = "m"\n\n[mcp_servers.x] # theirs\ncommand = "y"\n\n[profiles.p]\nmodel = "n"\n',
    "gemini": '{\n  // the theme\n  "a": 1,\n  "mcpServers": {\n    "x": {"command": "y"}, // theirs\n  },\n}\n',
    "cursor": '{"mcpServers":{"x":{"command":"y"}}}',
    "vscode": '{\r\n\t"inputs": [],\r\n\t"servers": {\r\n\t\t"x": {"command": "y"}\r\n\t}\r\n}\r\n',
    "opencode": '{\n    "$schema": "https://a/b.json", // url\n    "mcp": {"x": {"command": ["y"]}}\n}',
}


@pytest.mark.parametrize("name", NAMES)
def test_comments_order_ends_of_lines_and_mode_of_an_existing_file_stay(project: Path, name: str) -> None:
    path = project / PROJECT[name][0]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(SETTINGS[name].encode())
    path.chmod(0o600)
    assert run(project, "install", name, "--yes", "--no-skill").status == 0
    text = path.read_bytes().decode()
    left = iter(text)
    assert all(character in left for character in SETTINGS[name])  # every character, in its order
    assert set(load(path)[CLIENTS[name].container]) == {"x", "context-pack"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert run(project, "uninstall", name, "--yes").status == 0
    assert files(project) == {PROJECT[name][0]: SETTINGS[name].encode()}
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_change_is_shown_and_only_a_yes_makes_it(project: Path) -> None:
    one_error_line(run(project, "install", "codex"), 2, "confirmation_needed")
    assert files(project) == {}
    shown = run(project, "install", "codex", "--dry-run")
    assert "+[mcp_servers.context-pack]" in shown.out
    assert "to be created" in shown.out
    assert files(project) == {}
    data = json.loads(run(project, "install", "codex", "--dry-run", "--json").out)
    assert data["applied"] is False
    assert [change["action"] for change in data["changes"]] == ["created", "created"]


def test_at_a_terminal_it_asks(project: Path) -> None:
    screen, status = typed(["mcp", "install", "cursor"], ["n"], cwd=project)
    assert "Connect Cursor? [y/N]" in screen
    assert ("confirmation_declined" in screen, status) == (True, REFUSED)
    assert files(project) == {}
    screen, status = typed(["mcp", "install", "cursor"], ["y"], cwd=project)
    assert ('"context-pack"' in screen, status) == (True, 0)
    assert set(files(project)) == {".cursor/mcp.json", ".cursor/skills/handoff/SKILL.md"}


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("cursor", b"{", "client_config_invalid"),
        ("cursor", b'{"mcpServers": []}', "client_config_invalid"),
        ("cursor", b"[1]", "client_config_invalid"),
        ("cursor", b'{"a": 1, "a": 2}', "client_config_invalid"),
        ("cursor", b"\xff\xfe{\x00}\x00", "client_config_unusable"),
        ("codex", b"a = ", "client_toml_invalid"),
        ("codex", b"mcp_servers = {x = {command = 'y'}}\n", "client_config_unusable"),
        ("codex", b"mcp_servers = 1\n", "client_config_unusable"),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused_and_stays(project: Path, name: str, text: bytes, code: str) -> None:
    path = project / PROJECT[name][0]
    path.parent.mkdir()
    path.write_bytes(text)
    error = one_error_line(run(project, "install", name, "--yes"), REFUSED, code)
    assert str(path) in error
    assert files(project) == {PROJECT[name][0]: text}


def test_links_folders_and_huge_files_are_refused(project: Path) -> None:
    real = project.parent / "dotfiles.json"
    real.write_text("{}")
    (project / ".cursor").mkdir()
    path = project / ".cursor" / "mcp.json"
    path.symlink_to(real)
    assert str(real) in one_error_line(run(project, "install", "cursor", "--yes"), REFUSED, "client_config_unusable")
    assert path.is_symlink()
    path.unlink()
    path.mkdir()
    one_error_line(run(project, "install", "cursor", "--yes"), REFUSED, "client_config_unusable")
    path.rmdir()
    with path.open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    one_error_line(run(project, "install", "cursor", "--yes"), REFUSED, "client_config_unusable")
    (project / ".vscode").symlink_to(project.parent / "home")
    one_error_line(run(project, "install", "vscode", "--yes"), REFUSED, "client_config_unusable")
    assert list((project.parent / "home").iterdir()) == []


def test_a_file_that_may_not_be_read_or_written_is_refused() -> None:
    with public_folder() as folder:
        folder.chmod(0o777)
        (folder / ".git").mkdir()
        (folder / ".mcp.json").write_text("{}")
        (folder / ".mcp.json").chmod(0)
        error = one_error_line(ctx_as_nobody("mcp", "install", "claude-code", "--yes", cwd=folder), 1, "storage_failed")
        assert "cannot be read" in error
        (folder / ".mcp.json").chmod(0o644)
        folder.chmod(0o555)
        result = ctx_as_nobody("mcp", "install", "claude-code", "--yes", "--no-skill", cwd=folder)
        folder.chmod(0o777)
        assert result.status != 0
        assert (folder / ".mcp.json").read_text() == "{}"


def test_another_server_of_the_name_is_not_replaced_and_ours_in_another_form_counts(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers": {"context-pack": {"command": "other"}}}')
    one_error_line(run(project, "install", "claude-code", "--yes"), CONFLICT, "client_config_conflict")
    path.write_text(
        '{"mcpServers": {"context-pack": {"command": "/a/mcp-context-pack", "env": {"CONTEXT_PACK_ROOT": "r"}}}}'
    )
    result = run(project, "install", "claude-code", "--yes", "--no-skill")
    assert "connected already" in result.out


def test_an_edited_skill_page_stays_and_one_of_another_release_is_replaced(project: Path) -> None:
    page = project / ".cursor" / "skills" / "handoff" / "SKILL.md"
    page.parent.mkdir(parents=True)
    page.write_text("mine")
    result = run(project, "install", "cursor", "--yes")
    assert "stays" in result.err
    assert page.read_text() == "mine"
    assert "stays" in run(project, "uninstall", "cursor", "--yes").err
    assert page.read_text() == "mine"
    old = "old page\n"
    mark = hashlib.sha256(old.encode()).hexdigest()
    page.write_text(f"{old}\n<!-- installed by 'ctx mcp install', sha256:{mark} -->\n")
    assert run(project, "install", "cursor", "--yes").status == 0
    assert page.read_bytes().startswith(SKILL.read_bytes())


def test_environment_variables_move_the_folders_of_a_user(project: Path) -> None:
    moved = project.parent / "moved"
    env = {
        name: str(moved / name) for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")
    }
    for name in ("codex", "claude-code", "gemini", "opencode"):
        assert run(project, "install", name, "--user", "--yes", "--no-skill", **env).status == 0
    assert set(files(moved)) == {
        "CODEX_HOME/config.toml",
        "CLAUDE_CONFIG_DIR/.claude.json",
        "GEMINI_CLI_HOME/.gemini/settings.json",
        "XDG_CONFIG_HOME/opencode/opencode.json",
    }


def test_opencode_with_comments_in_its_file_is_edited_there(project: Path) -> None:
    (project / "opencode.jsonc").write_text("{ // mine\n}\n")
    assert run(project, "install", "opencode", "--yes", "--no-skill").status == 0
    assert set(files(project)) == {"opencode.jsonc"}


def test_check_reports_a_server_that_does_not_start_and_goes_on(project: Path) -> None:
    one_error_line(run(project, "check"), NOT_FOUND, "client_not_configured")
    (project / ".mcp.json").write_text('{"mcpServers": {"context-pack": {"command": "/nowhere/ctx", "args": ["mcp"]}}}')
    run(project, "install", "vscode", "--yes")
    result = run(project, "check")
    assert result.status == 1
    assert "failed    mcp_server_ended: cannot be started" in result.out
    assert "vscode (project)" in result.out
    assert "readOnly yes" in result.out


def test_a_file_that_changed_meanwhile_is_not_replaced(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.parent / "home"))
    place = CLIENTS["cursor"].files("project", str(project), client_folders())
    plan = plan_installation(CLIENTS["cursor"], "project", place, skill=False)
    (project / ".cursor").mkdir()
    (project / ".cursor" / "mcp.json").write_text('{"mine": 1}')
    with pytest.raises(ClientConfigChanged):
        apply_plan(plan)
    assert (project / ".cursor" / "mcp.json").read_text() == '{"mine": 1}'


@pytest.mark.parametrize(
    "args",
    [
        ("install",),
        ("uninstall",),
        ("check", "--yes"),
        ("--user",),
        ("install", "emacs"),
        ("install", "codex", "--user", "--project"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(project: Path, args: tuple[str, ...]) -> None:
    one_error_line(run(project, *args), 2, "usage")
