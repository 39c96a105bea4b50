"""A parent that was never here is told apart from one that was lost."""

from collections.abc import Callable

import pytest

from contextplane.model.ids import Digest
from tests.unit.store.world import World


def finding_states(world: World) -> list[tuple[str, str]]:
    return [(finding.state, finding.what) for finding in world.findings()]


def test_a_parent_that_was_never_here_is_told_and_is_no_damage(world: World) -> None:
    child = world.pack(b"child", parent="0" * 64)
    world.catch_up()
    for _ in range(2):
        (finding,) = world.findings()
        assert (finding.state, finding.what, finding.needed_by) == ("absent", f"sha256:{'0' * 64}", (str(child),))
        world.rebuild()


def _lost(world: World, _child: Digest, parent: Digest) -> None:
    world.place(parent).unlink()


def _lost_before_a_rebuild(world: World, _child: Digest, parent: Digest) -> None:
    world.place(parent).unlink()
    world.rebuild()


def _an_output_besides(world: World, _child: Digest, parent: Digest) -> None:
    data = world.place(parent).read_bytes()
    world.pack(data)
    world.catch_up()
    world.place(parent).unlink()


def _registered(world: World, _child: Digest, parent: Digest) -> None:
    (world.path / "packs" / parent.hex).write_bytes(str(parent).encode())
    world.place(parent).unlink()
    world.catch_up()


@pytest.mark.parametrize("way", [_lost, _lost_before_a_rebuild, _an_output_besides, _registered])
def test_a_parent_that_was_here_is_missing_however_it_was_lost(
    world: World, way: Callable[[World, Digest, Digest], None]
) -> None:
    parent = world.pack(b"parent")
    child = world.pack(b"child", parent=parent.hex)
    world.unregister(parent)
    world.catch_up()
    way(world, child, parent)
    assert ("missing", str(parent)) in finding_states(world)
    assert "absent" not in {finding.state for finding in world.findings()}


def test_what_is_a_parent_and_a_content_is_missing_as_a_content(world: World) -> None:
    parent = world.pack(b"parent")
    data = world.place(parent).read_bytes()
    world.pack(b"child", parent=parent.hex)
    world.pack(data)
    world.unregister(parent)
    world.place(parent).unlink()
    world.catch_up()
    assert ("missing", str(parent)) in finding_states(world)
