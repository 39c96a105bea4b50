"""No pack is made of contents that are damaged or gone; and what became a pack answers without its events."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.adapters.files.objects import FileObjects
from contextplane.app.execution.record import Recorder, recording_context
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import ObjectCondition
from contextplane.model.execution.manifest import Environment, Model
from contextplane.model.ids import Digest, RecordingId
from contextplane.model.problems import DocumentInvalid
from contextplane.record.journal import (
    Journal,
    RecordingContext,
    RecordingDamaged,
    RecordingFinished,
    RecordingIncomplete,
)
from contextplane.record.recorder import Recording
from contextplane.store.gc import gc
from tests.unit.record.recordings import ids, left, manifest_of, store_in, stored


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return store_in(tmp_path)


def interrupt_recording(settings: Settings, *, parent: str | None = None) -> str:
    """Begin a recording whose process dies; return its id."""
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", parent=parent, settings=settings) as run:
        run.input("in.txt", "given")
        run.step("t", output="first")
        run.step("t", output="second")
        run.output("report.md", "made")
        raise RuntimeError
    return run.id


def place(settings: Settings, digest: Digest) -> Path:
    return Path(settings.cwd, ".ctx", "objects", digest.hex[:2], digest.hex[2:])


def flip_a_bit(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def packs(settings: Settings) -> list[Digest]:
    with open_platform(settings) as platform:
        return list(platform.entries.names())


def collect_all(settings: Settings) -> int:
    with open_platform(settings) as platform:
        later = platform.clock.now().replace(year=2200)
        return len(gc(platform.catalog, platform.entries, platform.objects, older_than=later, dry_run=False).objects)


PARTS = {"s": "system_prompt", "given": "inputs/in.txt", "second": "steps/1"}


@pytest.mark.parametrize("content", PARTS)
@pytest.mark.parametrize(
    ("harm", "closed", "error"),
    [
        (flip_a_bit, False, RecordingDamaged),
        (os.remove, False, RecordingIncomplete),
        (flip_a_bit, True, RecordingDamaged),  # and killed before it was registered
    ],
)
def test_a_recording_with_a_content_that_is_damaged_or_gone_is_no_pack_until_the_bytes_are_back(
    settings: Settings, content: str, harm: Callable[[Path], None], error: type[DocumentInvalid], *, closed: bool
) -> None:
    recording = interrupt_recording(settings)
    if closed:
        with open_platform(settings) as platform:
            Journal(recording_context(platform), RecordingId.parse(recording)).close()
    harm(place(settings, Digest.of(content.encode())))
    for _ in range(2):
        with pytest.raises(error) as caught, Recorder.resume(recording, settings=settings):
            pass
        assert caught.value.at == f"{recording}:{PARTS[content]}"
        assert [problem.at for problem in caught.value.problems] == [PARTS[content]]
    assert packs(settings) == []
    assert ids(settings) == [recording]
    assert collect_all(settings) == 0
    with open_platform(settings) as platform:
        platform.objects.put(content.encode())
    with Recorder.resume(recording, settings=settings) as again:
        pass
    assert packs(settings) == [again.digest]


def test_all_that_is_not_whole_is_told_together_and_damage_weighs_more_than_absence(settings: Settings) -> None:
    recording = interrupt_recording(settings)
    place(settings, Digest.of(b"given")).unlink()
    flip_a_bit(place(settings, Digest.of(b"made")))
    with pytest.raises(RecordingDamaged) as caught, Recorder.resume(recording, settings=settings):
        pass
    assert [problem.at for problem in caught.value.problems] == ["inputs/in.txt", "outputs/report.md"]


@pytest.mark.parametrize(
    ("harm", "error"),
    [(flip_a_bit, RecordingDamaged), (os.remove, RecordingIncomplete), (replace_by_pipe, RecordingDamaged)],
)
def test_a_recording_with_a_large_event_that_is_damaged_or_gone_is_refused_and_listed_with_that(
    settings: Settings, harm: Callable[[Path], None], error: type[DocumentInvalid]
) -> None:
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 70_000})
        raise RuntimeError
    (event,) = (digest for digest in stored(settings) if digest != Digest.of(b"s"))
    harm(place(settings, event))
    with pytest.raises(error) as caught, Recorder.resume(run.id, settings=settings):
        pytest.fail("it went on")
    assert caught.value.at == f"{run.id}:events/2"
    assert [recording.problem.partition(":")[0] for recording in left(settings)] == [error.code]


def test_a_run_whose_parent_is_gone_is_no_pack(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as first:
        pass
    assert first.digest is not None
    recording = interrupt_recording(settings, parent=first.reference)
    place(settings, first.digest).unlink()
    with pytest.raises(RecordingIncomplete) as caught, Recorder.resume(recording, settings=settings):
        pass
    assert caught.value.at == f"{recording}:parent"


class _CheckedObjects(FileObjects):
    """Collects which objects are hashed again."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.hashed: list[Digest] = []

    def check(self, digest: Digest) -> ObjectCondition:
        self.hashed.append(digest)
        return super().check(digest)


def test_what_a_recorder_put_itself_is_looked_for_and_not_hashed_again(settings: Settings) -> None:
    recording = interrupt_recording(settings)
    with open_platform(settings) as platform:
        objects = _CheckedObjects(platform.home.objects)
        context = replace(recording_context(platform), objects=objects)
        with _begin(context, "rec_0000000000000001") as run:
            run.step("t", output="its own")
        assert objects.hashed == []
        with pytest.raises(RecordingIncomplete), _begin(context, "rec_0000000000000002") as run:
            run.step("t", output="gone")
            place(settings, Digest.of(b"gone")).unlink()
        with Recording.resume(context, RecordingId.parse(recording)) as run:
            run.output("late.md", "put by this process")
        inherited = (b"s", b"given", b"first", b"second", b"made")
        assert sorted(objects.hashed) == sorted(map(Digest.of, inherited))


def _begin(context: RecordingContext, recording_id: str) -> Recording:
    return Recording.begin(
        context,
        RecordingId.parse(recording_id),
        model=Model(identifier="m"),
        system_prompt="s",
        environment=Environment(os="linux", runtime="python"),
    )


def test_a_recording_that_became_a_pack_answers_also_when_its_large_events_were_collected(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 70_000})
    with Recorder.resume(run.id, settings=settings) as before:
        assert before.remembered
    assert collect_all(settings) == 1
    with Recorder.resume(run.id, settings=settings) as again:
        assert (again.digest, again.remembered) == (run.digest, False)
        with pytest.raises(RecordingFinished):
            again.output("o", "x")
    assert again.finish() == run.digest
    assert len(manifest_of(again, settings).steps) == 1


def test_whoever_is_overtaken_by_a_finish_is_told_also_when_events_were_collected(settings: Settings) -> None:
    with pytest.raises(RecordingFinished), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 70_000})
        with Recorder.resume(run.id, settings=settings):
            pass
        assert collect_all(settings) == 1
        run.output("o", "x")


def test_finishing_what_another_finished_gives_its_pack_also_when_events_were_collected(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 70_000})
        with Recorder.resume(run.id, settings=settings) as other:
            pass
        assert collect_all(settings) == 1
    assert run.digest == other.digest
