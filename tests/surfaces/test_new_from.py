"""`ctx new --from`: a pack drafted from a real service is closed, lints, and names what it leaves out."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from contextplane.adapters.mcp_client import (
    McpServerEnded,
    McpServerGarbled,
    McpServerRefused,
    McpServerSilent,
    list_server_tools,
)
from contextplane.errors import ContextPlaneError
from contextplane.mcp.schemas import TOOLS
from tests.spec.manifest import ROOT
from tests.support.cases import cases
from tests.surfaces.commands import COMMAND, ctx
from tests.unit.compiler.case_files import SHOWN

CASES = ROOT / "tests" / "cases" / "openapi"
REFUSED, USAGE, CONFLICT, NOT_FOUND = 10, 2, 14, 13
SECRET = "sk-live-" + "4f9a8b7c6d5e"


def draft(folder: Path, kind: str, source: Path | str, *more: str, name: str = "pack.yaml") -> dict[str, Any]:
    result = ctx("new", name, "--from", kind, str(source), *more, "--json", cwd=folder)
    assert (result.status, result.err) == (0, "")
    answer: dict[str, Any] = json.loads(result.out)
    return answer


def pack_in(folder: Path, name: str = "pack.yaml") -> dict[str, Any]:
    text = (folder / name).read_text(encoding="utf-8")
    value: dict[str, Any] = yaml.safe_load(text)
    return value


def specs(pack: dict[str, Any]) -> dict[str, Any]:
    return {
        name: spec
        for adapter in pack["tooling_layer"]["adapter_registry"]
        for name, spec in adapter["capability_specs"].items()
    }


@cases("source", ["orders.yaml", "awkward.json"])
def test_a_draft_lints_without_errors_and_allows_nothing(source: str, tmp_path: Path) -> None:
    name = source.replace(".json", ".yaml")
    answer = draft(tmp_path, "openapi", CASES / source, name=name)
    assert answer["errors"] == []
    assert any(warning.startswith("intent_never_allowed") for warning in answer["warnings"])
    assert ctx("lint", name, cwd=tmp_path).status == 0
    pack = pack_in(tmp_path, name)
    rules = [rule for bundle in pack["policy_layer"]["policy_bundles"] for rule in bundle["policy_dsl"]["rules"]]
    assert [rule["then"]["allow"] for rule in rules] == [False]
    modes = {name: spec["approval_mode"] for name, spec in specs(pack).items()}
    for permission in pack["tooling_layer"]["permissions"]:
        mode = modes[permission["capability"]]
        assert permission["allow"] is (mode == "read_only")
        assert ("requires_approval_gate" in permission) is (mode == "destructive")


def test_modes_arguments_and_descriptions_come_from_the_description(tmp_path: Path) -> None:
    draft(tmp_path, "openapi", CASES / "orders.yaml")
    capabilities = specs(pack_in(tmp_path))
    assert {name: spec["approval_mode"] for name, spec in capabilities.items()} == {
        "listOrders": "read_only",
        "createOrder": "network",
        "getOrder": "read_only",
        "delete_orders_order_id": "destructive",
    }
    assert capabilities["getOrder"]["description"] == "Look up one order, with its items."
    order_id = {"type": "string", "description": "The id of the order.", "required": True}
    assert capabilities["getOrder"]["arguments"] == {"order_id": order_id}
    assert capabilities["listOrders"]["input_schema"]["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
    }
    body = capabilities["createOrder"]["input_schema"]["properties"]["body"]
    assert body["properties"]["note"] == {"type": ["string", "null"]}
    assert body["properties"]["items"]["items"]["properties"]["amount"] == {"type": "integer", "exclusiveMinimum": 0}
    assert capabilities["createOrder"]["idempotency_header"] == "Idempotency-Key"


def test_what_is_left_out_is_listed_in_the_answer_on_the_screen_and_in_the_file(tmp_path: Path) -> None:
    answer = draft(tmp_path, "openapi", CASES / "awkward.json")
    words = "\n".join(answer["left_out"])
    parts = (
        "webhooks",
        "other.json",
        "Nowhere",
        "Authorization",
        "application/xml",
        "Tree",
        "discriminator",
        "callbacks",
    )
    assert [part for part in (*parts, "TRACE", "octet-stream", "/loop", "/broken") if part not in words] == []
    screen = ctx("new", "pack.yaml", "--from", "openapi", str(CASES / "awkward.json"), cwd=tmp_path).out
    comments = " ".join((tmp_path / "pack.yaml").read_text(encoding="utf-8").replace("\n# ", " ").split())
    for entry in answer["left_out"]:
        assert entry in screen
        assert " ".join(entry.split()) in comments
    assert screen.startswith("Already there: pack.yaml: 3 capabilities.")


def test_awkward_names_and_references_are_taken_over(tmp_path: Path) -> None:
    draft(tmp_path, "openapi", CASES / "awkward.json")
    capabilities = specs(pack_in(tmp_path))
    assert list(capabilities) == ["trees_put_one", "trees_put_one_2", "head_upload"]
    schema = capabilities["trees_put_one"]["input_schema"]
    assert schema["properties"]["query_id"] == {
        "type": "string",
        "enum": ["oak", "fir"],
        "description": "Only this kind.",
    }
    assert schema["properties"]["body"]["properties"]["children"] == {"type": "array", "items": {"type": "object"}}
    assert schema["required"] == ["id"]


def test_references_that_grow_without_bound_are_cut(tmp_path: Path) -> None:
    def level(n: int) -> dict[str, Any]:
        below = {"$ref": f"#/components/schemas/L{n + 1}"}
        return {"type": "object", "properties": {"a": below, "b": below} if n < 39 else {}}

    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/L0"}}}}
    document = {
        "openapi": "3.0.0",
        "paths": {"/": {"post": {"requestBody": body}}, "/small": {"get": {}}},
        "components": {"schemas": {f"L{n}": level(n) for n in range(40)}},
    }
    (tmp_path / "api.json").write_text(json.dumps(document), encoding="utf-8")
    answer = draft(tmp_path, "openapi", "api.json")
    assert [entry for entry in answer["left_out"] if "5,000 parts" in entry] == answer["left_out"][:1]
    assert answer["capabilities"] == 2


@pytest.mark.parametrize("name", ["null", "True", "123", "1e5", "on", "a: b", "x\n  evil: true", "ü", "-"])
def test_no_name_or_text_of_a_service_changes_the_form_of_the_pack(tmp_path: Path, name: str) -> None:
    operation = {
        "operationId": name,
        "summary": f"{name} # \u202e\x85\u2028 {{}}",
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string", "default": name}}],
    }
    document = {"openapi": "3.1.0", "info": {"title": name}, "paths": {f"/{name}": {"get": operation}}}
    (tmp_path / "api.json").write_text(json.dumps(document), encoding="utf-8")
    assert draft(tmp_path, "openapi", "api.json")["capabilities"] == 1
    (spec,) = specs(pack_in(tmp_path)).values()
    assert spec["description"].startswith(" ".join(name.split()))
    assert (
        draft(tmp_path, "openapi", "api.json", name="pack.json")["errors"]
        == draft(tmp_path, "openapi", "api.json")["errors"]
    )
    assert json.loads((tmp_path / "pack.json").read_text(encoding="utf-8")) == pack_in(tmp_path)


@cases(
    "document",
    [{"swagger": "2.0", "paths": {}}, {"openapi": "4.0.0"}, {"openapi": "3.0.0", "paths": {}}, [], {"openapi": 3}],
    ids=json.dumps,
)
def test_what_is_no_description_of_operations_is_refused(document: object, tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(document), encoding="utf-8")
    result = ctx("new", "pack.yaml", "--from", "openapi", "api.json", cwd=tmp_path)
    assert (result.status, "openapi_unusable" in result.err) == (REFUSED, True)
    assert not (tmp_path / "pack.yaml").exists()


def test_the_command_line_is_checked(tmp_path: Path) -> None:
    for args, status in (
        (["--from", "wsdl", "a.xml"], USAGE),
        (["--from", "openapi", "nowhere.yaml"], NOT_FOUND),
        (["--trust-hints"], USAGE),
        (["--from", "openapi", "a.yaml", "--trust-hints"], USAGE),
        (["--from", "openapi", "a.yaml", "--request"], USAGE),
    ):
        assert ctx("new", "pack.yaml", *args, cwd=tmp_path).status == status
    (tmp_path / "pack.yaml").write_text("precious")
    assert ctx("new", "pack.yaml", "--from", "openapi", str(CASES / "orders.yaml"), cwd=tmp_path).status == CONFLICT
    assert (tmp_path / "pack.yaml").read_text() == "precious"


def test_a_draft_surfaces_no_tool(tmp_path: Path) -> None:
    draft(tmp_path, "openapi", CASES / "orders.yaml")
    request = json.loads(json.dumps(SHOWN))
    request["request"]["context_pack_refs"] = ["ctxpack.orders_api@0.1.0"]
    request["request"]["input"]["intent"] = "orders_api.serve"
    for part in ("request", "run_context"):
        request[part]["tenant_id"] = "tenant_example"
        request[part]["agent"] = {"agent_id": "agent"}
    request["run_context"].pop("intent", None)
    request["run_context"]["run_budget"]["total_tokens"] = 20_000
    request["environment"] = {"ontologies": []}
    request["memories"] = request["evidence"] = []
    (tmp_path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    result = ctx("compile", "pack.yaml", "--request", "request.json", "--json", cwd=tmp_path)
    assert (result.err, result.status) == ("", 0)
    compiled = json.loads(result.out)
    assert compiled["policy_decision"]["allowed"] is False
    assert compiled["manifests"]["tool_manifest"] == []


# --- MCP servers ---


def config(folder: Path, **servers: object) -> str:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return "mcp.json"


def our_server() -> dict[str, Any]:
    return {"command": COMMAND, "args": ["mcp"], "env": {"API_TOKEN": SECRET}}


def test_the_tools_of_our_own_server_are_drafted_as_destructive(tmp_path: Path) -> None:
    far = {"url": f"https://user:{SECRET}@far.example/mcp"}
    answer = draft(tmp_path, "mcp", config(tmp_path, handoff=our_server(), far=far))
    assert (answer["capabilities"], answer["errors"]) == (len(TOOLS), [])
    assert answer["left_out"] == [
        "far: it is reached over HTTP; name a command that bridges to it, such as npx mcp-remote URL"
    ]
    text = (tmp_path / "pack.yaml").read_text(encoding="utf-8")
    assert SECRET not in text
    assert "readOnlyHint true" in " ".join(text.replace("\n        # ", " ").split())
    pack = pack_in(tmp_path)
    capabilities = specs(pack)
    assert {name: spec["approval_mode"] for name, spec in capabilities.items()} == dict.fromkeys(
        ("input", "output"), "destructive"
    )
    for tool in TOOLS:
        assert capabilities[tool["name"]]["input_schema"] == tool["inputSchema"]
        assert capabilities[tool["name"]]["description"] == " ".join(tool["description"].split())
    assert [permission["allow"] for permission in pack["tooling_layer"]["permissions"]] == [False, False]


def test_annotations_lower_a_mode_only_if_the_author_says_so(tmp_path: Path) -> None:
    draft(tmp_path, "mcp", config(tmp_path, handoff=our_server()), "--trust-hints")
    modes = {name: spec["approval_mode"] for name, spec in specs(pack_in(tmp_path)).items()}
    assert modes == {"input": "network", "output": "read_only"}


_ANSWER = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m:
        print({}, flush=True)
"""
_SERVERS: dict[str, tuple[str, type[ContextPlaneError]]] = {
    "it ends at once": ("", McpServerEnded),
    "it ends with an error": ("raise SystemExit(3)", McpServerEnded),
    "it is silent": ("import time; time.sleep(60)", McpServerSilent),
    "it writes a log": ('print("starting", flush=True); import time; time.sleep(60)', McpServerGarbled),
    "it writes a list": ('print("[1]", flush=True); import time; time.sleep(60)', McpServerGarbled),
    "it writes bytes": (
        "import sys, time; sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush(); time.sleep(60)",
        McpServerGarbled,
    ),
    "it refuses": (_ANSWER.format('json.dumps({"id": m["id"], "error": {"code": 1}})'), McpServerRefused),
    "it answers nothing": (_ANSWER.format('json.dumps({"id": m["id"], "result": 7})'), McpServerGarbled),
    "it has no tools": (_ANSWER.format('json.dumps({"id": m["id"], "result": {"tools": 7}})'), McpServerGarbled),
    "it never ends": (
        _ANSWER.format('json.dumps({"id": m["id"], "result": {"tools": [], "nextCursor": "again"}})'),
        McpServerGarbled,
    ),
}


