"""Handoff packs under faults: acknowledged writes stay, others are absent or complete, one writer wins."""

import errno
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen

import msgspec
import pytest

from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, HandoffId
from contextplane.store.damage import DAMAGE
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.testing.faults import Faults
from tests.faults.handoff_children import (
    NAMERS,
    TURNS,
    WRITERS,
    Outcome,
    document,
    exercise_repository,
    repository_in,
    start,
)
from tests.surfaces.commands import is_root
from tests.unit.handoff.reference_root import ReferencePacks

FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(folder: Path) -> Path:
    init(Settings(cwd=str(folder)), ".")
    return folder


def lines_of(child: Popen[bytes]) -> list[str]:
    """Return the lines that a child printed; it must end without an error."""
    with child:
        out, err = child.communicate()
    assert (err.decode(), child.returncode) == ("", 0)
    return out.decode().splitlines()


def assert_sound(platform: Platform) -> None:
    """Assert that nothing is damaged, and that no object has an unknown kind, which is never collected."""
    findings = list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None))
    assert [finding for finding in findings if finding.state in DAMAGE] == []
    assert [finding for finding in findings if "unknown" in finding.why] == []


def assert_acknowledged(folder: Path, lines: list[str]) -> None:
    with repository_in(folder) as repository:
        for line in lines:
            pack_id, revision, digest = line.split()
            digests = {
                revision.revision: revision.digest for revision in repository.history(HandoffId(pack_id)).revisions
            }
            assert digests[int(revision)] == Digest(digest)
            assert repository.revision(HandoffId(pack_id), int(revision)).revision == int(revision)
        for row in repository.list().rows:
            assert repository.get(row.id.text).pack.revision == row.revision
    with open_platform(Settings(cwd=str(folder))) as platform:
        assert_sound(platform)


def test_a_writer_killed_at_any_call_loses_nothing_acknowledged_and_leaves_nothing_unknown(folder: Path) -> None:
    assert lines_of(start("kill_points", folder)) == []
    folders = sorted(folder.iterdir(), key=lambda path: int(path.name))
    assert len(folders) > 20
    for path in folders:
        assert_acknowledged(path, (path / "acknowledged").read_text(encoding="ascii").splitlines())
        with repository_in(path) as repository:  # life goes on
            names = [row for row in repository.list().rows if row.name == "plan"]
            assert len(names) <= 1
            assert repository.write(document("scope")).pack.revision == 1
        with open_platform(Settings(cwd=str(path))) as platform:
            gc(platform.catalog, platform.entries, platform.objects, older_than=FAR_AHEAD, dry_run=False)
            assert_sound(platform)


@pytest.mark.parametrize("acknowledgements", [1, 10, 53, 300])
def test_a_writer_killed_at_any_moment_loses_nothing_acknowledged(store: Path, acknowledgements: int) -> None:
    child = start("write_many", store)
    assert child.stdout is not None
    with child:
        lines = [child.stdout.readline() for _ in range(acknowledgements)]
        child.kill()
        lines += child.stdout.readlines()
    assert child.returncode == -9
    assert_acknowledged(store, [line.decode() for line in lines])


def outcomes(lines: list[str]) -> Iterator[list[Outcome]]:
    """All outcomes, turn by turn."""
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in lines]
    for turn in range(1 + max(outcome.turn for outcome in outcomes)):
        yield [outcome for outcome in outcomes if outcome.turn == turn]


def test_of_two_writers_with_the_same_revision_one_wins_and_the_others_are_told_what_changed(store: Path) -> None:
    turns = list(outcomes(lines_of(start("race", store))))
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
    with repository_in(store) as repository:
        assert repository.get("plan").pack.revision == TURNS + 1
    with open_platform(Settings(cwd=str(store))) as platform:
        assert_sound(platform)


def test_of_eight_who_make_a_pack_of_one_name_exactly_one_succeeds(folder: Path) -> None:
    for attempts in outcomes(lines_of(start("name_at_once", folder))):
        assert sorted(attempt.code for attempt in attempts) == ["", *["handoff_name_taken"] * (NAMERS - 1)]
    where = Settings(cwd=str(folder), ctx_dir=str(folder / ".agents" / "mcp" / "context_pack" / ".ctx"))
    with open_platform(where) as platform:
        assert_sound(platform)


def test_a_disk_that_fails_at_any_call_fails_that_write_alone(folder: Path) -> None:
    nth, failed = 0, True
    while failed:
        nth += 1
        path = folder / str(nth)
        path.mkdir()
        init(Settings(cwd=str(path)), ".")
        acknowledged: list[str] = []
        faults = Faults().at("*", nth, OSError(errno.ENOSPC, "No space left on device"))
        try:
            with repository_in(path, faults) as repository:
                exercise_repository(
                    repository,
                    lambda written: acknowledged.append(  # noqa: B023
                        f"{written.pack.id} {written.pack.revision} {written.digest.hex}"
                    ),
                )
            failed = False
        except (ContextPlaneError, OSError):
            assert_acknowledged(path, acknowledged)
    assert nth > 20


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_full_disk_is_an_error_and_costs_nothing_that_was_acknowledged(store: Path, size: str) -> None:
    *acknowledged, code = lines_of(start("fill_up", store, size))
    assert code in {"catalog_failed", "storage_full"}
    assert acknowledged
    assert_acknowledged(store, acknowledged)


@pytest.mark.skipif(not is_root(), reason="becomes somebody who may write nothing")
def test_who_may_only_read_can_read_and_is_refused_a_write(public: Path) -> None:
    init(Settings(cwd=str(public)), ".")
    with repository_in(public) as repository:
        pack_id = repository.write(document("scope")).pack.id  # small: it waits in the catalog
    listed, _, got, code = lines_of(start("as_nobody", public, ""))
    assert listed == got == pack_id
    assert code in {"catalog_read_only", "storage_read_only"}


@pytest.mark.skipif(not is_root(), reason="becomes somebody who may not read a file")
def test_a_file_that_may_not_be_read_is_reported_and_kept(public: Path) -> None:
    there = ReferencePacks(public / "root")
    there.write("pk_aaaaaaaa")
    there.write("pk_bbbbbbbb").chmod(0)
    for path in (public / "root", there.folder):
        path.chmod(0o777)
    listed, refused, _, *errors = lines_of(start("as_nobody", public, public / "root"))
    assert (listed, refused, errors) == ("pk_aaaaaaaa", "pk_bbbbbbbb.json", [])
    assert (there.folder / "pk_bbbbbbbb.json").exists()
