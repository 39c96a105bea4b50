"""The calls that the contract shows, letter by letter, and every old call of the migration map."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contextplane.testing.proofs import proves
from tests.surfaces.agents import Agent
from tests.surfaces.handoffs import KNOWN, Place, content, later, legend

COMPACT = '{"name": "output", "arguments": {"action": "read", "id": "pk_abcd2345"}}'
REVIEWER = '{"name": "output", "arguments": {"action": "read", "id": "pk_abcd2345", "profile": "reviewer"}}'
EXECUTOR = '{"name": "output", "arguments": {"action": "read", "id": "pk_abcd2345", "profile": "executor"}}'
CONTINUED = (
    '{"name": "output", "arguments": {"action": "read", "id": "pk_abcd2345", '
    '"page_token": "<next_page_token-from-legend>"}}'
)
EXPIRED = '{"name": "output", "arguments": {"action": "list", "freshness": "expired"}}'
FILTERED = '{"name": "output", "arguments": {"action": "read", "id": "pk_abcd2345", "contains": "TODO"}}'
NEW = (
    '{"name": "output", "arguments": {"action": "read", "id": "pk_abcd2345", "profile": "reviewer", '
    '"page_token": "<page_token>", "contains": "TODO"}}'
)
OLD = '{ "action":"get", "id":"pk_abcd2345", "mode":"full", "cursor":"<cursor>", "match":"TODO" }'


def reference_sections() -> list[dict[str, Any]]:
    refs = [
        {
            "key": f"step-{n}",
            "path": "src/auth.py",
            "lines": {"start": n, "end": n},
            "title": None,
            "why": "todo: check the expiry" if n % 2 else None,
            "group": None,
        }
        for n in range(1, 21)
    ]
    parts = {"description": "The check.", "refs": [], "diagrams": []}
    return [
        {"key": "scope", "title": "Scope", **parts},
        {"key": "findings", "title": "Findings", **parts, "refs": refs},
        {"key": "qa", "title": "QA", **parts, "description": "verdict: pass"},
    ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder with the pack of the examples, and one that expired a minute ago."""
    place = Place(tmp_path)
    now, there = place.now(), place.reference()
    there.write(KNOWN, name="plan", sections=reference_sections(), status="finalized")
    there.write("pk_expired2", title="Too late", expires_at=later(now, -60))
    return place


@pytest.fixture
def agent(place: Place) -> Iterator[Agent]:
    with place.serving() as agent:
        yield agent


def sent(agent: Agent, params: str) -> str:
    """The text that answers such a call."""
    agent.send(b'{"jsonrpc":"2.0","id":"example","method":"tools/call","params":%b}\n' % params.encode())
    answer = agent.receive()
    assert answer["id"] == "example"
    assert "isError" not in answer["result"], answer
    return str(answer["result"]["content"][0]["text"])


def arguments(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])


# --- the examples of reading ------------------------------------------------------------------------------------------


@proves(
    "handoff-pack:example:compact-default-read",
    "handoff-pack:migration-compact:bounded-default",
    "handoff-pack:migration-profiles:read-by-id",
)
def test_a_read_by_id_alone_is_the_compact_bounded_page(agent: Agent) -> None:
    page = sent(agent, COMPACT)
    head = legend(page)
    assert (head["profile"], head["mode"], head["limit"], head["chunks_returned"]) == (
        "orchestrator",
        "compact",
        "6",
        "6",
    )
    assert (head["has_more"], head["chunks_total"], head["selected_by"]) == ("true", "22", "exact_id")
    assert content(page).lstrip().startswith("## Handoff summary [handoff]")
    assert "```" not in page


@proves(
    "handoff-pack:example:reviewer-read",
    "handoff-pack:migration-compact:reviewer-drill-down-stays",
    "handoff-pack:migration-profiles:read-with-reviewer",
)
def test_a_reviewer_gets_everything_with_the_code(agent: Agent) -> None:
    page = sent(agent, REVIEWER)
    assert "has_more" not in legend(page)
    for n in range(1, 21):
        assert f"```python\n{n:4}: def step_{n}(token): return {n}\n```\n" in page
    assert "The check." in page
    assert "verdict: pass" in page


@proves("handoff-pack:example:executor-read", "handoff-pack:migration-profiles:action-read-with-profiles")
def test_an_executor_gets_a_larger_compact_page(agent: Agent) -> None:
    page = sent(agent, EXECUTOR)
    assert (legend(page)["mode"], legend(page)["limit"], legend(page)["chunks_returned"]) == ("compact", "12", "12")
    assert "```" not in page
    assert legend(sent(agent, COMPACT))["limit"] == "6"
    assert "mode" not in legend(sent(agent, REVIEWER))


@proves(
    "handoff-pack:example:continue-paging",
    "handoff-pack:migration-profiles:read-with-page-token",
    "handoff-pack:migration-profiles:page-token-replaces-cursor",
)
def test_page_tokens_lead_through_all_of_it_once(agent: Agent) -> None:
    pages = [sent(agent, COMPACT)]
    while (token := legend(pages[-1])["next_page_token"]) != "null":
        assert len(token) < 60
        pages.append(sent(agent, CONTINUED.replace("<next_page_token-from-legend>", token)))
    assert [legend(page)["offset"] for page in pages] == ["0", "6", "12", "18"]
    assert [legend(page)["has_more"] for page in pages] == ["true", "true", "true", "false"]
    headings = [line for page in pages for line in page.splitlines() if line.startswith("#### ")]
    assert headings == [f"#### step-{n} [findings]" for n in range(1, 21)]
    error = agent.fails("output", action="read", id=KNOWN, cursor=token)
    assert error["details"]["supported_field"] == "page_token"


