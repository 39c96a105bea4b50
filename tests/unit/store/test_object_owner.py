"""A check calls what is damaged by the run, or the part of one, that people know, in the words of every verb."""

from contextplane.model.ids import Digest
from tests.surfaces.archives import manifest as least
from tests.unit.store.world import World


def reasons_and_refs(world: World) -> dict[str, tuple[str, str | None]]:
    return {finding.what: (finding.why, finding.ref) for finding in world.findings()}


def test_a_part_that_was_tampered_with_is_named_with_its_run(world: World) -> None:
    pack = world.pack(b"first", b"second")
    world.catch_up()
    world.damage(Digest.of(b"second"), b"other")
    ((why, ref),) = reasons_and_refs(world).values()
    assert (
        why == f"ctx://{pack.hex[:12]}:outputs/1.md was tampered with: its bytes have the digest {Digest.of(b'other')}"
    )
    assert ref == f"ctx://{pack.hex}:outputs/1.md"


def test_a_manifest_is_named_as_one_and_its_damaged_contents_as_parts_of_the_run(world: World) -> None:
    pack = world.pack(b"first")
    world.catch_up()
    world.damage(pack, b"other")
    world.place(Digest.of(b"first")).unlink()
    name, findings = f"ctx://{pack.hex[:12]}", reasons_and_refs(world)
    assert findings[str(pack)] == (
        f"the manifest of {name} was tampered with: its bytes have the digest {Digest.of(b'other')}",
        f"ctx://{pack.hex}",
    )
    assert findings[str(Digest.of(b"first"))] == (f"a part of {name} is missing", f"ctx://{pack.hex}")


def test_what_several_runs_consist_of_is_named_by_one_that_can_be_read(world: World) -> None:
    packs = [world.pack(b"shared"), world.pack(b"shared", b"more")]
    world.catch_up()
    world.place(Digest.of(b"shared")).unlink()
    for pack in packs:
        world.place(pack).rename(world.path / "aside")
        (other,) = {*packs} - {pack}
        assert reasons_and_refs(world)[str(Digest.of(b"shared"))][1] == f"ctx://{other.hex}:outputs/0.md"
        (world.path / "aside").rename(world.place(pack))


def test_what_a_run_only_mentions_is_no_part_of_it(world: World) -> None:
    mentioned = world.record_blob(b"mentioned")
    world.register(least(steps=[{"parameters": {"of": str(mentioned)}}]))
    world.catch_up()
    world.place(mentioned).unlink()
    assert reasons_and_refs(world)[str(mentioned)] == ("it is missing", None)


def test_what_no_run_consists_of_has_no_reference(world: World) -> None:
    blob = world.record_blob(b"kept")
    with world.platform.catalog.write() as tx:
        tx.objects.keep("handoff/pk_abcd2345/1", blob)
    world.damage(blob, b"other")
    assert reasons_and_refs(world)[str(blob)] == (
        f"it was tampered with: its bytes have the digest {Digest.of(b'other')}",
        None,
    )
