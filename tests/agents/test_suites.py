"""The suites that MCP publishes on npm: every scenario that applies to our server passes; the others say why not.

The conformance suite speaks HTTP, so a bridge of ours is between the two (`http_bridge.py`).
"""

import json
import re
from pathlib import Path

import pytest

from tests.agents.http_bridge import serve_over_http
from tests.agents.programs import INSTALLED, make_world, node, program
from tests.surfaces.commands import COMMAND

pytestmark = pytest.mark.skipif(INSTALLED is None, reason="make agents installs the suites")

NOT_OURS = {
    "it calls tools or reads resources that only the example server of the suite has": (
        *("tools-call-.*", "json-schema-2020-12", "resources-read-.*", "resources-templates-read", "elicitation-.*"),
        "input-required-result-.*",
    ),
    "we have no prompts, log levels, completions or subscriptions, and announce none": (
        *("prompts-.*", "logging-set-level", "completion-complete", "resources-(un)?subscribe"),
    ),
    "we do not announce the extension": ("tasks-.*",),
    "it tests HTTP, which is the bridge's": ("dns-rebinding-protection", "http-.*"),
}
"""Scenarios that do not apply, by reason, as patterns of their names."""

CHECKS_NOT_OURS = {
    "server-stateless": "sep-2575-.*http-.*"  # the status of an HTTP answer
    "|sep-2575-server-rejects-undeclared-capability|sep-2575-server-no-log-without-loglevel",  # tools of the example
    "caching": "sep-2549-prompts-list-caching-hints",  # we have no prompts
}
"""Checks of scenarios that do apply which do not."""

_HANDSHAKE = {"ping", "resources-list", "server-initialize", "server-session-lifecycle", "tools-list"}
APPLICABLE = {
    "2025-06-18": _HANDSHAKE,
    "2025-11-25": _HANDSHAKE | {"server-sse-multiple-streams"},
    "2026-07-28": {
        *("caching", "resources-list", "sep-2164-resource-not-found", "server-sse-multiple-streams"),
        *("server-stateless", "tools-list"),
    },
}
"""The scenarios of which at least one check applies, by version of the protocol."""


def is_ours(scenario: str) -> bool:
    return not any(re.fullmatch(pattern, scenario) for patterns in NOT_OURS.values() for pattern in patterns)


@pytest.mark.parametrize("version", sorted(APPLICABLE))
def test_every_conformance_scenario_that_applies_passes(tmp_path: Path, version: str) -> None:
    world = make_world(tmp_path)
    world.ctx("handoff", "write", str(_pack(tmp_path)))
    with serve_over_http(world) as address:
        args = ("server", "--url", address, "--suite", "all", "--spec-version", version, "--timeout", "10000")
        world.run(node(), program("conformance"), *args, "--output-dir", str(tmp_path / "results"))
    passed, failed = set[str](), list[str]()
    for file in sorted((tmp_path / "results").rglob("checks.json")):
        scenario = re.sub(r"^server-(.*?)-\d{4}-\d\d-\d\dT.*$", r"\1", file.parent.name)
        exempt = CHECKS_NOT_OURS.get(scenario, "none")
        for check in json.loads(file.read_bytes()):
            is_exempt = check["id"] != "wire-schema-valid" and (
                not is_ours(scenario) or re.fullmatch(exempt, check["id"]) is not None
            )
            if check["status"] == "FAILURE" and not is_exempt:
                failed.append(f"{scenario}: {check['id']}: {check.get('errorMessage')}")
            elif check["status"] == "SUCCESS" and is_ours(scenario):
                passed.add(scenario)
    assert failed == []
    assert passed == APPLICABLE[version]


def test_the_inspector_finds_no_schema_that_a_client_may_refuse(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    result = world.run(node(), program("mcp-inspector"), "--cli", COMMAND, "mcp", "--method", "tools/list", "--strict")
    assert (result.returncode, result.stderr) == (0, "")
    assert [tool["name"] for tool in json.loads(result.stdout)["tools"]] == ["input", "output"]


SDKS = {
    "2024": ("sdk-2024/dist/client/index.js", "sdk-2024/dist/client/stdio.js"),
    "2025": ("sdk-2025/dist/esm/client/index.js", "sdk-2025/dist/esm/client/stdio.js"),
    "2026": ("@modelcontextprotocol/client/dist/index.mjs", "@modelcontextprotocol/client/dist/stdio.mjs"),
}
"""The modules of the TypeScript SDK, of three years."""


@pytest.mark.parametrize("year", sorted(SDKS))
def test_the_typescript_sdk_of_three_years_writes_and_reads(tmp_path: Path, year: str) -> None:
    assert INSTALLED is not None
    world = make_world(tmp_path)
    modules = [str(INSTALLED / module) for module in SDKS[year]]
    result = world.run(node(), str(Path(__file__).with_name("sdk_client.mjs")), *modules, COMMAND, "mcp")
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    assert (seen["tools"], seen["server"]) == (["input", "output"], "context-pack")
    assert '"revision":1' in seen["written"].replace(" ", "")
    assert "From an SDK" in seen["page"]
    assert seen["refused"][0] is True
    assert "not_found" in seen["refused"][1]
    assert len(seen["resources"]) >= 1


def _pack(folder: Path) -> Path:
    path = folder / "pack.json"
    path.write_text(json.dumps({"name": "login-bug", "title": "Login", "sections": []}), encoding="utf-8")
    return path