@cases("name", _SERVERS)
def test_a_server_that_fails_is_an_error_with_its_code(name: str) -> None:
    program, error = _SERVERS[name]
    with pytest.raises(error):
        list_server_tools("server", [sys.executable, "-c", program], env={}, seconds=1 if "silent" in name else 20)


def test_a_command_that_is_none_is_an_error() -> None:
    for command in (["no-such-program-anywhere"], ["/"], ["a\0b"]):
        with pytest.raises(McpServerEnded):
            list_server_tools("server", command, env={}, seconds=5)


def test_pages_requests_of_the_server_and_notifications_are_understood() -> None:
    program = """
import json, sys
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
answers = []
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        say(method="notifications/message", params={})
        say(id="a", method="ping")
        say(id="b", method="roots/list")
        say(id=m["id"], result={"capabilities": {"tools": {}}})
    elif m.get("method") == "tools/list":
        page = m["params"].get("cursor", "0")
        more = {} if page == "2" else {"nextCursor": str(int(page) + 1)}
        say(id=m["id"], result={"tools": [{"name": f"tool {page} {answers}"}], **more})
    elif "method" not in m:
        answers.append("result" in m)
"""
    tools = list_server_tools("server", [sys.executable, "-c", program], env={}, seconds=20)
    assert [tool["name"] for tool in tools] == [f"tool {page} [True, False]" for page in range(3)]


