"""`ctx fsck` and `ctx gc` on a store with handoff packs in it."""

import os
from pathlib import Path

import msgspec
import pytest

from contextplane.app.handoff.session import open_handoffs
from contextplane.app.init import init
from contextplane.app.settings import Settings
from contextplane.handoff.reader import WriteResult
from contextplane.model.handoff import HandoffDocument
from tests.surfaces.commands import Result, ctx


@pytest.fixture
def written(tmp_path: Path) -> list[WriteResult]:
    """Two packs, of which the second is deleted."""
    settings = Settings(cwd=str(tmp_path))
    init(settings, ".")
    with open_handoffs(settings) as session:
        packs = [session.repository.write(HandoffDocument(sections=(), name=f"pack {n}")) for n in range(2)]
        session.repository.delete("pack 1")
        return packs


def json_answer(result: Result) -> dict[str, object]:
    assert result.err == ""
    return msgspec.json.decode(result.raw, type=dict[str, object])


def test_a_store_with_handoff_packs_is_sound_and_can_be_rebuilt(tmp_path: Path, written: list[WriteResult]) -> None:
    assert json_answer(ctx("fsck", "--json", cwd=tmp_path))["counts"] == {
        "missing": 0,
        "corrupt": 0,
        "index": 0,
        "orphaned": 0,
        "foreign": 0,
        "unreadable": 0,
        "absent": 0,
    }
    assert json_answer(ctx("fsck", "--rebuild", "--json", cwd=tmp_path))["rebuilt"] == {
        "packs": 0,
        "objects": 2,
        "handoffs": 1,
        "entries": 0,
        "adopted": [],
        "unclear": [],
    }
    assert ctx("cat", str(written[0].digest), cwd=tmp_path).status == 0


def test_a_damaged_revision_is_found(tmp_path: Path, written: list[WriteResult]) -> None:
    digits = written[0].digest.hex
    path = tmp_path / ".ctx" / "objects" / digits[:2] / digits[2:]
    path.chmod(0o644)
    path.write_bytes(b"{}")
    result = ctx("fsck", cwd=tmp_path)
    assert result.status == 1
    assert f"needed by handoff/{written[0].pack.id}/1" in result.out


def test_a_deleted_pack_is_collected_and_a_living_one_is_not(tmp_path: Path, written: list[WriteResult]) -> None:
    for path in (tmp_path / ".ctx" / "objects").glob("??/*"):
        os.utime(path, (0, 0))
    assert json_answer(ctx("gc", "--json", cwd=tmp_path))["removed"] == []
    for flags in (["--dry-run"], []):
        answer = json_answer(ctx("gc", "--grace", "0s", "--json", *flags, cwd=tmp_path))
        assert answer["removed"] == [str(written[1].digest)]
    assert ctx("fsck", cwd=tmp_path).status == 0
    with open_handoffs(Settings(cwd=str(tmp_path))) as session:
        assert session.repository.get("pack 0").pack == written[0].pack
