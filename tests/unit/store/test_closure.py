"""What packs reach is read from their manifests: all of it, each object once, and nothing of what is not there."""

import msgspec
import pytest

from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound
from contextplane.store.closure import PackClosure, PackIncomplete, PackNotUnderstood, pack_closure
from tests.surfaces.archives import manifest as least
from tests.unit.store.world import World

ABSENT = Digest.of(b"nobody has this")
SHARED = {Digest.of(b"order 881"), Digest.of(b"Refund order 881"), Digest.of(b"You are careful.")}


def test_a_pack_reaches_its_contents_and_its_line_of_parents(world: World) -> None:
    first = world.pack(b"one")
    second = world.pack(b"two", parent=first.hex)
    third = world.pack(b"three", b"two", parent=second.hex)
    world.pack(b"somebody else's")
    closure = pack_closure([third], world.platform.objects)
    assert closure.parents == {third: second, second: first, first: None}
    assert closure.contents.keys() == SHARED | {Digest.of(b"one"), Digest.of(b"two"), Digest.of(b"three")}
    assert (closure.mentions, closure.absent_parents()) == (set(), [])
    assert closure.line([second]) == {second, first}


def test_several_packs_reach_what_each_of_them_reaches(world: World) -> None:
    packs = [world.pack(b"one"), world.pack(b"two")]
    closure = pack_closure([*packs, *packs], world.platform.objects)
    assert closure.parents == dict.fromkeys(packs)
    assert closure.contents.keys() == SHARED | {Digest.of(b"one"), Digest.of(b"two")}


def test_the_index_is_not_asked(world: World) -> None:
    pack = world.pack(b"one")
    assert world.roots() == []
    assert Digest.of(b"one") in pack_closure([pack], world.platform.objects).contents


def test_a_digest_elsewhere_in_a_manifest_is_a_mention(world: World) -> None:
    pack = world.register(least(steps=[{"parameters": {"of": str(ABSENT)}}]))
    assert pack_closure([pack], world.platform.objects).mentions == {ABSENT}


def test_a_parent_that_is_not_there_ends_the_line_and_is_named(world: World) -> None:
    pack = world.pack(b"one", parent=ABSENT.hex)
    closure = pack_closure([pack], world.platform.objects)
    assert (closure.parents, closure.absent_parents()) == ({pack: ABSENT}, [ABSENT])
    assert closure.line([pack]) == {pack}


def test_a_pack_that_is_not_there_is_an_error(world: World) -> None:
    with pytest.raises(ObjectNotFound):
        pack_closure([ABSENT], world.platform.objects)


def test_a_tampered_manifest_is_corrupt_and_not_absent_also_as_a_parent(world: World) -> None:
    parent = world.pack(b"one")
    pack = world.pack(b"two", parent=parent.hex)
    world.damage(parent, b"{}")
    for digest in (parent, pack):
        with pytest.raises(ObjectCorrupt):
            pack_closure([digest], world.platform.objects)


@pytest.mark.parametrize(
    "manifest",
    [
        b"not JSON",
        b"[]",
        b'{"version":"0.2","steps":[]}',
        b'{"version":"0.1","steps":[],"system_prompt":"sha256:short"}',
        b'{"version":"0.1","steps":{}}',
    ],
)
def test_a_manifest_that_is_not_wholly_understood_is_refused_by_name(world: World, manifest: bytes) -> None:
    pack = world.register(manifest)
    with pytest.raises(PackNotUnderstood) as caught:
        pack_closure([pack], world.platform.objects)
    assert caught.value.at == f"ctx://{pack.hex}"


@pytest.mark.parametrize("field", ["created", "model", "environment", "system_prompt"])
def test_a_manifest_that_no_verb_could_read_is_refused_with_the_place(world: World, field: str) -> None:
    whole = msgspec.json.decode(least(), type=dict[str, object])
    pack = world.register(msgspec.json.encode({key: value for key, value in whole.items() if key != field}))
    with pytest.raises(PackNotUnderstood) as caught:
        pack_closure([pack], world.platform.objects)
    assert caught.value.at == f"ctx://{pack.hex}#/{field}"


def test_something_larger_than_any_manifest_is_not_read(world: World) -> None:
    pack = world.pack(b"one")
    world.place(pack).chmod(0o644)
    with world.place(pack).open("r+b") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(PackNotUnderstood):
        pack_closure([pack], world.platform.objects)


def test_what_is_missing_is_named_with_the_pack_that_misses_it(world: World) -> None:
    pack = world.pack(b"one")
    world.place(Digest.of(b"one")).unlink()
    closure = pack_closure([pack], world.platform.objects)
    with pytest.raises(PackIncomplete) as caught:
        closure.require(world.platform.objects.has)
    assert caught.value.message == "missing: outputs/0.md"
    assert caught.value.at == f"ctx://{pack.hex}"
    ref = f"ctx://{pack.hex}:outputs/0.md"
    assert caught.value.details["missing"] == [{"ref": ref, "digest": str(Digest.of(b"one"))}]
    assert caught.value.hint


def test_everything_that_is_missing_is_named_at_once(world: World) -> None:
    parent = world.pack(b"one", b"two")
    pack = world.pack(*(b"more %d" % n for n in range(10)), parent=parent.hex)
    closure = pack_closure([pack], world.platform.objects)
    lost = {Digest.of(b"one"), Digest.of(b"two")}
    with pytest.raises(PackIncomplete) as caught:
        closure.require(lambda digest: digest not in lost)
    assert (caught.value.message, caught.value.at) == ("missing: outputs/0.md, outputs/1.md", f"ctx://{parent.hex}")
    lost |= {Digest.of(b"more %d" % n) for n in range(10)}
    with pytest.raises(PackIncomplete) as caught:
        closure.require(lambda digest: digest not in lost)
    assert caught.value.message.endswith(" and 2 more")
    listed = caught.value.details["missing"]
    assert isinstance(listed, list)
    assert {entry["digest"] for entry in listed} == {str(digest) for digest in lost}
    assert {entry["ref"].partition(":outputs/")[0] for entry in listed} == {
        f"ctx://{digest.hex}" for digest in (parent, pack)
    }


def test_nothing_reaches_nothing(world: World) -> None:
    closure = pack_closure([], world.platform.objects)
    assert (closure.parents, closure.contents, closure.line([ABSENT])) == ({}, {}, set())
    PackClosure().require(lambda _: False)
