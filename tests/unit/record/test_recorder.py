"""What was recorded is a pack at the end, and is there to be finished when its process died."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contextplane.app.init import init
from contextplane.app.platform import opened
from contextplane.app.recording import desk_of, recording, resumed
from contextplane.app.settings import Settings
from contextplane.audit.load import load
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.manifest import Environment, Model
from contextplane.ports.catalog import Catalog
from contextplane.record.folding import RecordingBroken
from contextplane.record.recorder import Recorder, RecordingFinished, unfinished
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.store.rebuild import rebuild


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(cwd=str(tmp_path))
    init(settings)
    return settings


def open_recordings(settings: Settings) -> list[str]:
    with opened(settings) as platform:
        return unfinished(desk_of(platform))


def test_a_recorded_run_is_a_registered_pack(settings: Settings) -> None:
    with recording(model="m", system_prompt="s", parameters={"t": 1}, settings=settings) as run:
        run.prompt("user", "hi")
        run.input("order.json", b"{}")
        run.step("read_file", parameters={"path": "order.json"}, output="{}", deterministic=True)
        run.step(kind="reasoning", output="so")
        run.output("report.md", "done")
    assert run.digest is not None
    with opened(settings) as platform:
        manifest = load(run.digest, platform.objects).manifest
        assert [(step.index, step.type, step.tool) for step in manifest.steps] == [
            (0, "tool_call", "read_file"),
            (1, "reasoning", ""),
        ]
        assert manifest.created == manifest.steps[-1].timestamp
        assert [one.name for one in (*manifest.inputs,)] == ["order.json"]
        assert [one.name for one in manifest.outputs] == ["report.md"]
        with platform.catalog.read() as view:
            assert view.packs.row(run.digest) is not None
            assert [name for name, _ in view.objects.roots()] == [f"packs/{run.digest.hex}"]
        findings = list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None))
        assert findings == []
    assert open_recordings(settings) == []


def test_a_run_that_failed_half_way_can_be_gone_on_with(settings: Settings) -> None:
    with pytest.raises(RuntimeError), recording(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", output="first")
        raise RuntimeError
    assert open_recordings(settings) == [run.id]
    with resumed(run.id, settings=settings) as again:
        again.step("t", output="second")
    assert again.digest is not None
    with opened(settings) as platform:
        assert len(load(again.digest, platform.objects).manifest.steps) == 2
    assert open_recordings(settings) == []


def test_nothing_of_an_unfinished_run_is_collected_also_after_a_rebuild(settings: Settings) -> None:
    with pytest.raises(RuntimeError), recording(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 100_000}, output="first")
        raise RuntimeError
    with opened(settings) as platform:
        rebuild(platform.catalog, platform.entries, platform.objects)
        later = platform.clock.now().replace(year=2200)
        assert not gc(platform.catalog, platform.entries, platform.objects, older_than=later, dry_run=False).objects
    with resumed(run.id, settings=settings) as again:
        pass
    with opened(settings) as platform:
        assert again.digest is not None
        steps = load(again.digest, platform.objects).manifest.steps
        assert steps[0].parameters == {"long": "x" * 100_000}


def test_a_finished_run_takes_nothing_more_and_finishing_again_gives_the_same(settings: Settings) -> None:
    with recording(model="m", system_prompt="s", settings=settings) as run:
        run.output("o", "x")
    with opened(settings) as platform:
        desk = desk_of(platform)
        assert unfinished(desk) == []
    with resumed(run.id, settings=settings) as again:
        assert again.finish() == run.digest
        with pytest.raises(RecordingFinished):
            again.output("late", "x")


@pytest.mark.parametrize("harm", ["name", "flag", "surrogate", "set"])
def test_what_cannot_be_recorded_is_refused_before_it_is_written(settings: Settings, harm: str) -> None:
    with recording(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", output="good")
        with pytest.raises((ContextPlaneError, UnicodeEncodeError)):
            if harm == "name":
                run.output(5, "x")  # type: ignore[arg-type]
            elif harm == "flag":
                run.step("t", deterministic="no")  # type: ignore[arg-type]
            elif harm == "surrogate":
                run.step("t", parameters={"a": "\ud800"})
            else:
                run.step("t", parameters={"a": {1, 2}})  # type: ignore[dict-item]
    assert run.digest is not None
    assert open_recordings(settings) == []


def test_an_id_is_used_once_and_only_what_was_begun_is_resumed(settings: Settings) -> None:
    with recording(model="m", system_prompt="s", settings=settings) as run:
        pass
    with opened(settings) as platform, pytest.raises(RecordingFinished):
        Recorder.begin(desk_of(platform), run.id, model=Model(), system_prompt="s", environment=Environment())
    with pytest.raises(RecordingBroken), resumed("never", settings=settings):
        pass


CHILD = """
import os, signal, sys
from contextplane.app.recording import recording
from contextplane.app.settings import Settings
with recording(model="m", system_prompt="s", settings=Settings(cwd=sys.argv[1])) as run:
    for n in range(int(sys.argv[2])):
        run.step("t", output=f"step {n}")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_a_process_that_is_killed_leaves_what_it_recorded(settings: Settings, steps: int) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, settings.cwd, str(steps)], check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL
    (left,) = open_recordings(settings)
    with resumed(left, settings=settings) as again:
        pass
    with opened(settings) as platform:
        assert again.digest is not None
        manifest = load(again.digest, platform.objects).manifest
        texts = [platform.objects.get(target) for role, target in _steps(platform.catalog, again.digest)]
    assert len(manifest.steps) == steps
    assert texts == [f"step {n}".encode() for n in range(steps)]


def _steps(catalog: Catalog, digest: Digest) -> list[tuple[str, Digest]]:
    with catalog.read() as view:
        return [(role, target) for role, target in view.objects.targets(digest) if role == "steps"]
