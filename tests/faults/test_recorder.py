"""A recorder that is killed at any point: what it acknowledged becomes exactly one pack."""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.app.execution.record import Recorder, recording_context
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.audit.load import load_pack
from contextplane.model.catalog import Event
from contextplane.model.execution.manifest import Environment, Model
from contextplane.model.ids import Digest, RecordingId
from contextplane.ports.objects import ObjectsInUse
from contextplane.record.journal import Journal, RecordingFinished
from contextplane.record.recorder import Recording, list_unfinished
from contextplane.store.damage import DAMAGE
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.testing.faults import Faults
from tests.faults.recorders import ID, STEPS, FaultyCatalog, KilledRecorder, kill_everywhere
from tests.surfaces.commands import ctx

FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


def test_wherever_a_recorder_is_killed_a_later_finish_gives_one_pack_of_what_it_acknowledged(folder: Path) -> None:
    store = folder / "0"
    store.mkdir()
    init(Settings(cwd=str(store)), ".")
    recorders = kill_everywhere(folder)
    assert [killed.alive for killed in recorders] == [False] * (len(recorders) - 1) + [True]
    # Every word was the last one of some recorder: kills happened before and after each event, and in the finish.
    assert {killed.acknowledged[-1:] for killed in recorders} == {
        (),
        ("begun",),
        ("step-0",),
        ("step-1",),
        ("step-2",),
        ("finished",),
    }
    for killed in recorders:
        with open_platform(Settings(cwd=str(folder / str(killed.nth)))) as platform:
            _assert_finishes(platform, killed)


def _assert_finishes(platform: Platform, killed: KilledRecorder) -> None:
    context = recording_context(platform)
    unfinished = list_unfinished(context)
    assert [str(recording.id) for recording in unfinished] in ([], [ID])
    if not unfinished and "step-2" not in killed.acknowledged:
        assert killed.acknowledged == ()  # it did not begin
        assert list(platform.entries.names()) == []
    else:
        if list(platform.entries.names()):  # a pack exists: the recording must not continue
            with pytest.raises(RecordingFinished):
                Recording.resume(context, RecordingId(ID)).step("t")
        steps = len(killed.acknowledged) - 1 if killed.acknowledged else 0
        digest = Recording.resume(context, RecordingId(ID)).finish()
        assert list(platform.entries.names()) == [digest]
        assert _outputs(platform, digest) in (list(STEPS[:steps]), list(STEPS[: steps + 1])), killed
        assert Recording.resume(context, RecordingId(ID)).finish() == digest
    assert list_unfinished(context) == []
    with platform.catalog.read() as view:
        assert [name for name, _ in view.objects.roots()] == [f"packs/{name.hex}" for name in platform.entries.names()]
    findings = list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None))
    assert [finding for finding in findings if finding.state in DAMAGE or "unknown" in finding.why] == [], killed
    gc(platform.catalog, platform.entries, platform.objects, older_than=FAR_AHEAD, dry_run=False)
    with platform.catalog.read() as view:
        assert set(platform.objects.names()) == set(view.objects.reachable()), killed


def _outputs(platform: Platform, digest: Digest) -> list[bytes]:
    refs = [step.output_ref for step in load_pack(digest, platform.objects).manifest.steps]
    return [platform.objects.get(Digest.parse(ref)) if ref else b"" for ref in refs]


def test_unfinished_recordings_outlive_the_catalog_that_listed_them(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path))
    init(settings, ".")
    with Recorder(model="m", system_prompt="s", settings=settings) as done:
        done.step("t", output="done")
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 70_000}, output="first")
        raise RuntimeError
    with open_platform(settings) as platform, platform.catalog.write() as tx:
        for name in ("of-somebody-else", "rec_0123456789abcdef"):
            tx.streams.append(f"recording/{name}", 0, [Event(kind="recorded", body=b"{}")])
    with closing(sqlite3.connect(tmp_path / ".ctx" / "catalog.db")) as db:
        db.execute("DROP TABLE root")
    assert ctx("fsck", "--rebuild", cwd=tmp_path).status == 1
    with open_platform(settings) as platform:
        assert [str(recording.id) for recording in list_unfinished(recording_context(platform))] == [run.id]
        gc(platform.catalog, platform.entries, platform.objects, older_than=FAR_AHEAD, dry_run=False)
    with Recorder.resume(run.id, settings=settings) as again:
        again.step("t", output="second")
    assert again.digest is not None
    with open_platform(settings) as platform:
        assert _outputs(platform, again.digest) == [b"first", b"second"]
        assert list_unfinished(recording_context(platform)) == []
        assert len(list(platform.entries.names())) == 2


def test_a_recording_that_was_closed_and_not_registered_outlives_its_catalog_too(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path))
    init(settings, ".")
    with Recorder(model="m", system_prompt="s", settings=settings):
        pass
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", output="first")
        raise RuntimeError
    with open_platform(settings) as platform:
        closed = Journal(recording_context(platform), RecordingId(run.id)).close()
    with closing(sqlite3.connect(tmp_path / ".ctx" / "catalog.db")) as db:
        db.execute("DROP TABLE root")
    assert ctx("fsck", "--rebuild", cwd=tmp_path).status == 1
    with open_platform(settings) as platform:
        assert [str(recording.id) for recording in list_unfinished(recording_context(platform))] == [run.id]
        gc(platform.catalog, platform.entries, platform.objects, older_than=FAR_AHEAD, dry_run=False)
    assert ctx("finalize", run.id, cwd=tmp_path).out == f"ctx://{closed.digest.hex}\n"
    with open_platform(settings) as platform:
        assert _outputs(platform, closed.digest) == [b"first"]
        assert list_unfinished(recording_context(platform)) == []


class _CollectingFaults(Faults):
    """No fault: runs a collection of everything unreferenced before every transaction of the recorder."""

    def __init__(self, platform: Platform) -> None:
        super().__init__()
        self._platform = platform

    def hit(self, call: str) -> None:
        if call == "turn":
            store = self._platform
            with suppress(ObjectsInUse):
                gc(store.catalog, store.entries, store.objects, older_than=FAR_AHEAD, dry_run=False, patience=0)


def test_collecting_everything_between_any_two_steps_of_a_recorder_takes_nothing_of_its_run(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path))
    init(settings, ".")
    (tmp_path / "file").write_bytes(b"of a file")
    with open_platform(settings) as platform:
        platform.objects.put(b"there before")
        context = replace(
            recording_context(platform), catalog=FaultyCatalog(platform.catalog, _CollectingFaults(platform))
        )
        environment = Environment(os="linux", runtime="py")
        with Recording.begin(
            context, RecordingId(ID), model=Model(identifier="m"), system_prompt="s", environment=environment
        ) as run:
            run.step("t", output=b"there before")
            run.step("t", output=tmp_path / "file")
            run.step("t", parameters={"long": "x" * 70_000}, output=[b"of ", b"chunks"])
        assert run.digest is not None
        assert _outputs(platform, run.digest) == [b"there before", b"of a file", b"of chunks"]
