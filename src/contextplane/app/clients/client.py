"""The coding agents that `ctx mcp install` knows: where each keeps its MCP servers and its skills.

Paths are those of the agents' own documentation. A scope is `project`, shared with everybody who works on the project,
or `user`, for all projects of this user on this machine.
"""

import os
import shutil
import sys
from typing import Any, Final, Literal, NamedTuple

from contextplane.app.settings import ClientFolders
from contextplane.model.value import Value

__all__ = [
    "CLIENTS",
    "SERVER",
    "Client",
    "ClientFiles",
    "ClientName",
    "CommandLine",
    "Scope",
    "own_command",
    "project_folder",
]

SERVER: Final = "context-pack"
"""The name of the server in every configuration. Permission rules of users contain it."""

Scope = Literal["project", "user"]
ClientName = Literal["claude-code", "codex", "gemini", "cursor", "vscode", "opencode"]


class ClientFiles(NamedTuple):
    """The files of one client in one scope. `base` is the folder that all of them are in."""

    base: str
    config: str
    skill: str


class CommandLine(NamedTuple):
    """How a client starts the server."""

    command: tuple[str, ...]
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()


class Client(Value, frozen=True):
    """A coding agent: the form of its configuration, and what its model calls a tool."""

    name: ClientName
    title: str
    container: str
    tool_name: str
    note: str = ""
    is_toml: bool = False

    def entry(self, command: tuple[str, ...], scope: Scope) -> dict[str, Any]:
        """Return the entry of our server, as this client wants it."""
        if self.name == "opencode":
            return {"type": "local", "command": list(command), "enabled": True}
        plain = {"command": command[0], "args": list(command[1:])}
        if self.name != "vscode":
            return plain
        folder = {"cwd": "${workspaceFolder}"} if scope == "project" else {}
        return {"type": "stdio", **plain, **folder}

    def command_line(self, entry: object, project: str) -> CommandLine | None:
        """Return what an entry starts; None if that cannot be read from it."""
        if not isinstance(entry, dict):
            return None
        command, args = entry.get("command"), entry.get("args", [])
        parts = command if isinstance(command, list) else [command, *(args if isinstance(args, list) else [None])]
        env = entry.get("environment" if self.name == "opencode" else "env", {})
        if not parts or not all(isinstance(part, str) and part for part in parts) or not isinstance(env, dict):
            return None
        cwd = entry.get("cwd")

        def fill(text: str) -> str:
            return text.replace("${workspaceFolder}", project)

        folder = os.path.join(project, fill(cwd)) if isinstance(cwd, str) else None
        values = tuple((str(name), fill(str(value))) for name, value in env.items())
        return CommandLine(tuple(fill(part) for part in parts), folder, values)

    def files(self, scope: Scope, project: str, folders: ClientFolders) -> ClientFiles:
        """Return the files of this client in a scope."""
        base, config, skills = _project_paths(self, project) if scope == "project" else _user_paths(self, folders)
        return ClientFiles(base, config, os.path.join(skills, "handoff", "SKILL.md"))


CLIENTS: Final[dict[str, Client]] = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            container="mcpServers",
            tool_name="mcp__{server}__{tool}",
            note="Claude Code asks once whether it may use the servers of a project.",
        ),
        Client(
            name="codex",
            title="Codex",
            container="mcp_servers",
            tool_name="mcp__context_pack__{tool}",
            note="Codex reads the configuration of a project only if you trust the project.",
            is_toml=True,
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            container="mcpServers",
            tool_name="mcp_{server}_{tool}",
            note="Gemini CLI reads the settings of a project only if you trust its folder.",
        ),
        Client(name="cursor", title="Cursor", container="mcpServers", tool_name="{tool}"),
        Client(name="vscode", title="VS Code", container="servers", tool_name="{tool}"),
        Client(name="opencode", title="opencode", container="mcp", tool_name="{server}_{tool}"),
    )
}


def _project_paths(client: Client, project: str) -> tuple[str, str, str]:
    config, skills = {
        "claude-code": (".mcp.json", ".claude/skills"),
        "codex": (".codex/config.toml", ".agents/skills"),
        "gemini": (".gemini/settings.json", ".gemini/skills"),
        "cursor": (".cursor/mcp.json", ".cursor/skills"),
        "vscode": (".vscode/mcp.json", ".github/skills"),
        "opencode": (_first_existing(project, "opencode.jsonc", "opencode.json"), ".opencode/skills"),
    }[client.name]
    return project, os.path.join(project, config), os.path.join(project, skills)


def _user_paths(client: Client, folders: ClientFolders) -> tuple[str, str, str]:
    home = folders.home
    code = os.path.join(home, "Library", "Application Support") if folders.is_mac else folders.config
    opencode = os.path.join(folders.config, "opencode")
    config, skills = {
        "claude-code": (
            os.path.join(folders.claude or home, ".claude.json"),
            os.path.join(folders.claude or os.path.join(home, ".claude"), "skills"),
        ),
        "codex": (os.path.join(folders.codex, "config.toml"), os.path.join(home, ".agents", "skills")),
        "gemini": (os.path.join(folders.gemini, "settings.json"), os.path.join(folders.gemini, "skills")),
        "cursor": (os.path.join(home, ".cursor", "mcp.json"), os.path.join(home, ".cursor", "skills")),
        "vscode": (os.path.join(code, "Code", "User", "mcp.json"), os.path.join(home, ".copilot", "skills")),
        "opencode": (
            os.path.join(opencode, _first_existing(opencode, "opencode.jsonc", "opencode.json")),
            os.path.join(opencode, "skills"),
        ),
    }[client.name]
    return home, config, skills


def _first_existing(folder: str, *names: str) -> str:
    """Return the first of these names that exists in a folder, else the last."""
    return next((name for name in names if os.path.lexists(os.path.join(folder, name))), names[-1])


def project_folder(cwd: str) -> str:
    """Return the nearest folder, here or above, that holds a repository or a store; else this folder."""
    folder = os.path.abspath(cwd)
    while True:
        if any(os.path.lexists(os.path.join(folder, name)) for name in (".git", ".ctx")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return os.path.abspath(cwd)
        folder = above


def own_command(scope: Scope) -> tuple[str, ...]:
    """Return the command that starts this server.

    In a project it is `ctx`, which others have elsewhere, if that name starts this program here. A user's own
    configuration has an absolute path: programs with windows have another `PATH` than shells.
    """
    program = os.path.join(os.path.dirname(sys.executable), "ctx")
    known = shutil.which("ctx")
    if known is not None and os.path.realpath(known) == os.path.realpath(program):
        return ("ctx" if scope == "project" else os.path.abspath(known), "mcp")
    if os.access(program, os.X_OK):
        return (program, "mcp")
    return (sys.executable, "-m", "contextplane", "mcp")
