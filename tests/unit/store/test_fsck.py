"""A check finds every kind of damage, says who needs what is damaged, and says nothing of what is sound."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.model.catalog import IndexedObject
from contextplane.model.execution.references import EXECUTION_PACK
from contextplane.model.ids import Digest
from contextplane.store.damage import DAMAGE, FsckFinding
from contextplane.store.fsck import fsck
from tests.unit.store.world import World, passing_world


def _database(world: World) -> sqlite3.Connection:
    assert isinstance(world.platform.catalog, SqliteCatalog)
    return world.platform.catalog._db


def brief(findings: list[FsckFinding]) -> list[tuple[str, str]]:
    return [(finding.state, finding.what) for finding in findings]


def test_a_sound_store_has_no_findings_and_every_object_was_looked_at(world: World) -> None:
    parent = world.pack(b"first")
    world.pack(b"second", b"third", parent=parent.hex)
    world.catch_up()
    progress: list[tuple[int, int]] = []
    platform = world.platform
    findings = list(
        fsck(platform.catalog, platform.entries, platform.objects, lambda size, count: progress.append((size, count)))
    )
    assert findings == []
    files = [path for path in (world.path / "objects").glob("??/*") if path.is_file()]
    assert (sum(size for size, _ in progress), sum(count for _, count in progress)) == (
        sum(path.stat().st_size for path in files),
        len(files),
    )


def test_an_empty_store_is_sound(world: World) -> None:
    assert world.findings() == []


def test_a_missing_blob_is_missing_and_its_manifest_needs_it(world: World) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    blob = Digest.of(b"the report")
    world.place(blob).unlink()
    assert world.findings() == [
        FsckFinding(
            state="missing",
            what=str(blob),
            why=f"ctx://{pack.hex[:12]}:outputs/0.md is missing",
            needed_by=(str(pack),),
            ref=f"ctx://{pack.hex}:outputs/0.md",
        )
    ]


def test_a_missing_manifest_is_missing_and_its_entry_needs_it(world: World) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    world.place(pack).unlink()
    findings = world.findings()
    assert brief(findings) == [("missing", str(pack))]
    assert findings[0].needed_by == (f"packs/{pack.hex}",)


def test_a_missing_parent_is_missing(world: World) -> None:
    parent = world.pack(b"first")
    child = world.pack(b"second", parent=parent.hex)
    world.unregister(parent)
    world.catch_up()
    world.place(parent).unlink()
    findings = world.findings()
    assert ("missing", str(parent)) in brief(findings)
    assert findings[brief(findings).index(("missing", str(parent)))].needed_by == (str(child),)


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data[:-1])


def flipped(path: Path) -> None:
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(bytes([data[0] ^ 1]) + data[1:])


def emptied(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_link(path: Path) -> None:
    """To the very bytes that belong there: it is no object all the same, for nobody says that they stay."""
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def a_dead_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("harm", [truncated, flipped, emptied, a_folder, a_link, a_dead_link, a_pipe])
def test_what_is_there_and_is_not_what_it_says_is_corrupt(world: World, harm: Callable[[Path], None]) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    blob = Digest.of(b"the report")
    harm(world.place(blob))
    findings = [finding for finding in world.findings() if finding.state != "foreign"]
    assert brief(findings) == [("corrupt", str(blob))]
    assert findings[0].needed_by == (str(pack),)
    assert findings[0].why


def test_an_orphan_is_told_apart_by_whether_its_kind_is_known(world: World) -> None:
    recorded = world.record_blob(b"recorded")
    unknown = world.platform.objects.put(b"unknown")
    findings = {finding.what: finding for finding in world.findings()}
    assert {finding.state for finding in findings.values()} == {"orphaned"}
    assert "unknown" not in findings[str(recorded)].why
    assert "never collected" in findings[str(unknown)].why
    assert not [finding for finding in findings.values() if finding.state in DAMAGE]


def test_what_is_not_ours_is_foreign_and_left_alone(world: World) -> None:
    world.pack(b"the report")
    world.catch_up()
    objects, packs = world.path / "objects", world.path / "packs"
    strays = [
        objects / "README.txt",
        objects / "ab" / "notes",
        objects / "AB",
        objects / "abc",
        packs / "notes.txt",
        packs / ("A" * 64),
        packs / ("a" * 63),
        objects / ".staging" / "123-0123456789abcdef",
        objects / ".staging" / "what",
    ]
    for stray in strays:
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(b"junk")
    findings = world.findings()
    assert {finding.state for finding in findings} == {"foreign"}
    assert sorted(finding.what for finding in findings) == sorted(
        str(stray.relative_to(world.path)) for stray in strays
    )
    assert [stray.read_bytes() for stray in strays] == [b"junk"] * len(strays)


def test_an_entry_that_is_no_copy_of_its_manifest_is_corrupt(world: World) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    (world.path / "packs" / pack.hex).write_bytes(b'{"hash": "tampered"}')
    assert brief(world.findings()) == [("corrupt", f"packs/{pack.hex}")]


def test_an_entry_with_the_manifest_and_its_hash_in_it_is_sound(world: World) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    value = msgspec.json.decode(world.place(pack).read_bytes())
    value["hash"] = str(pack)
    (world.path / "packs" / pack.hex).write_bytes(msgspec.json.encode(value))
    assert world.findings() == []


@pytest.mark.parametrize("harm", [emptied, a_folder, a_dead_link, a_pipe])
def test_an_entry_that_cannot_be_read_is_corrupt(world: World, harm: Callable[[Path], None]) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    harm(world.path / "packs" / pack.hex)
    assert brief(world.findings()) == [("corrupt", f"packs/{pack.hex}")]


@pytest.mark.parametrize("data", [b"", b"not a manifest", b"[]", b'{"version": "0.1"}', b"\xff"])
def test_a_registered_object_that_is_no_manifest_is_corrupt(world: World, data: bytes) -> None:
    pack = world.register(data)
    world.catch_up()
    assert brief(world.findings()) == [("corrupt", str(pack))]


@pytest.mark.parametrize("value", ["the text itself", 7, [], {"a": 1}, True])
def test_a_manifest_with_something_else_in_the_place_of_a_reference_is_corrupt(world: World, value: object) -> None:
    pack = world.register(msgspec.json.encode({"version": "0.1", "steps": [], "inputs": [{"content_ref": value}]}))
    world.catch_up()
    findings = world.findings()
    assert brief(findings) == [("corrupt", str(pack))]
    assert "inputs" in findings[0].why


def test_an_index_that_lags_behind_is_told(world: World) -> None:
    kept = world.pack(b"kept")
    world.catch_up()
    late = world.pack(b"late")
    findings = [finding for finding in world.findings() if finding.state == "index"]
    assert brief(findings) == [("index", f"packs/{late.hex}")]
    assert kept.hex not in str(findings)
    world.catch_up()
    assert world.findings() == []


def test_rows_sizes_and_tallies_that_are_wrong_are_told_and_a_rebuild_puts_them_right(world: World) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    db = _database(world)
    for harm, what in (
        ("UPDATE object SET size = size + 1 WHERE kind = 'blob'", str(Digest.of(b"the report"))),
        ("DELETE FROM object WHERE kind = 'blob'", str(Digest.of(b"the report"))),
        ("UPDATE tally SET objects = 99", "tally"),
        ("UPDATE object SET traced = 0 WHERE kind = 'execution_pack'", str(pack)),
    ):
        db.execute(harm)
        assert ("index", what) in brief(world.findings())
        world.rebuild()
        assert world.findings() == []


def test_a_rebuild_keeps_the_references_of_a_manifest_that_cannot_be_read_any_more(world: World) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    with world.platform.catalog.read() as view:
        before = set(view.objects.targets(pack))
    world.damage(pack, b"!")
    world.rebuild()
    with world.platform.catalog.read() as view:
        assert set(view.objects.targets(pack)) == before
        assert Digest.of(b"the report") in {target for _, target in before}


def test_a_rebuild_leaves_the_entry_of_what_is_no_manifest_alone(world: World) -> None:
    pack = world.register(b"not a manifest")
    entry = world.path / "packs" / pack.hex
    entry.write_bytes(b"all that is left")
    world.rebuild()
    assert entry.read_bytes() == b"all that is left"


def test_a_schema_that_is_not_ours_is_corrupt(world: World) -> None:
    db = _database(world)
    db.execute("DROP TRIGGER event_is_never_removed")
    db.execute("CREATE TRIGGER eavesdrop AFTER INSERT ON event BEGIN DELETE FROM mark; END")
    assert {finding.why for finding in world.findings() if finding.what == "catalog"} == {
        "schema: trigger event_is_never_removed is gone",
        "schema: trigger eavesdrop is not ours",
    }


def test_recorded_references_that_the_manifest_does_not_name_are_told(world: World) -> None:
    pack = world.pack(b"the report")
    world.catch_up()
    with world.platform.catalog.write() as tx:
        tx.objects.link(pack, "inputs", pack)
    assert brief(world.findings()) == [("index", str(pack))]


def test_references_of_the_manifest_that_are_not_recorded_are_told(world: World) -> None:
    pack = world.pack(b"the report")
    size = world.place(pack).stat().st_size
    with world.platform.catalog.write() as tx:
        tx.objects.keep(f"packs/{pack.hex}", pack)
        tx.objects.record(IndexedObject(digest=pack, kind=EXECUTION_PACK, size=size, traced=True))
    assert ("index", str(pack)) in brief(world.findings())


NUMBERS = st.sets(st.integers(0, 11), max_size=6)


@given(NUMBERS, NUMBERS, st.sets(st.integers(100, 105), max_size=3))
def test_it_finds_exactly_what_was_harmed(removed: set[int], damaged: set[int], added: set[int]) -> None:
    with passing_world() as world:
        pack = world.pack(*(b"output %d" % n for n in range(12)), prompt=b"p")
        world.catch_up()
        for n in removed:
            world.place(Digest.of(b"output %d" % n)).unlink()
        for n in damaged - removed:
            world.damage(Digest.of(b"output %d" % n), b"!")
        for n in added:
            world.other.blob(b"%d" % n)
        expected = {("missing", b"output %d" % n) for n in removed}
        expected |= {("corrupt", b"output %d" % n) for n in damaged - removed}
        expected |= {("orphaned", b"%d" % n) for n in added}
        findings = world.findings()
        assert sorted(brief(findings)) == sorted((state, str(Digest.of(data))) for state, data in expected)
        assert all(finding.needed_by == ((str(pack),) if finding.state in DAMAGE else ()) for finding in findings)
