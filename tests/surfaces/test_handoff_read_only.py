"""Handoff packs in folders that cannot be written, or only partly read: readable packs are served."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contextplane.app.handoff.session import ProcessIds, open_handoffs
from contextplane.app.settings import HandoffSettings, Settings
from contextplane.model.handoff import HandoffDocument
from tests.surfaces.agents import says
from tests.surfaces.commands import Result, ctx_as_nobody, public_folder
from tests.unit.handoff.reference_root import ReferencePacks

ONE, TWO = "pk_aaaaaaaa", "pk_bbbbbbbb"


@pytest.fixture
def folder() -> Iterator[Path]:
    with public_folder() as place:
        yield place
        for path in (place, *place.rglob("*")):
            path.chmod(0o755)


def sealed(folder: Path) -> None:
    """Make a folder and everything in it read-only."""
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


def handoff(folder: Path, *args: str) -> Result:
    return ctx_as_nobody("handoff", *args, cwd=folder, env={"CONTEXT_PACK_ROOT": str(folder)})


def listed(result: Result) -> list[str]:
    assert result.status == 0, result.err
    return sorted(pack["id"] for pack in msgspec.json.decode(result.raw)["packs"])


def call_results(folder: Path, *calls: dict[str, object]) -> list[dict[str, Any]]:
    """The results of tool calls, each `input` unless it reads."""
    lines = [
        says("tools/call", {"name": "output" if call["action"] == "read" else "input", "arguments": call})
        for call in calls
    ]
    hello = says("initialize", {"protocolVersion": "2025-06-18"})
    result = ctx_as_nobody("mcp", cwd=folder, env={"CONTEXT_PACK_ROOT": str(folder)}, input=hello + b"".join(lines))
    assert result.status == 0, result.err
    return [msgspec.json.decode(line)["result"] for line in result.raw.splitlines()[1:]]


def test_the_packs_of_a_read_only_reference_root_can_be_read_without_any_store(folder: Path) -> None:
    there = ReferencePacks(folder)
    there.write(ONE, name="plan")
    there.write(TWO, brief="x" * 200_000)
    sealed(folder)
    document: dict[str, object] = {"sections": []}
    refused: tuple[dict[str, object], ...] = (
        {"action": "write", "document": document},
        {"action": "write", "document": document, "id": ONE, "expected_revision": 3},
        {"action": "ttl", "id": ONE, "expected_revision": 3, "ttl_minutes": 5},
        {"action": "delete", "id": ONE},
    )
    answers = call_results(folder, *refused, {"action": "read", "name": "plan"}, {"action": "get", "id": TWO})
    for answer in answers[:4]:
        assert answer["isError"]
        assert "not writable" in answer["content"][0]["text"]
    assert "From there" in answers[4]["content"][0]["text"]
    assert answers[5]["structuredContent"]["payload"]["revision"] == 3
    assert listed(handoff(folder, "list", "--json")) == [ONE, TWO]
    assert not (folder / ".ctx").exists()


def test_a_read_only_store_shows_its_packs_and_the_new_ones_beside_it(folder: Path) -> None:
    there = ReferencePacks(folder)
    with open_handoffs(Settings(cwd=str(folder), handoff=HandoffSettings(root=str(folder)))) as session:
        mine = session.repository.write(HandoffDocument(sections=(), name="mine")).pack
    there.write(ONE, name="plan")
    sealed(folder)
    assert listed(handoff(folder, "list", "--json")) == sorted([ONE, mine.id])
    for answer in call_results(folder, {"action": "read", "name": "mine"}, {"action": "read", "name": "plan"}):
        assert "isError" not in answer


def test_a_page_token_of_such_a_place_is_good_for_the_next_call() -> None:
    assert ProcessIds().secret() == ProcessIds().secret()


def test_a_folder_of_packs_that_cannot_be_listed_is_reported_and_everything_else_works(folder: Path) -> None:
    there = ReferencePacks(folder)
    there.write(ONE)
    there.folder.chmod(0)
    folder.chmod(0o777)
    assert listed(handoff(folder, "list", "--json")) == []
    with open_handoffs(Settings(cwd=str(folder), handoff=HandoffSettings(root=str(folder)))) as session:
        mine = session.create_store().write(HandoffDocument(sections=(), name="mine")).pack
    for path in (folder / ".ctx", *(folder / ".ctx").rglob("*")):
        path.chmod(0o777)
    for _ in range(2):
        result = handoff(folder, "list")
        assert (result.status, mine.id in result.out) == (0, True)
        assert f"check the permissions of {there.folder}" in result.out + result.err
    there.folder.chmod(0o755)
    os.utime(there.folder, (1, 1))
    assert listed(handoff(folder, "list", "--json")) == sorted([ONE, mine.id])
