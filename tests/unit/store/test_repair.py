"""What was put back is found again as before it was damaged; where the index is behind, a check tells it."""

from collections.abc import Callable

import msgspec
import pytest

from contextplane.app.execution.archive import export_packs, import_packs
from contextplane.app.execution.pack import pack_log, register_in_transaction
from contextplane.model.ids import Digest
from contextplane.store.damage import Damage, RepairedObject
from contextplane.store.find import UNREAD
from tests.unit.store.world import World, world_in

REPORT = b"All of it was refunded."


def log(model: str = "m-1") -> bytes:
    return msgspec.json.encode(
        {
            "model": {"identifier": model},
            "system_prompt": "You are careful.",
            "outputs": [{"name": "report.md", "content": REPORT.decode()}],
            "environment": {"os": "linux", "runtime": "python3.11"},
        }
    )


def packed(world: World, model: str = "m-1") -> Digest:
    return pack_log(world.platform, log(model), root=str(world.path)).digest


def search_hits(world: World, words: str = "refunded") -> list[tuple[Digest, str]]:
    with world.platform.catalog.read() as view:
        return [(hit.pack, hit.part) for hit in view.texts.search(words, 10)]


def unread(world: World) -> list[str]:
    with world.platform.catalog.read() as view:
        return list(view.marks.names(UNREAD))


def overwritten(world: World, digest: Digest) -> None:
    world.damage(digest, b"other bytes")


def gone(world: World, digest: Digest) -> None:
    world.place(digest).unlink()


harms = pytest.mark.parametrize("harm", [overwritten, gone])


def pack_again(world: World, _pack: Digest) -> None:
    packed(world)


def import_again(world: World, _pack: Digest) -> None:
    import_packs(world.platform, str(world.path.parent / "run.tar"))


def record_again(world: World, pack: Digest) -> None:
    """As who finishes a recording, or finalizes a draft, does."""
    world.record_blob(REPORT, written=None)
    with world.platform.catalog.write() as tx:
        register_in_transaction(world.platform, tx, pack, world.platform.objects.get(pack))


@harms
@pytest.mark.parametrize("heal", [pack_again, import_again, record_again])
def test_a_text_that_was_put_back_is_found_as_before_without_a_rebuild(
    world: World, harm: Callable[[World, Digest], None], heal: Callable[[World, Digest], None]
) -> None:
    pack = packed(world)
    export_packs(world.platform, [pack], str(world.path.parent / "run.tar"))
    before = search_hits(world)
    assert before == [(pack, "outputs/report.md")]
    harm(world, Digest.of(REPORT))
    world.rebuild()
    assert search_hits(world) == []
    heal(world, pack)
    assert search_hits(world) == before
    assert (unread(world), world.findings()) == ([], [])


@harms
def test_a_text_that_something_else_put_back_is_told_by_a_check_and_found_after_a_rebuild(
    world: World, harm: Callable[[World, Digest], None]
) -> None:
    pack = packed(world)
    harm(world, Digest.of(REPORT))
    world.rebuild()
    assert "index" not in {finding.state for finding in world.findings()}  # what it lacks is the object
    other = packed(world, "m-2")
    assert search_hits(world) == [(other, "outputs/report.md")]
    assert [(finding.state, finding.what) for finding in world.findings()] == [("index", f"packs/{pack.hex}")]
    world.rebuild()
    assert (world.findings(), {digest for digest, _ in search_hits(world)}) == ([], {pack, other})


def test_what_is_still_damaged_stays_told_as_not_searched(world: World) -> None:
    pack = packed(world)
    prompt = Digest.of(b"You are careful.")
    for digest in (prompt, Digest.of(REPORT)):
        gone(world, digest)
    world.rebuild()
    record_again(world, pack)
    assert (search_hits(world), search_hits(world, "careful")) == ([(pack, "outputs/report.md")], [])
    assert unread(world) == [f"{UNREAD}{pack.hex}/{prompt.hex}"]
    assert [finding.state for finding in world.findings()] == ["missing"]


def test_packing_a_whole_run_again_does_not_index_it_anew(world: World) -> None:
    packed(world)
    other = packed(world, "m-2")
    assert search_hits(world)[0][0] == other  # the one that was indexed last comes first
    packed(world)
    assert search_hits(world)[0][0] == other


@pytest.mark.parametrize(("harm", "damage"), [(overwritten, "tampered"), (gone, "missing")])
@pytest.mark.parametrize("manifest", [False, True], ids=["content", "manifest"])
def test_packing_and_importing_tell_what_they_put_back(
    world: World,
    harm: Callable[[World, Digest], None],
    damage: Damage,
    manifest: bool,  # noqa: FBT001
) -> None:
    pack, file = packed(world), str(world.path.parent / "run.tar")
    export_packs(world.platform, [pack], file)
    hurt = pack if manifest else Digest.of(REPORT)
    repaired = (RepairedObject(digest=hurt, damage=damage),)
    harm(world, hurt)
    again = pack_log(world.platform, log(), root=str(world.path))
    assert (again.new, again.put_back) == (False, repaired)
    assert pack_log(world.platform, log(), root=str(world.path)).put_back == ()
    harm(world, hurt)
    done = import_packs(world.platform, file)
    assert (done.new_packs, done.new_objects, done.put_back) == ((), 0, repaired)
    assert import_packs(world.platform, file).put_back == ()
    assert world.findings() == []


def test_what_comes_for_the_first_time_is_new_and_not_put_back(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pack, file = packed(world), str(world.path.parent / "run.tar")
    child = pack_log(world.platform, log("m-2"), root=str(world.path), parent=pack).digest
    export_packs(world.platform, [child], file)
    with world_in(tmp_path_factory.mktemp("there")) as there:
        done = import_packs(there.platform, file)
        assert (len(done.new_packs), done.new_objects, done.put_back) == (2, 4, ())


def test_a_new_run_that_brings_a_content_back_tells_it_when_it_is_imported(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = str(world.path.parent / "run.tar")
    export_packs(world.platform, [packed(world, "m-2")], file)
    with world_in(tmp_path_factory.mktemp("there")) as there:
        packed(there)
        gone(there, Digest.of(REPORT))
        done = import_packs(there.platform, file)
        assert (len(done.new_packs), done.new_objects) == (1, 1)
        assert done.put_back == (RepairedObject(digest=Digest.of(REPORT), damage="missing"),)
