"""An index that says otherwise than the objects is told of, relied upon by nobody who collects, and made anew."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.app.execution.pack import pack_log, register_in_transaction
from contextplane.app.execution.record import Recorder, recording_comparison, recording_context
from contextplane.app.handoff.session import open_handoffs
from contextplane.app.settings import Settings
from contextplane.model.catalog import Event
from contextplane.model.handoff import HandoffDocument
from contextplane.model.ids import Digest
from contextplane.ports.catalog import CatalogCorrupt
from contextplane.record.recorder import list_unfinished, restore_recording_roots
from contextplane.store.damage import FsckFinding
from contextplane.store.fsck import fsck
from contextplane.store.gc import GcBlocked, gc
from tests.unit.store.world import FAR_AHEAD, World


def harm(world: World, sql: str) -> None:
    """What a hand, or a fault of ours, does to the index. No row goes with another one."""
    assert isinstance(world.platform.catalog, SqliteCatalog)
    db = world.platform.catalog._db
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute(sql)
    db.execute("PRAGMA foreign_keys = ON")


def brief(findings: list[FsckFinding]) -> list[tuple[str, str]]:
    return [(finding.state, finding.what) for finding in findings]


def everything(world: World) -> set[Digest]:
    return set(world.platform.objects.names())


@pytest.fixture
def line(world: World) -> list[Digest]:
    """A pack that only its fork keeps; its fork, and another pack, both registered and indexed; and an orphan."""
    first = world.pack(b"first", b"more")
    packs = [first, world.pack(b"second", parent=first.hex), world.pack(b"third")]
    world.unregister(first)
    world.catch_up()
    world.record_blob(b"orphan")
    return packs


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE pack SET model = 'evil'",
        "UPDATE pack SET steps = steps + 98",
        "UPDATE pack SET created_seconds = created_seconds + 1",
        "UPDATE pack SET parent = ''",
        "UPDATE pack SET problem = 'none'",
        "INSERT INTO pack_tool SELECT 'rm', number FROM pack",
        "DELETE FROM pack",
        "DELETE FROM pack_tool",
        "DELETE FROM root",
        "UPDATE root SET target = (SELECT min(target) FROM root)",
        "UPDATE tally SET objects = 99 WHERE what = 'root'",
        "UPDATE object SET kind = 'blob'",
        "DELETE FROM edge WHERE role = 'outputs'",
        "INSERT INTO pack SELECT 99, lower(hex(zeroblob(32))), 1, 1, 1, 1, '', 0, '', ''",
    ],
)
def test_a_check_tells_of_rows_that_say_otherwise_than_the_objects_and_a_rebuild_puts_them_right(
    world: World, line: list[Digest], sql: str
) -> None:
    orphan = [("orphaned", str(Digest.of(b"orphan")))]
    assert brief(world.findings()) == orphan
    harm(world, sql)
    assert "index" in {finding.state for finding in world.findings()}
    world.rebuild()
    assert brief(world.findings()) == orphan
    world.gc()
    assert everything(world) >= {*line, *map(Digest.of, (b"first", b"more", b"second", b"third"))}


ONLY_THE_PARENTS = f"DELETE FROM edge WHERE target = '{Digest.of(b'more').hex}'"  # noqa: S608  our own digest


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM edge",
        "DELETE FROM source",
        "DELETE FROM edge WHERE role = 'system_prompt'",
        "DELETE FROM edge WHERE role = 'outputs'",
        "DELETE FROM edge WHERE role = 'parent'",
        "DELETE FROM edge WHERE position = (SELECT max(position) FROM edge)",
        ONLY_THE_PARENTS,
        "UPDATE edge SET target = (SELECT min(target) FROM edge) WHERE role = 'outputs'",
        "DELETE FROM root",
        "DELETE FROM root WHERE name = (SELECT max(name) FROM root)",
        "UPDATE root SET target = (SELECT min(target) FROM root)",
    ],
)
def test_while_the_index_has_lost_what_keeps_a_pack_nothing_is_collected(
    world: World, line: list[Digest], sql: str, *, dry_run: bool
) -> None:
    there = everything(world)
    harm(world, sql)
    with pytest.raises(GcBlocked) as caught:
        world.gc(dry_run=dry_run)
    assert caught.value.hint is not None
    assert "ctx fsck --rebuild" in caught.value.hint
    assert everything(world) == there
    world.rebuild()
    assert world.gc(dry_run=dry_run).objects == (Digest.of(b"orphan"),)
    assert everything(world) >= set(line)


def test_a_pack_that_is_recorded_as_something_else_is_told_by_its_name(world: World, line: list[Digest]) -> None:
    harm(world, "UPDATE object SET kind = 'blob'")
    assert ("index", f"packs/{line[1].hex}") in brief(world.findings())


def test_a_pack_that_refers_to_nothing_blocks_nothing(world: World) -> None:
    world.register(b'{"version": "0.1", "steps": []}')
    world.catch_up()
    orphan = world.record_blob(b"orphan")
    assert world.gc().objects == (orphan,)


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_a_pack_names_that_came_since_stays_and_blocks_nothing(world: World, *, dry_run: bool) -> None:
    world.record_blob(b"named by a pack that nobody indexed yet")
    orphan = world.record_blob(b"orphan")
    world.pack(b"named by a pack that nobody indexed yet")
    assert world.gc(dry_run=dry_run).objects == (orphan,)


@pytest.mark.parametrize("registered", [True, False])
def test_of_a_pack_that_lost_its_references_and_cannot_be_read_nobody_knows_what_it_needs(
    world: World, line: list[Digest], *, registered: bool
) -> None:
    pack = line[2]
    harm(world, "DELETE FROM edge")
    world.damage(pack, b"damaged")
    if not registered:
        world.unregister(pack)
    world.rebuild()
    if registered:
        with pytest.raises(GcBlocked):
            world.gc()
    else:
        assert Digest.of(b"orphan") in world.gc().objects


def test_rows_of_packs_that_are_gone_from_the_list_are_an_unsound_catalog_until_it_is_made_anew(
    world: World, line: list[Digest]
) -> None:
    harm(world, "INSERT INTO pack_tool SELECT 'read_file', number FROM pack WHERE true ON CONFLICT DO NOTHING")
    harm(world, "DELETE FROM pack")
    with pytest.raises(CatalogCorrupt) as caught:
        world.catch_up()
    assert caught.value.hint == "'ctx fsck --rebuild' makes the index again"
    world.rebuild()
    assert {finding.state for finding in world.findings()} == {"orphaned"}
    with world.platform.catalog.read() as view:
        assert set(view.packs.digests()) == set(line[1:])


LOG = b'{"model":{"identifier":"m-1"},"system_prompt":"s","environment":{"os":"l","runtime":"r"}}'


def packed_again(world: World, _pack: Digest, _data: bytes) -> None:
    pack_log(world.platform, LOG, root=str(world.path.parent))


def registered_again(world: World, pack: Digest, data: bytes) -> None:
    world.damage(pack, data)
    with world.platform.catalog.write() as tx:
        register_in_transaction(world.platform, tx, pack, data)


def collected(world: World, pack: Digest, data: bytes) -> None:
    world.damage(pack, data)
    assert ("index", f"packs/{pack.hex}") in brief(world.findings())
    world.gc()


@pytest.mark.parametrize("way", [packed_again, registered_again, collected])
def test_a_pack_whose_bytes_are_back_is_listed_as_what_it_says(
    world: World, way: Callable[[World, Digest, bytes], None]
) -> None:
    pack = pack_log(world.platform, LOG, root=str(world.path.parent)).digest
    data = world.place(pack).read_bytes()
    world.damage(pack, b"damaged")
    with world.platform.catalog.write() as tx:  # as of a catalog that was lost
        tx.packs.clear()
        tx.objects.forget(pack)
    world.catch_up()
    with world.platform.catalog.read() as view:
        assert view.packs.row(pack).problem  # type: ignore[union-attr]
    way(world, pack, data)
    assert world.findings() == []


# --- what other rooms keep --------------------------------------------------------------------------------------------


@pytest.fixture
def recording(world: World) -> str:
    """A recording whose process died."""
    settings = Settings(cwd=str(world.path.parent))
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 70_000}, output="first")
        raise RuntimeError
    return run.id


def rebuild_all(world: World) -> None:
    world.rebuild()
    restore_recording_roots(recording_context(world.platform))


def checked(world: World) -> list[tuple[str, str]]:
    platform = world.platform
    others = [recording_comparison(platform)]
    return brief(list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None, others)))


@pytest.mark.parametrize("sql", ["DELETE FROM root", "DELETE FROM root WHERE name LIKE '%/2/1'"])
def test_an_unfinished_recording_that_nothing_keeps_is_told_and_not_collected(
    world: World, recording: str, sql: str
) -> None:
    assert checked(world) == []
    harm(world, sql)
    assert ("index", f"recording/{recording}") in checked(world)
    platform = world.platform
    others = [recording_comparison(platform)]
    with pytest.raises(GcBlocked):
        gc(platform.catalog, platform.entries, platform.objects, older_than=FAR_AHEAD, dry_run=False, others=others)
    rebuild_all(world)
    assert checked(world) == []
    assert [str(recording.id) for recording in list_unfinished(recording_context(platform))] == [recording]
    assert not world.gc().objects


def test_a_rebuild_keeps_of_a_recording_also_what_is_missing_for_it_may_come_back(world: World, recording: str) -> None:
    content = Digest.of(b"first")
    world.place(content).unlink()
    harm(world, "DELETE FROM root")
    rebuild_all(world)
    assert checked(world) == [("missing", str(content))]
    world.platform.objects.put(b"first")
    assert not world.gc().objects
    with Recorder.resume(recording, settings=Settings(cwd=str(world.path.parent))) as run:
        pass
    assert run.digest is not None


def test_a_recording_that_cannot_be_read_is_corrupt_and_one_that_is_a_pack_is_not_looked_at(
    world: World, recording: str
) -> None:
    settings = Settings(cwd=str(world.path.parent))
    with Recorder(model="m", system_prompt="s", settings=settings):
        pass
    with world.platform.catalog.write() as tx:
        stream = f"recording/{recording}"
        tx.streams.append(stream, tx.streams.head(stream), [Event(kind="recorded", body=b"{}")])
    assert checked(world) == [("corrupt", f"recording/{recording}")]


def test_a_recording_whose_pack_was_taken_out_after_its_events_were_collected_is_no_damage(world: World) -> None:
    with Recorder(model="m", system_prompt="s", settings=Settings(cwd=str(world.path.parent))) as run:
        run.step("t", parameters={"long": "x" * 70_000})
    assert run.digest is not None
    assert len(world.gc().objects) == 1
    world.unregister(run.digest)
    rebuild_all(world)
    assert {state for state, _ in checked(world)} == {"orphaned"}
    assert run.digest in world.gc().objects


def test_a_handoff_pack_that_nothing_keeps_is_not_collected(tmp_path: Path, world: World) -> None:
    with open_handoffs(Settings(cwd=str(tmp_path))) as handoffs:
        handoffs.repository.write(HandoffDocument(sections=(), name="kept"))
    soon = world.platform.clock.now() + timedelta(seconds=1)
    harm(world, "DELETE FROM root")
    with pytest.raises(GcBlocked):
        world.gc(older_than=soon)
    world.rebuild()
    assert not world.gc(older_than=soon).objects
    assert world.findings() == []
