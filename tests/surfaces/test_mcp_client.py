"""The server and the official client: they understand each other, with the handshake and without it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, TextContent, TextResourceContents

from contextplane import __version__
from tests.patience import PATIENCE
from tests.surfaces.agents import DOCUMENT, SERVER, environment, sources

MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


def with_client(folder: Path, mode: str, act: Callable[[Client], Awaitable[None]]) -> None:
    """Run an action with a client of a server in this folder."""

    async def run() -> None:
        async with connected(folder, mode) as client:
            await act(client)

    asyncio.run(run())


@asynccontextmanager
async def connected(folder: Path, mode: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(command=SERVER, cwd=folder, env=environment())
    async with Client(server, mode=mode, read_timeout_seconds=PATIENCE) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def payload(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return dict(result.structured_content["payload"])


@pytest.mark.parametrize("mode", MODES)
def test_client_and_server_agree_on_a_version_and_on_what_there_is(tmp_path: Path, mode: str) -> None:
    async def act(client: Client) -> None:
        assert client.protocol_version == MODES[mode]
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["input", "output"]
        if mode == "legacy":
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("context-pack", __version__)
        if mode != "2026-07-28":  # the capabilities were asked for
            capabilities = client.server_capabilities
            assert capabilities.tools is not None
            assert capabilities.resources is not None
            assert not capabilities.tools.list_changed
            assert capabilities.prompts is None
            assert "verdict" in (client.instructions or "")

    with_client(tmp_path, mode, act)


@pytest.mark.parametrize("mode", MODES)
def test_every_action_of_both_tools_works(tmp_path: Path, mode: str) -> None:
    async def act(client: Client) -> None:
        pack = payload(await client.call_tool("input", {"action": "write", "document": DOCUMENT}))
        assert payload(await client.call_tool("input", {"action": "list"}))["total"] == 1
        got = payload(await client.call_tool("input", {"action": "get", "id": pack["id"]}))
        assert got["sections"] == pack["sections"]
        arguments = {"action": "write", "id": pack["id"], "expected_revision": 1, "document": got}
        assert payload(await client.call_tool("input", arguments))["revision"] == 2
        arguments = {"action": "ttl", "id": pack["id"], "expected_revision": 2, "extend_minutes": 5}
        assert payload(await client.call_tool("input", arguments))["revision"] == 3
        assert pack["id"] in text_of(await client.call_tool("output", {"action": "list"}))
        page = text_of(await client.call_tool("output", {"action": "read", "id": pack["id"]}))
        assert page.startswith("[LEGEND]\n# Context pack: Login bug")
        assert payload(await client.call_tool("input", {"action": "delete", "id": pack["id"]}))["deleted"] is True
        refused = await client.call_tool("input", {"action": "get", "id": pack["id"]})
        assert refused.is_error
        assert isinstance(refused.structured_content, dict)
        assert refused.structured_content["code"] == "not_found"

    with_client(sources(tmp_path), mode, act)


@pytest.mark.parametrize("mode", MODES)
def test_packs_are_resources(tmp_path: Path, mode: str) -> None:
    async def act(client: Client) -> None:
        pack = payload(await client.call_tool("input", {"action": "write", "document": DOCUMENT}))
        [listed] = (await client.list_resources()).resources
        assert (str(listed.uri), listed.title) == (f"ctx://handoff/{pack['id']}", "Login bug")
        [contents] = (await client.read_resource(f"ctx://handoff/{pack['id']}")).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.mime_type == "text/markdown"
        assert "- profile: reviewer" in contents.text
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["ctx://handoff/{id}", "ctx://executions/{hash}"]
        with pytest.raises(MCPError):
            await client.read_resource("ctx://handoff/pk_zzzzzzzz")

    with_client(sources(tmp_path), mode, act)


def test_an_unknown_tool_is_an_error_of_the_protocol(tmp_path: Path) -> None:
    async def act(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.call_tool("inputs", {})

    with_client(tmp_path, "legacy", act)
