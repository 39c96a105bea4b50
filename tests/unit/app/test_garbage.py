"""Collecting garbage: the grace time that was named, and what other packages must agree to."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from contextplane.app.execution.record import recording_context
from contextplane.app.maintenance import collect_garbage
from contextplane.app.settings import Settings
from contextplane.model.execution.manifest import Environment, Model
from contextplane.model.ids import Digest, RecordingId
from contextplane.record.recorder import Recording
from contextplane.store.gc import GcBlocked
from tests.unit.store.world import World, world_in


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as world:
        yield world


def collect(world: World, grace: timedelta) -> tuple[Digest, ...]:
    settings = Settings(cwd=str(world.path.parent))
    return collect_garbage(world.platform, settings, grace=grace, dry_run=False).objects


def test_only_what_is_older_than_the_grace_time_is_collected(world: World) -> None:
    old, young = world.record_blob(b"old"), world.record_blob(b"young", written=None)
    assert collect(world, timedelta(hours=1)) == (old,)
    assert collect(world, timedelta(0)) == (young,)


def test_nothing_is_collected_while_nothing_keeps_a_recording(world: World) -> None:
    orphan = world.record_blob(b"orphan")
    Recording.begin(
        recording_context(world.platform),
        RecordingId("rec_" + "0" * 16),
        model=Model(identifier="m-1"),
        system_prompt="You are careful.",
        environment=Environment(os="linux", runtime="py3.11"),
    )
    with world.platform.catalog.write() as tx:
        for name, _ in list(tx.objects.roots("recording/")):
            tx.objects.release(name)
    with pytest.raises(GcBlocked):
        collect(world, timedelta(0))
    assert world.platform.objects.has(orphan)
