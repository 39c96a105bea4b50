"""Many processes on one store at the same time: no process fails, and nothing is lost."""

import os
from pathlib import Path
from subprocess import PIPE, Popen

import msgspec
import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, IndexedObject
from contextplane.model.ids import Digest
from contextplane.store.damage import DAMAGE
from contextplane.store.fsck import fsck
from tests.faults.children import LINKERS, LINKS, ROUNDS, WRITERS, linked_contents, start
from tests.support.reference_store import ReferenceStore
from tests.surfaces.archives import log
from tests.surfaces.commands import COMMAND, child_environment, ctx


def assert_ends_well(child: Popen[bytes]) -> None:
    with child:
        out, err = child.communicate()
    assert (err.decode(), out, child.returncode) == ("", b"", 0)


def run_at_once(count: int, *args: str, cwd: Path) -> list[bytes]:
    """Run `ctx` `count` times at once, assert that all succeed, and return their outputs."""
    env = child_environment()
    running = [Popen([COMMAND, *args], cwd=cwd, env=env, stdout=PIPE, stderr=PIPE) for _ in range(count)]
    ended = [(*child.communicate(), child.returncode) for child in running]
    assert [(err, status) for _, err, status in ended] == [(b"", 0)] * count
    return [out for out, _, _ in ended]


def test_many_writers_of_the_same_and_of_different_objects_all_succeed(folder: Path) -> None:
    assert_ends_well(start("write_at_once", folder))
    objects = FileObjects(str(folder))
    digests = {Digest.of(b"the same %d" % turn) for turn in range(ROUNDS)}
    digests |= {Digest.of(b"of writer %d in round %d" % (n, turn)) for n in range(WRITERS) for turn in range(ROUNDS)}
    assert list(objects.names()) == sorted(digests)
    assert {objects.check(name).state for name in digests} == {"whole"}
    assert not list(objects.strays())


def test_collecting_while_others_put_and_link_never_takes_what_is_reachable(folder: Path) -> None:
    settings = Settings(cwd=str(folder))
    init(settings, ".")
    junk = [b"junk %d" % n for n in range(50)]
    with open_platform(settings) as platform:
        for data in junk:
            digest = platform.objects.put(data)
            os.utime(folder / ".ctx" / "objects" / digest.hex[:2] / digest.hex[2:], (0, 0))
            with platform.catalog.write(survives="crash") as tx:
                tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=len(data), traced=True))
        for n in range(200):
            leftover = folder / ".ctx" / "objects" / ".staging" / f"1-{n:016x}"
            leftover.write_bytes(b"half")
            os.utime(leftover, (0, 0))
    assert_ends_well(start("link_and_collect", folder))
    with open_platform(settings) as platform:
        names = set(platform.objects.names())
        findings = list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _objects: None))
        with platform.catalog.read() as view:
            assert view.objects.root_count("packs/") == LINKERS * LINKS
            reachable = set(view.objects.reachable())
    assert [finding for finding in findings if finding.state in DAMAGE] == []
    linked = {data for n in range(LINKERS) for turn in range(LINKS) for data in linked_contents(n, turn)}
    assert set(map(Digest.of, linked)) <= names
    # And it did collect: all that was old and unreachable is gone, and nothing else.
    assert names == reachable
    assert not [finding for finding in findings if finding.state == "foreign"]


def test_packing_while_others_collect_all_they_can_loses_nothing(tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    verbs = []
    for n in range(4):
        # Each run shares all its contents with the others but one.
        (tmp_path / f"{n}.json").write_bytes(log(f"report {n}"))
        verbs += [["pack", f"{n}.json"], ["gc", "--grace", "0s"]]
    env = child_environment()
    running = [Popen([COMMAND, *verb], cwd=tmp_path, env=env, stdout=PIPE, stderr=PIPE) for verb in verbs]
    for child in running:
        _, err = child.communicate()
        assert (err, child.returncode) == (b"", 0)
    assert len(msgspec.json.decode(ctx("log", "--json", cwd=tmp_path).raw)["packs"]) == 4
    assert ctx("fsck", cwd=tmp_path).status == 0


def test_making_one_store_several_times_at_once_makes_one_store(tmp_path: Path) -> None:
    for turn in range(5):
        folder = tmp_path / str(turn)
        folder.mkdir()
        reports = [msgspec.json.decode(out) for out in run_at_once(3, "init", "--json", cwd=folder)]
        assert len({report["store_id"] for report in reports}) == 1
        assert {report["what"] for report in reports} <= {"created", "completed", "present"}
        status = msgspec.json.decode(ctx("status", "--json", cwd=folder).raw)
        assert status["store_id"] == reports[0]["store_id"]
        assert sorted(path.name for path in (folder / ".ctx").iterdir()) == [
            *(".gitignore", "catalog.db", "catalog.lock", "config.json", "drafts", "keys", "objects", "packs", "refs")
        ]


def test_adopting_one_store_several_times_at_once_gives_it_one_identity(tmp_path: Path) -> None:
    for turn in range(4):
        folder = tmp_path / str(turn)
        folder.mkdir()
        ReferenceStore(folder).pack(outputs={"report.md": b"paid"})
        reports = [msgspec.json.decode(out) for out in run_at_once(3, "status", "--json", cwd=folder)]
        assert len({report["store_id"] for report in reports}) == 1
        assert [report["execution_packs"] for report in reports] == [1, 1, 1]


@pytest.mark.parametrize("settled", [False, True], ids=["just-now", "long-ago"])
def test_a_new_pack_is_followed_by_several_at_once(tmp_path: Path, settled: bool) -> None:  # noqa: FBT001
    other = ReferenceStore(tmp_path)
    other.pack(outputs={"report.md": b"paid"})
    assert ctx("init", cwd=tmp_path).status == 0
    for turn in range(2, 8):
        other.pack(outputs={"report.md": b"paid %d" % turn})
        if settled:
            os.utime(other.path / "packs", (turn, turn))
        reports = [msgspec.json.decode(out) for out in run_at_once(3, "status", "--json", cwd=tmp_path)]
        assert [report["execution_packs"] for report in reports] == [turn] * 3
    assert msgspec.json.decode(ctx("fsck", "--json", cwd=tmp_path).raw)["findings"] == []
