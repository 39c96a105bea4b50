"""The beginning of a hash names a pack when it fits exactly one, and never a blob."""

from collections.abc import Iterable

import pytest

from contextplane.model.ids import Digest, ExecutionRef
from contextplane.model.reference import ExecutionPrefix
from contextplane.store.find import AmbiguousPrefix, ExecutionPackNotFound, find_execution_pack
from tests.unit.store.world import World


def named(beginning: str, filling: str = "0") -> Digest:
    return Digest(beginning + filling * (64 - len(beginning)))


def register(world: World, packs: Iterable[Digest]) -> None:
    with world.platform.catalog.write() as tx:
        for pack in packs:
            tx.objects.keep(f"packs/{pack.hex}", pack)


def test_a_whole_hash_names_its_pack(world: World) -> None:
    packs = [named("abcd1"), named("abcd2"), named("f" * 60, "f")]
    register(world, packs)
    for pack in packs:
        assert find_execution_pack(world.platform.catalog, ExecutionRef(pack)) == pack


@pytest.mark.parametrize("digits", ["abcd1", "abcd10", "abcd1" + "0" * 58, "ffff"])
def test_the_beginning_of_a_hash_names_the_one_pack_that_it_fits(world: World, digits: str) -> None:
    register(world, [named("abcd1"), named("abcd2"), named("ffff", "f")])
    assert find_execution_pack(world.platform.catalog, ExecutionPrefix(digits=digits)).hex.startswith(digits)


def test_a_beginning_that_fits_several_is_refused_and_names_them(world: World) -> None:
    register(world, [named("abcd2"), named("abcd1"), named("abce")])
    with pytest.raises(AmbiguousPrefix) as refused:
        find_execution_pack(world.platform.catalog, ExecutionPrefix(digits="abcd"))
    candidates = [f"ctx://{named('abcd1').hex}", f"ctx://{named('abcd2').hex}"]
    assert refused.value.details == {"candidates": candidates, "more": False}
    assert all(candidate in refused.value.message for candidate in candidates)
    assert refused.value.hint


@pytest.mark.parametrize(("count", "more"), [(10, False), (11, True), (50, True)])
def test_of_very_many_it_names_ten_and_says_that_there_are_more(world: World, count: int, more: bool) -> None:  # noqa: FBT001
    register(world, [named(f"abcd{n:02}") for n in range(count)])
    with pytest.raises(AmbiguousPrefix) as refused:
        find_execution_pack(world.platform.catalog, ExecutionPrefix(digits="abcd"))
    assert len(refused.value.details["candidates"]) == 10  # type: ignore[arg-type]
    assert refused.value.details["more"] == more
    assert ("and more" in refused.value.message) == more


@pytest.mark.parametrize(
    "ref", [ExecutionPrefix(digits="abcd"), ExecutionRef(named("abcd")), ExecutionPrefix(digits="0000")]
)
def test_what_fits_nothing_is_not_found(world: World, ref: ExecutionRef | ExecutionPrefix) -> None:
    register(world, [named("abce"), named("abcc"), named("1")])
    with pytest.raises(ExecutionPackNotFound) as refused:
        find_execution_pack(world.platform.catalog, ref)
    assert refused.value.at == str(ref)


def test_a_blob_and_a_pack_that_is_not_registered_are_never_found(world: World) -> None:
    blob = world.record_blob(b"a blob")
    pack = world.pack(b"the report")
    world.catch_up()
    world.unregister(pack)
    world.rebuild()
    for digest in (blob, pack, Digest.of(b"the report")):
        for ref in (ExecutionRef(digest), ExecutionPrefix(digits=digest.hex[:8])):
            with pytest.raises(ExecutionPackNotFound):
                find_execution_pack(world.platform.catalog, ref)


def test_names_of_other_kinds_are_not_looked_at(world: World) -> None:
    with world.platform.catalog.write() as tx:
        tx.objects.keep(f"handoff/{named('abcd').hex}", named("abcd"))
        tx.objects.keep(f"packs/{named('abcd1').hex}", named("abcd1"))
    assert find_execution_pack(world.platform.catalog, ExecutionPrefix(digits="abcd")) == named("abcd1")
