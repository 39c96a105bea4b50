"""A finalized handoff pack as evidence in a run: the run refers to the very object that was frozen."""

from pathlib import Path

import msgspec
import pytest

from contextplane.app.execution.evidence import EvidenceNotFrozen, handoff_input
from contextplane.app.execution.record import Recorder
from contextplane.app.settings import Settings
from contextplane.model.handoff import HandoffPack
from tests.surfaces.archives import log, refused
from tests.surfaces.handoff_store import HandoffStore, json_answer


@pytest.fixture
def place(tmp_path: Path) -> HandoffStore:
    return HandoffStore(tmp_path / "project")


@pytest.fixture
def frozen(place: HandoffStore) -> HandoffPack:
    pack = place.write(status="finalized")
    place.write(pack.id, revision=1, title="A draft again")
    return pack


def test_a_run_refers_to_the_revision_by_its_digest(place: HandoffStore, frozen: HandoffPack) -> None:
    inputs = [
        {"handoff": f"{frozen.id}@1"},
        {"name": "order", "content": "{}"},
        {"name": "why", "handoff": f"{frozen.id}@1"},
    ]
    run = place.ctx("pack", "-", input=log("done", inputs=inputs)).out.strip()
    digest = json_answer(place.ctx("show", f"{frozen.id}@1", "--json"))["digest"]
    first, _, last = json_answer(place.ctx("show", run, "--json"))["inputs"]
    assert [(entry["name"], entry["content_ref"]) for entry in (first, last)] == [
        (f"handoff/{frozen.id}@1", digest),
        ("why", digest),
    ]
    assert place.ctx("cat", f"{run}:inputs/handoff/{frozen.id}@1").raw == place.ctx("cat", f"{frozen.id}@1").raw
    assert place.ctx("pack", "-", input=log("done", inputs=inputs)).out.strip() == run


def test_the_run_keeps_its_evidence_when_the_pack_is_collected_and_takes_it_along(
    place: HandoffStore, frozen: HandoffPack
) -> None:
    run = place.ctx("pack", "-", input=log("done", inputs=[{"handoff": f"{frozen.id}@1"}])).out.strip()
    evidence = place.ctx("cat", f"{frozen.id}@1").raw
    place.delete(frozen.id)
    assert place.ctx("gc", "--grace", "0s").status == 0
    refused(place.ctx("cat", f"{frozen.id}@1"), 13, "handoff_not_found")
    assert place.ctx("verify", run).status == 0
    other = HandoffStore(place.folder.parent / "other")
    assert place.ctx("export", run, "-o", "../run.tar").status == 0
    assert other.ctx("import", "../run.tar").status == 0
    assert other.ctx("cat", f"{run}:inputs/handoff/{frozen.id}@1").raw == evidence
    assert place.ctx("fsck").status == other.ctx("fsck").status == 0


def test_a_run_and_its_evidence_travel_together_as_what_they_are(place: HandoffStore, frozen: HandoffPack) -> None:
    run = place.ctx("pack", "-", input=log("done", inputs=[{"handoff": f"{frozen.id}@1"}])).out.strip()
    other = HandoffStore(place.folder.parent / "other")
    assert place.ctx("export", run, f"{frozen.id}@1", "-o", "../both.tar").status == 0
    assert other.ctx("import", "../both.tar").status == 0
    assert other.ctx("verify", run).status == other.ctx("verify", frozen.id).status == 0
    assert other.ctx("fsck").status == 0
    other.delete(frozen.id)
    assert other.ctx("gc", "--grace", "0s").status == 0
    assert other.ctx("verify", run).status == 0


def test_a_recorder_takes_it_as_an_input(place: HandoffStore, frozen: HandoffPack) -> None:
    settings = Settings(cwd=str(place.folder))
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.input(*handoff_input(f"{frozen.id}@1", settings))
    assert run.reference is not None
    assert (
        place.ctx("cat", f"{run.reference}:inputs/handoff/{frozen.id}@1").raw == place.ctx("cat", f"{frozen.id}@1").raw
    )
    assert place.ctx("verify", run.reference).status == 0
    with pytest.raises(EvidenceNotFrozen):
        handoff_input(frozen.id, settings)


def test_only_a_finalized_revision_is_evidence_and_all_that_is_wrong_is_told(
    place: HandoffStore, frozen: HandoffPack
) -> None:
    wrong = [
        f"{frozen.id}@2",
        frozen.id,
        "login-bug",
        f"{frozen.id}@7",
        "pk_aaaaaaaa@1",
        f"{frozen.id}@x",
        "x" * 300_000,
    ]
    result = place.ctx("pack", "-", "--json", input=log("done", inputs=[{"handoff": ref} for ref in wrong]))
    assert result.status == 10
    error = msgspec.json.decode(result.err)["error"]
    assert error["code"] == "execution_log_invalid"
    assert [problem["at"] for problem in error["details"]["problems"]] == [
        f"/inputs/{n}/handoff" for n in range(len(wrong))
    ]
    assert "draft" in error["details"]["problems"][0]["message"]
    both = log("done", inputs=[{"handoff": f"{frozen.id}@1", "content": "x"}])
    refused(place.ctx("pack", "-", input=both), 10, "execution_log_invalid")
    out = log("done", outputs=[{"name": "x", "handoff": f"{frozen.id}@1"}])
    refused(place.ctx("pack", "-", input=out), 10, "execution_log_invalid")
