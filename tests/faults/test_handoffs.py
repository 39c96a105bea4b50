"""Handoff packs under fire: what was acknowledged is there, what was not is absent or complete, and one writer wins."""

import errno
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen

import msgspec
import pytest

from contextplane.app.init import init
from contextplane.app.platform import Platform, opened
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, HandoffId
from contextplane.store.damage import DAMAGE
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.testing.faults import Faults
from tests.faults.handoff_children import NAMERS, TURNS, WRITERS, Outcome, begin, document, everything, shelf_in
from tests.surfaces.running import is_root
from tests.unit.handoff.reference_root import ReferencePacks

FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(folder: Path) -> Path:
    init(Settings(cwd=str(folder)), ".")
    return folder


def lines_of(child: Popen[bytes]) -> list[str]:
    """All that a child told, which must end well."""
    with child:
        out, err = child.communicate()
    assert (err.decode(), child.returncode) == ("", 0)
    return out.decode().splitlines()


def sound(platform: Platform) -> None:
    """Nothing is damaged, and nothing lies about whose kind is unknown: that would never be collected."""
    findings = list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None))
    assert [finding for finding in findings if finding.state in DAMAGE] == []
    assert [finding for finding in findings if "unknown" in finding.why] == []


def acknowledged_is_there(folder: Path, lines: list[str]) -> None:
    with shelf_in(folder) as shelf:
        for line in lines:
            pack_id, revision, digest = line.split()
            kept = {revision.revision: revision.digest for revision in shelf.history(HandoffId(pack_id)).revisions}
            assert kept[int(revision)] == Digest(digest)
            assert shelf.revision(HandoffId(pack_id), int(revision)).revision == int(revision)
        for row in shelf.list().rows:
            assert shelf.get(row.id.text).pack.revision == row.revision
    with opened(Settings(cwd=str(folder))) as platform:
        sound(platform)


def test_a_writer_killed_at_any_call_loses_nothing_acknowledged_and_leaves_nothing_unknown(folder: Path) -> None:
    assert lines_of(begin("kill_points", folder)) == []
    folders = sorted(folder.iterdir(), key=lambda path: int(path.name))
    assert len(folders) > 20
    for one in folders:
        acknowledged_is_there(one, (one / "told").read_text(encoding="ascii").splitlines())
        with shelf_in(one) as shelf:  # life goes on
            names = [row for row in shelf.list().rows if row.name == "plan"]
            assert len(names) <= 1
            assert shelf.write(document("scope")).pack.revision == 1
        with opened(Settings(cwd=str(one))) as platform:
            gc(platform.catalog, platform.entries, platform.objects, older_than=FAR_AHEAD, dry_run=False)
            sound(platform)


@pytest.mark.parametrize("acknowledgements", [1, 10, 53, 300])
def test_a_writer_killed_at_any_moment_loses_nothing_acknowledged(store: Path, acknowledgements: int) -> None:
    child = begin("write_many", store)
    assert child.stdout is not None
    with child:
        told = [child.stdout.readline() for _ in range(acknowledgements)]
        child.kill()
        told += child.stdout.readlines()
    assert child.returncode == -9
    acknowledged_is_there(store, [line.decode() for line in told])


def outcomes(lines: list[str]) -> Iterator[list[Outcome]]:
    """All outcomes, turn by turn."""
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in lines]
    for turn in range(1 + max(outcome.turn for outcome in outcomes)):
        yield [outcome for outcome in outcomes if outcome.turn == turn]


def test_of_two_writers_with_the_same_revision_one_wins_and_the_others_are_told_what_changed(store: Path) -> None:
    turns = list(outcomes(lines_of(begin("race", store))))
    assert len(turns) == TURNS
    before = ""
    for turn, attempts in enumerate(turns):
        won = [attempt for attempt in attempts if not attempt.code]
        assert [outcome.revision for outcome in won] == [turn + 2]
        assert len(attempts) == WRITERS
        winner = f"of-{won[0].who}"
        for lost in attempts:
            if lost.code:
                assert lost.code == "handoff_revision_conflict"
                assert set(lost.changed) == {winner, before} - {""} if winner != before else set() == set(lost.changed)
        before = winner
    with shelf_in(store) as shelf:
        assert shelf.get("plan").pack.revision == TURNS + 1
    with opened(Settings(cwd=str(store))) as platform:
        sound(platform)


def test_of_eight_who_make_a_pack_of_one_name_exactly_one_succeeds(folder: Path) -> None:
    for attempts in outcomes(lines_of(begin("name_at_once", folder))):
        assert sorted(attempt.code for attempt in attempts) == ["", *["handoff_name_taken"] * (NAMERS - 1)]
    where = Settings(cwd=str(folder), ctx_dir=str(folder / ".agents" / "mcp" / "context_pack" / ".ctx"))
    with opened(where) as platform:
        sound(platform)


def test_a_disk_that_fails_at_any_call_fails_that_write_alone(folder: Path) -> None:
    nth, failed = 0, True
    while failed:
        nth += 1
        place = folder / str(nth)
        place.mkdir()
        init(Settings(cwd=str(place)), ".")
        told: list[str] = []
        faults = Faults().at("*", nth, OSError(errno.ENOSPC, "No space left on device"))
        try:
            with shelf_in(place, faults) as shelf:
                everything(
                    shelf,
                    lambda written: told.append(f"{written.pack.id} {written.pack.revision} {written.digest.hex}"),  # noqa: B023
                )
            failed = False
        except (ContextPlaneError, OSError):
            acknowledged_is_there(place, told)
    assert nth > 20


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_full_disk_is_an_error_and_costs_nothing_that_was_acknowledged(store: Path, size: str) -> None:
    *told, code = lines_of(begin("fill_up", store, size))
    assert code in {"catalog_failed", "storage_full"}
    assert told
    acknowledged_is_there(store, told)


@pytest.mark.skipif(not is_root(), reason="becomes somebody who may write nothing")
def test_who_may_only_read_can_read_and_is_refused_a_write(public: Path) -> None:
    init(Settings(cwd=str(public)), ".")
    with shelf_in(public) as shelf:
        pack_id = shelf.write(document("scope")).pack.id  # small: it waits in the catalog
    listed, _, got, code = lines_of(begin("as_nobody", public, ""))
    assert listed == got == pack_id
    assert code in {"catalog_read_only", "storage_read_only"}


@pytest.mark.skipif(not is_root(), reason="becomes somebody who may not read a file")
def test_a_file_that_may_not_be_read_is_reported_and_kept(public: Path) -> None:
    there = ReferencePacks(public / "root")
    there.write("pk_aaaaaaaa")
    there.write("pk_bbbbbbbb").chmod(0)
    for path in (public / "root", there.folder):
        path.chmod(0o777)
    listed, refused, _, *rest = lines_of(begin("as_nobody", public, public / "root"))
    assert (listed, refused, rest) == ("pk_aaaaaaaa", "pk_bbbbbbbb.json", [])
    assert (there.folder / "pk_bbbbbbbb.json").exists()
