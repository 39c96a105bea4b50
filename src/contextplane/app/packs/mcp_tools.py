"""Drafts adapters from the MCP servers of a client's configuration: each is asked for its tools.

A tool counts as destructive. Its annotations are claims of the server: they lower the mode only if the author says so.
Values of `env` go to the server and nowhere else.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from contextplane.app.packs.service import ServiceAdapter, ServiceCapability, ServiceDraft, identifier, sentence
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.terms import ApprovalMode

__all__ = ["McpConfigInvalid", "draft_from_mcp"]

_SECONDS = 30.0
_BRIDGE = "name a command that bridges to it, such as npx mcp-remote URL"
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class McpConfigInvalid(ContextPlaneError):
    """A configuration of MCP clients that names no server with tools, or a server without a command."""

    code: ClassVar[str] = "mcp_config_invalid"
    family: ClassVar[Family] = "refused"


def draft_from_mcp(config: Json, *, at: str, trust_hints: bool, seconds: float = _SECONDS) -> ServiceDraft:
    """Start every server that a configuration names, and draft an adapter from its tools."""
    servers = config.get("mcpServers", config.get("servers")) if isinstance(config, dict) else None
    if not isinstance(servers, dict) or not servers:
        hint = '{"mcpServers": {"NAME": {"command": ..., "args": [...]}}}'
        raise McpConfigInvalid("it names no MCP server", at=at, hint=f"write {hint}")
    left_out: list[str] = []
    adapters: list[ServiceAdapter] = []
    for name, server in servers.items():
        place = f"{at}#/mcpServers/{name}"
        if isinstance(server, dict) and "command" not in server and "url" in server:
            left_out.append(
                f"{name}: it is reached over HTTP; name a command that bridges to it, such as npx mcp-remote URL"
            )
            continue
        tools = _tools(server, place, seconds)
        slug = identifier(name.lower(), [adapter.name for adapter in adapters], longest=40)
        capabilities = tuple(_capabilities(tools, name, left_out, trust_hints=trust_hints))
        if capabilities:
            adapters.append(ServiceAdapter(name=slug, type="MCP", capabilities=capabilities))
        else:
            left_out.append(f"{name}: it lists no tool")
    if not adapters:
        raise McpConfigInvalid("no server lists a tool", at=at, hint="; ".join(left_out)[:300])
    name = adapters[0].name if len(adapters) == 1 else "mcp"
    title = f"MCP servers {', '.join(servers)}" if len(servers) > 1 else f"the MCP server {next(iter(servers))}"
    return ServiceDraft(name=name, title=title, adapters=tuple(adapters), left_out=tuple(dict.fromkeys(left_out)))


def _tools(server: object, at: str, seconds: float) -> tuple[dict[str, Any], ...]:
    from contextplane.adapters.mcp_client import list_server_tools
    from contextplane.app.settings import server_environment

    entry = server if isinstance(server, dict) else {}
    command, args, env = entry.get("command"), entry.get("args", []), entry.get("env", {})
    if not isinstance(command, str) or not command:
        raise McpConfigInvalid("it has no command", at=at, hint="write the command that starts it")
    if not isinstance(args, list) or not all(isinstance(text, str) for text in args):
        raise McpConfigInvalid("its args are no list of texts", at=at, hint="write every argument as a text")
    if not isinstance(env, dict) or not all(isinstance(text, str) for text in env.values()):
        raise McpConfigInvalid("its env is no object of texts", at=at, hint="write every value as a text")
    return list_server_tools(at, [command, *args], env={**server_environment(), **env}, seconds=seconds)


def _capabilities(
    tools: tuple[dict[str, Any], ...], server: str, left_out: list[str], *, trust_hints: bool
) -> Iterator[ServiceCapability]:
    names: list[str] = []
    for tool in tools:
        own_name = tool.get("name")
        if not isinstance(own_name, str) or not own_name:
            left_out.append(f"{server}: a tool without a name")
            continue
        name = identifier(own_name, names)
        names.append(name)
        annotations = tool.get("annotations")
        hints = annotations if isinstance(annotations, dict) else {}
        schema = tool.get("inputSchema")
        notes = [f"its name is {own_name[:100]}"] if name != own_name else []
        if not isinstance(schema, dict):
            notes.append("it does not describe its arguments")
        claims = [f"{hint} {str(hints[hint]).lower()}" for hint in _HINTS if isinstance(hints.get(hint), bool)]
        if claims:
            notes.append(f"the server claims {', '.join(claims)}; confirm it before you lower the mode")
        yield ServiceCapability(
            name=name,
            origin=f"tool {own_name[:100]} of {server}",
            approval_mode=_mode(hints) if trust_hints else "destructive",
            description=sentence(tool.get("description"), tool.get("title")),
            input_schema=_plain_schema(schema) if isinstance(schema, dict) else {"type": "object"},
            notes=tuple(notes),
        )


def _mode(hints: dict[str, Any]) -> ApprovalMode:
    """Return the mode that annotations claim. What they leave open is destructive."""
    if hints.get("readOnlyHint") is True:
        return "read_only"
    return "network" if hints.get("destructiveHint") is False else "destructive"


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without its dialect and title, which a pack does not need."""
    return {key: part for key, part in schema.items() if key not in {"$schema", "title"}}
