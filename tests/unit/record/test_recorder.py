"""What was recorded is a pack at the end, and is there to be finished when its process died."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from contextplane.app.execution.record import Recorder, recording_context
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event
from contextplane.model.execution.manifest import Environment, Model
from contextplane.model.ids import Digest, InvalidId, RecordingId
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.record.events import RecordingBroken
from contextplane.record.journal import RecordingFinished, RecordingTaken
from contextplane.record.recorder import Recording, RecordingNotFound, list_unfinished
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.store.rebuild import rebuild
from tests.unit.record.recordings import ids, left, manifest_of, store_in

NEVER = "rec_0123456789abcdef"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return store_in(tmp_path)


def test_a_recorded_run_is_a_registered_pack(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", parameters={"t": 1}, settings=settings) as run:
        run.prompt("user", "hi")
        run.input("order.json", b"{}")
        run.step("read_file", parameters={"path": "order.json"}, output="{}", deterministic=True)
        run.step(kind="reasoning", output="so")
        run.output("report.md", "done")
        assert (run.digest, run.reference) == (None, None)
    assert run.digest is not None
    assert run.reference == f"ctx://{run.digest.hex}"
    manifest = manifest_of(run, settings)
    assert [(step.index, step.type, step.tool) for step in manifest.steps] == [
        (0, "tool_call", "read_file"),
        (1, "reasoning", ""),
    ]
    assert manifest.created == manifest.steps[-1].timestamp
    assert [(entry.name, entry.size) for entry in manifest.inputs] == [("order.json", 2)]
    assert [output.name for output in manifest.outputs] == ["report.md"]
    with open_platform(settings) as platform:
        with platform.catalog.read() as view:
            assert view.packs.row(run.digest) is not None
            assert [name for name, _ in view.objects.roots()] == [f"packs/{run.digest.hex}"]
        findings = list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None))
        assert findings == []
    assert ids(settings) == []


def test_a_run_without_steps_was_made_when_it_began(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        begun = left(settings)[0].begun
    assert Timestamp.parse(manifest_of(run, settings).created) == begun


def test_the_store_is_opened_when_the_block_is_entered(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path))
    recorder = Recorder(model="m", system_prompt="s", settings=settings)
    init(settings)
    with recorder as first:
        first.output("o", "1")
    with recorder as second:
        second.output("o", "2")
    assert first.id != second.id
    assert first.digest != second.digest


# --- going on with it -------------------------------------------------------------------------------------------------


def test_a_run_that_failed_half_way_can_be_gone_on_with(settings: Settings) -> None:
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", output="first")
        raise RuntimeError
    (recording,) = left(settings)
    assert (str(recording.id), recording.model, recording.steps, recording.problem) == (run.id, "m", 1, "")
    with pytest.raises(ContextPlaneError):
        run.step("t", output="after the store was closed")
    with Recorder.resume(run.id, settings=settings) as again:
        again.step("t", output="second")
    assert len(manifest_of(again, settings).steps) == 2
    assert ids(settings) == []


def test_unfinished_recordings_are_listed_newest_first_and_finished_ones_are_not_looked_at(settings: Settings) -> None:
    begun, finished = [], ""
    for model in ("m-1", "m-2", "m-3"):
        with pytest.raises(RuntimeError), Recorder(model=model, system_prompt="s", settings=settings) as run:
            begun.append(run.id)
            raise RuntimeError
        with Recorder(model=model, system_prompt="s", settings=settings) as run:
            finished = run.id
    assert [recording.model for recording in left(settings)] == ["m-3", "m-2", "m-1"]
    assert ids(settings) == begun[::-1]
    with open_platform(settings) as platform:
        with platform.catalog.write() as tx:  # were it read, it would be told
            tx.streams.append(f"recording/{finished}", tx.streams.head(f"recording/{finished}"), [_JUNK])
        assert len(list_unfinished(recording_context(platform))) == 3


_JUNK = Event(kind="recorded", body=b"{}")


def test_a_recording_that_cannot_be_read_is_listed_with_its_problem_and_refused(settings: Settings) -> None:
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        raise RuntimeError
    with open_platform(settings) as platform, platform.catalog.write() as tx:
        tx.streams.append(f"recording/{run.id}", 1, [_JUNK])
        tx.objects.keep("recording/of-somebody-else/1/0", Digest.of(b"x"))  # no recording of ours
    (recording,) = left(settings)
    assert (str(recording.id), recording.problem.partition(":")[0]) == (run.id, "recording_broken")
    with pytest.raises(RecordingBroken), Recorder.resume(run.id, settings=settings):
        pytest.fail("it went on")


def test_a_recording_that_is_not_what_it_was_closed_as_is_no_pack(settings: Settings) -> None:
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        raise RuntimeError
    body = canonical({"type": "finished", "digest": str(Digest.of(b"another run"))})
    with open_platform(settings) as platform, platform.catalog.write() as tx:
        tx.streams.append(f"recording/{run.id}", 1, [Event(kind="recorded", body=body)])
    with pytest.raises(RecordingBroken), Recorder.resume(run.id, settings=settings):
        pass
    with open_platform(settings) as platform:
        assert list(platform.entries.names()) == []


@pytest.mark.parametrize("body", [b"[]", b'{"ref": 1}', b'{"ref": "x"}', b'{"type": "noted"}', b"{"])
def test_a_stream_that_no_recorder_wrote_is_refused(settings: Settings, body: bytes) -> None:
    with open_platform(settings) as platform, platform.catalog.write() as tx:
        tx.streams.append(f"recording/{NEVER}", 0, [Event(kind="recorded", body=body)])
    with pytest.raises(RecordingBroken) as caught, Recorder.resume(NEVER, settings=settings):
        pytest.fail("it went on")
    assert caught.value.at == NEVER


def test_nothing_of_an_unfinished_run_is_collected_also_after_a_rebuild(settings: Settings) -> None:
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"long": "x" * 100_000}, output="first")
        raise RuntimeError
    with open_platform(settings) as platform:
        rebuild(platform.catalog, platform.entries, platform.objects)
        later = platform.clock.now().replace(year=2200)
        assert not gc(platform.catalog, platform.entries, platform.objects, older_than=later, dry_run=False).objects
    with Recorder.resume(run.id, settings=settings) as again:
        pass
    assert manifest_of(again, settings).steps[0].parameters == {"long": "x" * 100_000}
    with open_platform(settings) as platform:  # the event itself was too large for the catalog; now nobody needs it
        assert gc(platform.catalog, platform.entries, platform.objects, older_than=later, dry_run=False).freed > 100_000


def test_a_finished_run_takes_nothing_more_and_finishing_again_gives_the_same(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.output("o", "x")
    with pytest.raises(RecordingFinished):
        run.output("late", "x")
    with Recorder.resume(run.id, settings=settings) as again:
        assert again.digest == run.digest == again.finish()
        with pytest.raises(RecordingFinished):
            again.output("late", "x")


def test_who_is_overtaken_is_told_and_records_nothing(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        with Recorder.resume(run.id, settings=settings) as other:
            other.step("t", output="of the other")
            for _ in range(2):
                with pytest.raises(RecordingTaken):
                    run.step("t", output="mine")
        with pytest.raises(RecordingFinished):
            run.step("t", output="mine")
    assert run.digest == other.digest
    assert [step.tool for step in manifest_of(run, settings).steps] == ["t"]


def test_threads_may_share_one_and_nothing_is_lost(settings: Settings) -> None:
    def work(run: Recording, thread: int) -> None:
        for n in range(10):
            run.step("t", parameters={"thread": thread, "n": n}, output=f"{thread} {n}")

    with Recorder(model="m", system_prompt="s", settings=settings) as run, ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, run, thread) for thread in range(4)]:
            done.result()
    steps = [step.parameters or {} for step in manifest_of(run, settings).steps]
    assert len(steps) == 40
    for thread in range(4):
        assert [step["n"] for step in steps if step["thread"] == thread] == list(range(10))


def test_an_id_is_used_once_and_only_what_was_begun_goes_on(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        pass
    with open_platform(settings) as platform, pytest.raises(RecordingFinished):
        Recording.begin(
            recording_context(platform),
            RecordingId(run.id),
            model=Model(identifier="m"),
            system_prompt="s",
            environment=Environment(os="linux", runtime="py"),
        )
    with pytest.raises(RecordingNotFound), Recorder.resume(NEVER, settings=settings):
        pytest.fail("it went on")
    with pytest.raises(InvalidId), Recorder.resume("never", settings=settings):
        pytest.fail("it went on")


names = st.text(min_size=1, max_size=5)
calls = st.lists(
    st.tuples(st.sampled_from(["prompt", "input", "step", "output"]), names, st.binary(max_size=20)), max_size=6
)


@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(calls=calls, cut=st.integers(0, 6))
def test_wherever_a_run_is_cut_and_gone_on_with_the_pack_holds_all_of_it_in_order(
    settings: Settings, calls: list[tuple[str, str, bytes]], cut: int
) -> None:
    def replay(run: Recording, some: Iterable[tuple[str, str, bytes]]) -> None:
        for call, name, data in some:
            if call == "step":
                run.step(name, output=data)
            else:
                getattr(run, call)(name, data)

    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        replay(run, calls[:cut])
        raise RuntimeError
    with Recorder.resume(run.id, settings=settings) as again:
        replay(again, calls[cut:])
    manifest = manifest_of(again, settings)

    def of(kind: str) -> list[tuple[str, str]]:
        return [
            (name, str(Digest.of(data)) if data or kind != "step" else "") for call, name, data in calls if call == kind
        ]

    assert [(prompt.role, prompt.content_ref) for prompt in manifest.prompts] == of("prompt")
    assert [(entry.name, entry.content_ref) for entry in manifest.inputs] == of("input")
    assert [(step.tool, step.output_ref) for step in manifest.steps] == of("step")
    assert [(output.name, output.content_ref) for output in manifest.outputs] == of("output")
    assert run.id not in ids(settings)


def test_what_a_log_calls_type_is_kind_here_and_whoever_writes_type_is_told(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        with pytest.raises(TypeError, match="'type': what a log calls type is kind here"):
            run.step("think", type="reasoning")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"step\(\) got an unexpected keyword argument 'out'$"):
            run.step("think", out="so")  # type: ignore[arg-type]
    assert manifest_of(run, settings).steps == ()
