"""Starts the server as a client would, and reports what the client and its model will see."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from contextplane.app.clients.client import CLIENTS, SERVER, Client, Scope, project_folder
from contextplane.app.clients.installation import SkillState, read_entry, skill_state
from contextplane.app.settings import client_folders, server_environment
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.tokens import CALIBRATED1
from contextplane.model.value import Value

__all__ = ["ClientNotConfigured", "ClientReport", "ToolReport", "inspect_clients"]

_SCOPES: tuple[Scope, ...] = ("project", "user")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SECONDS = 30.0


class ClientNotConfigured(ContextPlaneError):
    """No configuration of the client has our server."""

    code: ClassVar[str] = "client_not_configured"
    family: ClassVar[Family] = "not_found"


class ToolReport(Value, frozen=True):
    """A tool as a client sees it. `tokens` counts its name, description and schema of arguments."""

    name: str
    shown_as: str
    hints: dict[str, bool]
    tokens: int


class ClientReport(Value, frozen=True):
    """What one configuration starts, and what that answered; `problem` if it did not."""

    client: str
    scope: Scope
    config: str
    command: tuple[str, ...]
    folder: str
    skill: SkillState
    skill_path: str
    note: str
    server: str = ""
    protocol: str = ""
    milliseconds: int = 0
    tools: tuple[ToolReport, ...] = ()
    tokens: int = 0
    counter: str = CALIBRATED1.name
    problem: str | None = None


def inspect_clients(names: Sequence[str], scopes: Sequence[Scope], cwd: str) -> tuple[ClientReport, ...]:
    """Start the configured server of each client in each scope; of every known client without names."""
    project, folders = project_folder(cwd), client_folders()
    reports = []
    for client in [CLIENTS[name] for name in names] or list(CLIENTS.values()):
        for scope in scopes or _SCOPES:
            files = client.files(scope, project, folders)
            line = read_entry(client, files, scope, project)
            if line is not None:
                report = ClientReport(
                    client=client.name,
                    scope=scope,
                    config=files.config,
                    command=line.command,
                    folder=line.cwd or project,
                    skill=skill_state(files, scope),
                    skill_path=files.skill,
                    note=client.note if scope == "project" else "",
                )
                reports.append(_with_answers(report, client, dict(line.env)))
    if not reports:
        which = " or ".join(names) or "any client"
        raise ClientNotConfigured(
            f"no configuration of {which} has the server {SERVER}", at=project, hint="connect it with 'ctx mcp install'"
        )
    return tuple(reports)


def _with_answers(report: ClientReport, client: Client, env: dict[str, str]) -> ClientReport:
    """Start the server of a report, and add what it answers, or why it did not."""
    from contextplane.adapters.mcp_client import read_offer

    started = time.monotonic()
    try:
        offer = read_offer(
            report.config,
            report.command,
            env={**server_environment(), **env},
            seconds=_SECONDS,
            cwd=report.folder,
        )
    except ContextPlaneError as error:
        return msgspec.structs.replace(report, problem=f"{error.code}: {error.message}")
    tools = tuple(_tool_report(client, tool) for tool in offer.tools)
    info = offer.greeting.get("serverInfo")
    server = info if isinstance(info, dict) else {}
    return msgspec.structs.replace(
        report,
        server=f"{server.get('name', '?')} {server.get('version', '?')}",
        protocol=str(offer.greeting.get("protocolVersion", "?")),
        milliseconds=round((time.monotonic() - started) * 1000),
        tools=tools,
        tokens=sum(tool.tokens for tool in tools),
    )


def _tool_report(client: Client, tool: dict[str, Any]) -> ToolReport:
    """Report a tool. A hint that is left out has the default of the protocol, which is the cautious one."""
    annotations = tool.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    defaults = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
    parts = {key: tool.get(key) for key in ("name", "description", "inputSchema")}
    return ToolReport(
        name=str(tool.get("name")),
        shown_as=client.tool_name.format(server=SERVER, tool=tool.get("name")),
        hints={hint: bool(hints.get(hint, defaults[hint])) for hint in _HINTS},
        tokens=CALIBRATED1.count(msgspec.json.encode(parts).decode()),
    )
