"""Packing or importing a run again says what it put back."""

from pathlib import Path

import msgspec

from contextplane.model.ids import Digest
from tests.surfaces.artifacts import damage, log, packed, place
from tests.surfaces.commands import ctx

PROMPT = Digest.of(b"You are careful.")


def test_people_and_machines_are_told_what_was_put_back(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md").digest
    (tmp_path / "log.json").write_bytes(log("report.md"))
    assert ctx("export", run.hex, "-o", "run.tar", cwd=tmp_path).status == 0
    summary = "restored 1 object that was tampered with, 1 object that was missing"
    for args in (("pack", "log.json"), ("import", "run.tar")):
        place(tmp_path, run).unlink()
        damage(place(tmp_path, PROMPT))
        healing = ctx(*args, cwd=tmp_path)
        assert (healing.status, f" {summary}\n" in healing.err + healing.out) == (0, True)
        again = ctx(*args, cwd=tmp_path)
        assert ", complete\n" in again.err or "; nothing new, complete\n" in again.out
        damage(place(tmp_path, PROMPT))
        answer = msgspec.json.decode(ctx(*args, "--json", cwd=tmp_path).raw)
        assert answer["put_back"] == [{"digest": str(PROMPT), "damage": "tampered"}]
        assert answer.get("new_objects", 0) == 0
    assert ctx("fsck", cwd=tmp_path).status == 0


def test_what_damage_keeps_from_being_searched_is_said_until_it_is_put_back(tmp_path: Path) -> None:
    packed(tmp_path, "report.md")
    (tmp_path / "log.json").write_bytes(log("report.md"))
    damage(place(tmp_path, PROMPT))
    assert ctx("fsck", "--rebuild", cwd=tmp_path).status == 1
    warning = "ctx: contents that were damaged when they were indexed were not searched ('ctx fsck' lists all damage)\n"
    unfound = ctx("search", "careful", cwd=tmp_path)
    assert (unfound.out, unfound.err) == ("Nothing found.\n", warning)
    assert msgspec.json.decode(ctx("search", "careful", "--json", cwd=tmp_path).raw)["left_out"] is True
    assert ctx("pack", "log.json", cwd=tmp_path).status == 0
    result = ctx("search", "careful", cwd=tmp_path)
    assert (result.out.count(":system_prompt  You are careful."), result.err) == (1, "")
    assert msgspec.json.decode(ctx("search", "careful", "--json", cwd=tmp_path).raw)["left_out"] is False