@proves("handoff-pack:example:list-expired")
def test_only_the_expired_packs_are_listed_when_asked_for(agent: Agent) -> None:
    listed = sent(agent, EXPIRED)
    assert "pk_expired2" in listed
    assert KNOWN not in listed
    assert KNOWN in sent(agent, '{"name": "output", "arguments": { "action":"list" }}')


@proves("handoff-pack:example:filter-by-substring")
def test_only_chunks_with_the_text_are_shown_whatever_its_case(agent: Agent) -> None:
    page = sent(agent, FILTERED)
    assert (legend(page)["contains"], legend(page)["chunks_total"]) == ("TODO", "10")
    headings = [line for line in page.splitlines() if line.startswith("#### ")]
    assert headings == [f"#### step-{n} [findings]" for n in (1, 3, 5, 7, 9, 11)]


# --- the migration map ------------------------------------------------------------------------------------------------


@proves("handoff-pack:example:legacy-get-maps-to-read", "handoff-pack:migration-profiles:full-legacy-call")
def test_the_whole_legacy_call_is_answered_with_its_new_form_and_that_one_works(agent: Agent) -> None:
    error = agent.fails("output", **arguments(OLD))
    assert (error["code"], error["details"]["requested_action"]) == ("invalid_data", "get")
    new = error["details"]["replacement"]
    assert new.keys() == arguments(NEW)["arguments"].keys()
    assert (new["action"], new["profile"], new["contains"]) == ("read", "reviewer", "TODO")
    token = legend(agent.reads(action="read", id=KNOWN, profile="reviewer", contains="TODO", limit=4))[
        "next_page_token"
    ]
    page = sent(agent, NEW.replace("<page_token>", token))
    assert (legend(page)["profile"], legend(page)["contains"], legend(page)["offset"]) == ("reviewer", "TODO", "4")


@proves("handoff-pack:migration-compact:get-becomes-read", case="get")
@proves("handoff-pack:migration-compact:mode-full-becomes-reviewer", case="full")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"action":"get", "id":"pk_abcd2345"}', '{"action":"read", "id":"pk_abcd2345"}'),
        (
            '{"action":"get", "id":"pk_abcd2345", "mode":"full"}',
            '{"action":"read", "id":"pk_abcd2345", "profile":"reviewer"}',
        ),
        ('{"action":"get", "name":"plan"}', '{"action":"read", "name":"plan"}'),
        (
            '{"action":"get", "name":"plan", "mode":"compact", "limit": 3}',
            '{"action":"read", "name":"plan", "profile":"orchestrator", "limit": 3}',
        ),
        (
            '{"action":"read", "id":"pk_abcd2345", "match":"TODO"}',
            '{"action":"read", "id":"pk_abcd2345", "contains":"TODO"}',
        ),
    ],
    ids=["get", "full", "name", "compact", "match"],
)
def test_an_old_read_is_answered_with_the_call_that_replaces_it(agent: Agent, old: str, new: str) -> None:
    error = agent.fails("output", **arguments(old))
    assert error["details"]["replacement"] == arguments(new)
    assert legend(agent.reads(**error["details"]["replacement"]))["id"] == KNOWN


@proves(
    "handoff-pack:migration-finalize:required-parts",
    "handoff-pack:migration-finalize:stale-refs-block",
    "handoff-pack:migration-finalize:machine-readable-details",
)
def test_finalizing_is_refused_with_all_that_is_missing_and_stale(place: Place, agent: Agent) -> None:
    document = agent.does("get", id=KNOWN) | {"status": "draft"}
    agent.does("write", id=KNOWN, expected_revision=3, document=document)
    lines = place.code.read_text(encoding="utf-8").splitlines(keepends=True)
    place.code.write_text("".join([*lines[:9], "rewritten\n", *lines[10:19]]), encoding="utf-8")
    scope, findings, qa = document["sections"]
    unfinished = [{**scope, "description": " "}, findings, {**qa, "description": "no verdict yet"}]
    error = agent.fails(
        "input",
        action="write",
        id=KNOWN,
        expected_revision=4,
        document={**document, "status": "finalized", "sections": unfinished},
    )
    assert (error["kind"], error["code"]) == ("invalid_state", "finalize_validation")
    assert error["details"]["missing_sections"] == []
    assert error["details"]["missing_fields"] == ["scope.content", "qa.verdict"]
    stale = {invalid_ref["ref_key"]: invalid_ref for invalid_ref in error["details"]["invalid_refs"]}
    assert stale.keys() == {"step-10", "step-20"}
    assert stale["step-10"].keys() == {
        "section_key",
        "ref_key",
        "path",
        "line_start",
        "line_end",
        "reason",
        "state",
    }
    assert (stale["step-10"]["state"], stale["step-20"]["state"]) == ("changed", "gone")
    error = agent.fails("input", action="write", document={"sections": [], "status": "finalized"})
    assert error["details"]["missing_sections"] == ["scope", "findings", "qa"]
