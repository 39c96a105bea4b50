"""Calls of earlier versions of the contract: every one is answered with its new form."""

from pathlib import Path
from typing import Any

import pytest

from tests.spec.manifest import proves
from tests.surfaces.agents import DOCUMENT, serving

INPUT = ["list", "get", "write", "ttl", "delete"]
WRITE = {"action": "write", "required_fields": ["document"], "contract": "document_full_replace"}
EDITS = [
    "create",
    "upsert_section",
    "upsert_ref",
    "upsert_diagram",
    "delete_section",
    "delete_ref",
    "set_meta",
    "set_status",
]


@proves(
    "handoff-pack:error:legacy-input-action",
    "handoff-pack:error:details-allowed-sets",
    "handoff-pack:tool:input-actions-are-closed",
    case="*",
)
@pytest.mark.parametrize("action", [*EDITS, "delete_diagram", "touch_ttl", "delete_pack"])
def test_a_legacy_input_action_is_told_its_new_form(tmp_path: Path, action: str) -> None:
    with serving(tmp_path) as agent:
        error = agent.fails("input", action=action, id="pk_abcd2345", section_key="x")
        details = error["details"]
        now = {"touch_ttl": "ttl", "delete_pack": "delete"}.get(action, "write")
        assert f"action='{now}'" in error["message"]
        assert (details["tool"], details["action"], details["requested_action"]) == ("input", "unsupported", action)
        assert details["allowed_actions"] == INPUT
        assert details["legacy_mapping"]["action"] == now
        assert "allowed_ops" not in details
        if now == "write":
            assert details["legacy_mapping"] == WRITE


@proves("handoff-pack:tool:output-actions-are-closed", case="output-write-None")
@pytest.mark.parametrize(
    ("tool", "action", "near"), [("input", "wrtie", "write"), ("output", "raed", "read"), ("output", "write", None)]
)
def test_an_unknown_action_is_told_those_that_there_are(
    tmp_path: Path, tool: str, action: str, near: str | None
) -> None:
    with serving(tmp_path) as agent:
        error = agent.fails(tool, action=action)
        assert (error["details"]["action"], error["details"]["requested_action"]) == ("unknown", action)
        assert error["details"]["allowed_actions"] == (INPUT if tool == "input" else ["list", "read"])
        assert near is None or f"did you mean {near!r}?" in error["message"]


@proves("handoff-pack:tool:write-rejects-legacy-op")
@pytest.mark.parametrize("op", ["upsert_section", "touch_ttl", "unheard-of", None, 7])
def test_an_op_is_told_that_none_is_left(tmp_path: Path, op: object) -> None:
    with serving(tmp_path) as agent:
        for action in ("write", "create"):
            details = agent.fails("input", action=action, op=op, document=DOCUMENT)["details"]
            assert (details["allowed_ops"], details["requested_op"], details["allowed_actions"]) == ([], op, INPUT)
        details = agent.fails("input", action="write", op=op, document=DOCUMENT)["details"]
        assert (details["unsupported_field"], details["supported_field"]) == ("op", "document")
        assert details["legacy_mapping"]["action"] == ("ttl" if op == "touch_ttl" else "write")
        assert agent.does("list")["total"] == 0


@proves(
    "handoff-pack:tool:write-rejects-granular-fields",
    "handoff-pack:error:legacy-field",
    "handoff-pack:error:details-requested-fields",
    case="*",
)
@pytest.mark.parametrize(
    "field",
    [
        *("snapshot", "section_key", "section_title", "section_description", "section_order", "ref_key", "ref_title"),
        *("ref_why", "path", "line_start", "line_end", "group", "diagram_key", "mermaid", "diagram_why", "title"),
        *("brief", "tags", "ttl_minutes", "status"),
    ],
)
def test_a_field_that_changed_one_thing_is_told_where_that_stands_now(tmp_path: Path, field: str) -> None:
    with serving(tmp_path) as agent:
        error = agent.fails("input", action="write", document=DOCUMENT, **{field: "x"})
        details = error["details"]
        assert (details["unsupported_field"], details["supported_field"]) == (field, "document")
        assert (details["requested_field"], details["contract"]) == (field, "document_full_replace")
        assert "action='write'" in error["message"]
        assert agent.does("list")["total"] == 0


@proves("handoff-pack:error:legacy-output-action", "handoff-pack:error:message", case="*")
@proves("handoff-pack:example:legacy-get-maps-to-read", "handoff-pack:migration-compact:get-becomes-read", case="get")
@proves("handoff-pack:migration-compact:mode-full-becomes-reviewer", case="full")
@proves("handoff-pack:migration-profiles:full-legacy-call", case="everything")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"mode": "full"}, {"profile": "reviewer"}),
        ({"mode": "compact"}, {"profile": "orchestrator"}),
        (
            {"mode": "full", "cursor": "<cursor>", "match": "TODO"},
            {"profile": "reviewer", "page_token": "<next_page_token of the LEGEND>", "contains": "TODO"},
        ),
    ],
    ids=["get", "full", "compact", "everything"],
)
def test_the_old_way_to_read_is_told_its_new_form(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    with serving(tmp_path) as agent:
        error = agent.fails("output", action="get", id="pk_abcd2345", **old)
        assert "use action='read'" in error["message"]
        assert error["details"]["allowed_actions"] == ["list", "read"]
        assert error["details"]["legacy_mapping"]["action"] == "read"
        assert error["details"]["replacement"] == {"action": "read", "id": "pk_abcd2345", **new}


@pytest.mark.parametrize(("field", "instead"), [("mode", "profile"), ("cursor", "page_token"), ("match", "contains")])
def test_an_old_field_of_a_read_is_told_its_new_name(tmp_path: Path, field: str, instead: str) -> None:
    with serving(tmp_path) as agent:
        details = agent.fails("output", action="read", id="pk_abcd2345", **{field: "full"})["details"]
        assert (details["unsupported_field"], details["supported_field"]) == (field, instead)
        assert details["supported_fields"] == [instead]


@proves("handoff-pack:tool:output-rejects-format")
@pytest.mark.parametrize("action", ["list", "read", "get"])
def test_there_is_no_format_but_markdown(tmp_path: Path, action: str) -> None:
    with serving(tmp_path) as agent:
        details = agent.fails("output", action=action, format="json")["details"]
        assert (details["field"], details["required_mode"]) == ("format", "markdown")
        assert details["replacement_hint"]
