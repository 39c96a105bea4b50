"""`pk_...` where other verbs take a reference: diff, show, cat, verify, log."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from contextplane.model.handoff import HandoffPack
from tests.surfaces.handoff_store import HandoffStore, document, json_answer
from tests.surfaces.sample import one_error_line


@pytest.fixture
def place(tmp_path: Path) -> HandoffStore:
    return HandoffStore(tmp_path)


@pytest.fixture
def pack(place: HandoffStore) -> HandoffPack:
    """One of three revisions, the second of them finalized."""
    first = place.write(name="login-bug", title="Login bug")
    place.write(first.id, revision=1, title="Login bug", status="finalized")
    sections = document()["sections"]
    sections[0]["description"] = "The token check,\nand the clock."
    sections[1]["refs"][0] |= {"line_end": 5, "why": "the clock is not asked"}
    sections[1]["refs"].append({"key": "clock", "path": "auth.py", "line_start": 1, "line_end": 1})
    return place.write(first.id, revision=2, title="Clock bug", sections=[*sections[1::-1]])


def test_a_diff_tells_in_words_what_changed_by_section_and_ref(place: HandoffStore, pack: HandoffPack) -> None:
    diff = json_answer(place.ctx("diff", f"{pack.id}@2", f"{pack.id}@3", "--json"))
    assert (diff["pack_a"], diff["pack_b"], diff["has_drift"]) == (f"{pack.id}@2", f"{pack.id}@3", True)
    assert [(entry["type"], entry["at"]) for entry in diff["entries"]] == [
        ("changed", "title"),
        ("changed", "status"),
        ("changed", "sections/scope/description"),
        ("changed", "sections/findings/refs/check/lines"),
        ("changed", "sections/findings/refs/check/why"),
        ("changed", "sections/findings/refs/check/anchor"),
        ("added", "sections/findings/refs/clock"),
        ("removed", "sections/qa"),
        ("reordered", "sections"),
    ]
    text = place.ctx("diff", f"{pack.id}@2", f"{pack.id}@3").out
    assert f"Comparing {pack.id}@2 vs {pack.id}@3\n" in text
    assert "1. [changed] title differs: Login bug -> Clock bug\n" in text
    assert "      -The token check.\n      +The token check,\n      +and the clock.\n" in text
    assert "[changed] lines of ref check differs: 4-6 -> 4-5\n" in text
    assert "[removed] section qa was removed\n" in text


def test_a_diff_without_a_number_is_with_the_newest_and_its_status_can_tell(
    place: HandoffStore, pack: HandoffPack
) -> None:
    assert json_answer(place.ctx("diff", f"{pack.id}@1", pack.id, "--json"))["pack_b"] == f"{pack.id}@3"
    assert place.ctx("diff", f"{pack.id}@1", pack.id, "--exit-code").status == 12
    same = place.ctx("diff", f"{pack.id}@3", pack.id, "--exit-code")
    assert (same.status, same.out) == (0, "No differences found. It is the same revision.\n")
    assert place.ctx("diff", f"{pack.id}@1", f"{pack.id}@2", "--exit-code").status == 12
    one_error_line(place.ctx("diff", f"{pack.id}@1", f"{pack.id}@9"), 13, "handoff_not_found")
    one_error_line(place.ctx("diff", f"{pack.id}@1", "0" * 64), 2, "usage")
    with place.session() as session:
        session.repository.ttl(pack.id, expected_revision=3, extend_minutes=5)
    (entry,) = json_answer(place.ctx("diff", f"{pack.id}@3", pack.id, "--json"))["entries"]
    assert entry["at"] == "expires_at"


def test_show_log_and_cat_take_a_revision(place: HandoffStore, pack: HandoffPack) -> None:
    assert json_answer(place.ctx("show", f"{pack.id}@1", "--json"))["revision"] == 1
    assert place.ctx("show", pack.id).out == place.ctx("handoff", "show", pack.id).out
    assert place.ctx("log", pack.id).out == place.ctx("handoff", "log", pack.id).out
    for number in (1, 2, 3):
        answer = json_answer(place.ctx("cat", f"{pack.id}@{number}", "--json"))
        raw = place.ctx("cat", f"{pack.id}@{number}").raw
        assert f"sha256:{sha256(raw).hexdigest()}" == answer["digest"]
        assert place.ctx("cat", answer["digest"]).raw == raw
    assert place.ctx("cat", pack.id).raw == place.ctx("cat", f"{pack.id}@3").raw


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (["show", "pk_abcd2345", "--steps"], "usage"),
        (["cat", "pk_abcd2345@3:title"], "reference_handoff_part"),
        (["cat", "pk_abcd2345@0"], "reference_invalid"),
        (["verify", "pk_nope"], "id_invalid"),
        (["log", "pk_abcd2345@2"], "usage"),
        (["log", "pk_abcd2345", "--all"], "usage"),
        (["log", "notes.md"], "reference_not_an_execution_pack"),
    ],
    ids=str,
)
def test_what_makes_no_sense_of_a_handoff_pack_is_refused(place: HandoffStore, line: list[str], code: str) -> None:
    one_error_line(place.ctx(*line), 2, code)


def test_verify_hashes_every_revision_and_one_of_them(place: HandoffStore, pack: HandoffPack) -> None:
    answer = json_answer(place.ctx("verify", pack.id, "--json"))
    assert (answer["answer"], answer["events"], [revision["revision"] for revision in answer["revisions"]]) == (
        "verified",
        3,
        [1, 2, 3],
    )
    assert [
        revision["revision"] for revision in json_answer(place.ctx("verify", f"{pack.id}@2", "--json"))["revisions"]
    ] == [2]
    place.delete(pack.id)
    assert place.ctx("verify", pack.id).status == 0
    one_error_line(place.ctx("verify", f"{pack.id}@4"), 13, "handoff_not_found")
    assert place.ctx("gc", "--grace", "0s").status == 0
    gone = json_answer(place.ctx("verify", pack.id, "--json"), status=13)
    assert gone["answer"] == "unknown"


def test_verify_tells_modified_bytes_from_missing_ones(place: HandoffStore, pack: HandoffPack) -> None:
    file = place.object_of(pack)
    whole = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(whole[:-2] + b"  ")
    assert json_answer(place.ctx("verify", pack.id, "--json"), status=11)["answer"] == "modified"
    assert place.ctx("verify", f"{pack.id}@2").status == 0
    file.unlink()
    missing = json_answer(place.ctx("verify", pack.id, "--json"), status=10)
    assert (missing["answer"], len(missing["revisions"])) == ("unchecked", 2)


@pytest.mark.parametrize("seq", [1, 2, 3])
def test_verify_finds_an_event_that_was_taken_out_of_the_history(
    place: HandoffStore, pack: HandoffPack, seq: int
) -> None:
    with closing(sqlite3.connect(place.folder / ".ctx" / "catalog.db")) as db, db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        assert db.execute("DELETE FROM event WHERE stream = ? AND seq = ?", (f"handoff/{pack.id}", seq)).rowcount == 1
    answer = json_answer(place.ctx("verify", pack.id, "--json"), status=11)
    assert answer["answer"] == "modified"
    assert any("missing" in trouble["why"] for trouble in answer["troubles"])