def test_a_server_gets_its_environment_and_little_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_SECRET", SECRET)
    program = _ANSWER.format(
        'json.dumps({"id": m["id"], "result": {"tools": [{"name": n} for n in sorted(__import__("os").environ)]}})'
    )
    server = {"command": sys.executable, "args": ["-c", program], "env": {"ITS_OWN": SECRET}}
    draft(tmp_path, "mcp", config(tmp_path, odd=server))
    assert "ITS_OWN" in specs(pack_in(tmp_path))
    assert "OUR_SECRET" not in specs(pack_in(tmp_path))


@cases(
    "document",
    [
        {},
        [],
        {"mcpServers": {}},
        {"mcpServers": {"a": 7}},
        {"mcpServers": {"a": {"command": ""}}},
        {"mcpServers": {"a": {"command": "x", "args": "y"}}},
        {"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}},
        {"mcpServers": {"a": {"url": "https://far.example"}}},
    ],
    ids=json.dumps,
)
def test_a_configuration_without_a_server_that_can_be_asked_is_refused(document: object, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps(document), encoding="utf-8")
    result = ctx("new", "pack.yaml", "--from", "mcp", "mcp.json", cwd=tmp_path)
    assert (result.status, "mcp_config_invalid" in result.err) == (REFUSED, True)
    assert not (tmp_path / "pack.yaml").exists()


def test_a_process_that_a_server_leaves_behind_holds_nobody_up() -> None:
    code = (
        "import subprocess, sys, time; "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'], start_new_session=True); "
        "time.sleep(20)"
    )
    began = time.monotonic()
    with pytest.raises(McpServerSilent):
        list_server_tools("s", [sys.executable, "-c", code], env={}, seconds=1.0)
    assert time.monotonic() - began < 10
