"""Refs follow the code: a ref shows the lines it was written about, or is marked as stale."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.agents import Agent, serving

NAMES = [f"f{number}" for number in range(10)]


def code(*names: str) -> str:
    return "".join(
        f"def {name}(user):\n    check_{name}(user)\n    return make_session(user, permanent=True)\n\n"
        for name in names
    )


def whole(path: str, start: int, end: int, **fields: str) -> dict[str, Any]:
    """A document that may be finalized, with one ref."""
    ref = {"key": "ref", "path": path, "line_start": start, "line_end": end, **fields}
    return {
        "sections": [
            {"key": "scope", "title": "Scope", "description": "sessions"},
            {"key": "findings", "title": "Findings", "refs": [ref]},
            {"key": "qa", "title": "QA", "description": "verdict: fail"},
        ]
    }


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    (tmp_path / "f.py").write_text(code(*NAMES), encoding="utf-8")
    with serving(tmp_path) as agent:
        yield agent


def test_the_same_line_of_another_function_is_never_shown_as_that_of_this_one(agent: Agent, tmp_path: Path) -> None:
    final = agent.does("write", document={**whole("f.py", 23, 23), "status": "finalized"})

    def page_after(*names: str) -> str:
        (tmp_path / "f.py").write_text(code(*names), encoding="utf-8")
        return agent.reads(action="read", id=final["id"], profile="reviewer")

    assert "- lines: 23-23 (moved: now 27-27)\n" in page_after("new", *NAMES)
    assert "- lines: 23-23 (moved: now 19-19)\n" in page_after(*NAMES[:2], *NAMES[3:])
    removed = page_after(*NAMES[:5], *NAMES[6:])
    assert "> stale ref: " in removed
    assert "make_session" not in removed
    error = agent.fails(
        "input",
        action="write",
        id=final["id"],
        expected_revision=1,
        document={**whole("f.py", 23, 23), "status": "finalized"},
    )
    assert error["code"] == "finalize_validation"
    assert [invalid_ref["state"] for invalid_ref in error["details"]["invalid_refs"]] == ["gone"]


def test_who_edits_the_reason_of_a_moved_ref_does_not_pin_it_to_other_code(agent: Agent, tmp_path: Path) -> None:
    written = agent.does("write", document=whole("f.py", 23, 23, why="first"))
    (tmp_path / "f.py").write_text(code("new", *NAMES), encoding="utf-8")
    pack = agent.does("get", id=written["id"])
    pack["sections"][1]["refs"][0]["why"] = "second"
    agent.does("write", id=written["id"], expected_revision=1, document=pack)
    page = agent.reads(action="read", id=written["id"], profile="reviewer")
    assert "- lines: 23-23 (moved: now 27-27)\n- why: second\n" in page


def test_a_pack_that_was_never_made_is_not_named_when_it_is_refused(agent: Agent) -> None:
    document = {"status": "finalized", "sections": []}
    for only in (True, False):
        error = agent.fails("input", action="write", document=document, validate_only=only)
        assert error["code"] == "finalize_validation"
        assert "pk_" not in error["message"]


def test_what_the_store_keeps_is_not_shown_by_a_ref_that_leads_there(agent: Agent, tmp_path: Path) -> None:
    first = agent.does("write", document=whole("f.py", 1, 1))
    inside = next(tmp_path.rglob("config.json")).relative_to(tmp_path)
    changed = whole(str(inside), 1, 1)
    agent.does("write", id=first["id"], expected_revision=1, document=changed)
    page = agent.reads(action="read", id=first["id"], profile="reviewer")
    assert "> stale ref: the path leads into a store\n" in page
