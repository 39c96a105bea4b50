"""Refusals of the two tools: one shape, and details from which a client can correct its call."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextplane.testing.proofs import proves
from tests.surfaces.agents import Agent
from tests.surfaces.handoffs import KNOWN, Place, finding, legend, section, whole

INVALID: list[tuple[str, dict[str, Any]]] = [
    ("input", {"action": "write"}),
    ("input", {"action": "write", "document": 7}),
    ("input", {"action": "write", "document": {}}),
    ("input", {"action": "write", "document": {"sections": [section("x y")]}}),
    ("input", {"action": "write", "document": {"sections": [section("ab", refs=[finding(1, path="/etc/passwd")])]}}),
    ("input", {"action": "write", "document": {"sections": [section("ab", refs=[finding(0)])]}}),
    ("input", {"action": "write", "document": {"sections": [], "name": "ab"}}),
    ("input", {"action": "write", "document": {"sections": [], "name": KNOWN}}),
    ("input", {"action": "write", "document": {"sections": [], "ttl_minutes": 0}}),
    ("input", {"action": "write", "document": {"sections": [], "status": "done"}}),
    ("input", {"action": "write", "document": {"sections": [], "tags": "a"}}),
    ("input", {"action": "write", "document": whole(), "expected_revision": 1}),
    ("input", {"action": "write", "document": whole(), "id": KNOWN}),
    ("input", {"action": "write", "op": "upsert_ref"}),
    ("input", {"action": "create"}),
    ("input", {"action": "nonsense"}),
    ("input", {"action": "list", "freshness": "old"}),
    ("input", {"action": "list", "status": "done"}),
    ("input", {"action": "list", "limit": -1}),
    ("input", {"action": "get"}),
    ("input", {"action": "delete"}),
    ("input", {"action": "ttl", "id": KNOWN, "expected_revision": 1}),
    ("input", {"action": "ttl", "id": KNOWN, "ttl_minutes": 5}),
    ("output", {"action": "read"}),
    ("output", {"action": "get", "id": KNOWN}),
    ("output", {"action": "read", "id": KNOWN, "profile": "manager"}),
    ("output", {"action": "read", "id": KNOWN, "limit": 0}),
    ("output", {"action": "read", "id": KNOWN, "mode": "full"}),
    ("output", {"action": "list", "format": "json"}),
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def agent(place: Place) -> Iterator[Agent]:
    with place.serving() as agent:
        yield agent


@proves(
    "handoff-pack:error:normalized-and-stable",
    "handoff-pack:error:kind",
    "handoff-pack:error:code",
    "handoff-pack:error:details-are-deterministic",
    "handoff-pack:error:message",
)
def test_every_validation_failure_has_the_same_shape_and_always_the_same_details(agent: Agent) -> None:
    for tool, arguments in INVALID:
        first, second = agent.fails(tool, **arguments), agent.fails(tool, **arguments)
        assert first.keys() == {"error", "kind", "code", "message", "details", "request_id"}, arguments
        assert (first["kind"], first["code"]) == ("validation", "invalid_data"), arguments
        assert first["details"], arguments
        assert first.pop("request_id") != second.pop("request_id")
        assert first == second, arguments
        assert len(first["message"]) < 250
        details = first["details"]
        names = [details.get(name) for name in ("field", "unsupported_field", "requested_action")]
        names += details.get("required_fields", [])
        assert any(str(name) in first["message"] for name in names if name), (first["message"], details)


# --- revisions --------------------------------------------------------------------------------------------------------


@proves(
    "handoff-pack:migration-conflict:expected-revision",
    "handoff-pack:migration-conflict:current-revision",
    "handoff-pack:migration-conflict:last-updated-at",
    "handoff-pack:migration-conflict:changed-section-keys",
    "handoff-pack:migration-conflict:guidance",
    "handoff-pack:migration-conflict:retry-pattern",
)
def test_a_conflict_tells_what_really_changed_and_its_guidance_leads_to_success(agent: Agent) -> None:
    mine = agent.does("write", document=whole(name="plan"))
    theirs = whole()
    theirs["sections"][0]["description"] = "Narrower."
    theirs["sections"].append(section("risks", description="None."))
    other = agent.does("write", name="plan", expected_revision=1, document=theirs)
    document = whole()
    document["sections"][1]["refs"].append(finding(7))
    error = agent.fails("input", action="write", id=mine["id"], expected_revision=1, document=document)
    assert (error["kind"], error["code"]) == ("conflict", "revision_conflict")
    details = error["details"]
    assert (details["expected_revision"], details["current_revision"], details["actual_revision"]) == (1, 2, 2)
    assert details["last_updated_at"] == other["updated_at"].replace("Z", "+00:00")
    assert details["changed_section_keys"] == ["risks", "scope"]
    assert "input get" in details["guidance"]
    latest = agent.does("get", id=mine["id"])
    findings = next(section for section in latest["sections"] if section["key"] == "findings")
    findings["refs"].append(finding(7))
    merged = agent.does("write", id=mine["id"], expected_revision=details["current_revision"], document=latest)
    assert merged["revision"] == 3
    assert [section["key"] for section in merged["sections"]] == ["scope", "findings", "qa", "risks"]


def test_a_conflict_names_at_most_twelve_changed_sections(agent: Agent) -> None:
    many = {"sections": [section(f"part-{n:02}") for n in range(30)]}
    pack = agent.does("write", document={"sections": []})["id"]
    agent.does("write", id=pack, expected_revision=1, document=many)
    error = agent.fails("input", action="write", id=pack, expected_revision=1, document={"sections": []})
    assert error["details"]["changed_section_keys"] == [f"part-{n:02}" for n in range(12)]


def test_a_read_for_another_status_is_an_invalid_state(agent: Agent) -> None:
    pack = agent.does("write", document=whole())["id"]
    error = agent.fails("output", id=pack, status="finalized")
    assert (error["kind"], error["code"]) == ("invalid_state", "invalid_state")
    assert legend(agent.reads(id=pack, status="draft"))["selected_status"] == "draft"


def test_a_name_that_is_taken_is_a_conflict(agent: Agent) -> None:
    pack = agent.does("write", document=whole(name="plan"))["id"]
    error = agent.fails("input", action="write", document=whole(name=" plan "))
    assert (error["kind"], error["code"], error["details"]["taken_by"]) == ("conflict", "conflict", [pack])
