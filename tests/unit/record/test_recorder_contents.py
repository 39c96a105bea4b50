"""What a recording may hold: contents of every kind, and only what a log could say as well."""

import gc as garbage
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from contextplane.app.execution.pack import pack_log
from contextplane.app.execution.record import Recorder
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.audit.load import ManifestMissing
from contextplane.model.execution.log import InvalidLog
from contextplane.model.execution.references import MAX_MANIFEST_BYTES
from contextplane.model.ids import Digest
from contextplane.policy.detect.secrets import SEARCH_LIMIT
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.world import InsideStore
from contextplane.record.events import ContentLike, RecordingRefused
from contextplane.record.recorder import Recording
from contextplane.store.find import ExecutionPackNotFound
from contextplane.store.fsck import fsck
from tests.unit.record.recordings import content, ids, manifest_of, store_in, stored

KEY = "AKIA" + "ABCDEFGHIJKLMNOP"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return store_in(tmp_path)


# --- what may be recorded ---------------------------------------------------------------------------------------------


def chunks() -> Iterator[bytes]:
    yield b"of "
    yield b""
    yield b"chunks"


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (lambda _: "text \u20ac", "text \u20ac".encode()),
        (lambda _: b"\x00\xff", b"\x00\xff"),
        (lambda _: bytearray(b"array"), b"array"),
        (lambda _: memoryview(b"view"), b"view"),
        (lambda folder: folder / "file", b"of a file"),
        (lambda _: chunks(), b"of chunks"),
        (lambda _: [b"a", bytearray(b"b")], b"ab"),
    ],
    ids=["text", "bytes", "bytearray", "memoryview", "path", "generator", "list"],
)
def test_a_content_is_text_bytes_a_file_or_chunks(
    settings: Settings, make: Callable[[Path], ContentLike], data: bytes
) -> None:
    folder = Path(settings.cwd)
    (folder / "file").write_bytes(b"of a file")
    with Recorder(model="m", system_prompt=make(folder), settings=settings) as run:
        run.prompt("user", make(folder))
        run.input("in", make(folder))
        run.step("t", output=make(folder))
        run.output("out", make(folder))
    manifest = manifest_of(run, settings)
    refs = [manifest.system_prompt, manifest.prompts[0].content_ref, manifest.inputs[0].content_ref]
    refs += [manifest.steps[0].output_ref, manifest.outputs[0].content_ref]
    assert refs == [str(Digest.of(data))] * 5
    assert content(refs[0], settings) == data
    assert manifest.inputs[0].size == len(data)


@pytest.mark.parametrize("nothing", ["", b"", [], [b""], "path"], ids=repr)
def test_an_output_of_nothing_is_none_as_in_a_log(settings: Settings, nothing: str | list[bytes]) -> None:
    empty = Path(settings.cwd, "empty")
    empty.touch()
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", output=empty if nothing == "path" else nothing)
    assert manifest_of(run, settings).steps[0].output_ref == ""
    with open_platform(settings) as platform:
        findings = list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None))
        assert [finding.why for finding in findings if "unknown" in finding.why] == []


def test_a_large_file_is_never_wholly_in_memory(settings: Settings) -> None:
    big = Path(settings.cwd, "big")
    with big.open("wb") as file:
        file.truncate(64 << 20)
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        garbage.collect()
        tracemalloc.start()
        try:
            run.output("big", big)
            run.output("chunks", (b"x" * 65536 for _ in range(512)))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 16 << 20


def test_a_file_that_cannot_be_read_is_told_with_its_place_and_the_recording_goes_on(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        with pytest.raises(SourceUnreadable) as caught:
            run.output("o", Path(settings.cwd, "nowhere"))
        assert caught.value.at == f"/outputs/0/content ({settings.cwd}/nowhere)"
        run.output("o", "x")
    assert len(manifest_of(run, settings).outputs) == 1


@pytest.mark.parametrize("way", ["itself", "through a link"])
def test_the_files_of_a_store_are_no_contents_of_a_run(settings: Settings, way: str) -> None:
    secret = Path(settings.cwd, ".ctx", "keys", "k.pem")
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("of the store")
    link = Path(settings.cwd, "harmless")
    link.symlink_to(secret)
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        with pytest.raises(InsideStore) as caught:
            run.output("o", secret if way == "itself" else link)
        assert str(caught.value.at).startswith("/outputs/0/content (")
    assert Digest.of(b"of the store") not in stored(settings)


HARM: list[tuple[Callable[[Recording], object], list[str]]] = [
    (lambda run: run.step(output="x"), ["/steps/1/tool"]),
    (lambda run: run.step("", kind="", output="x"), ["/steps/1/type", "/steps/1/tool"]),
    (lambda run: run.output("", "x"), ["/outputs/0/name"]),
    (lambda run: run.output(5, "x"), ["/outputs/0/name"]),  # type: ignore[arg-type]
    (lambda run: run.input(None, "x"), ["/inputs/0/name"]),  # type: ignore[arg-type]
    (lambda run: run.prompt(b"user", "x"), ["/prompts/0/role"]),  # type: ignore[arg-type]
    (lambda run: run.prompt("us\ud800er", "x"), ["/prompts/0/role"]),
    (lambda run: run.prompt("user", "\ud800"), ["/prompts/0/content"]),
    (lambda run: run.prompt("user", None), ["/prompts/0/content"]),  # type: ignore[arg-type]
    (lambda run: run.output("o", 5), ["/outputs/0/content"]),  # type: ignore[arg-type]
    (lambda run: run.output("o", ["text"]), ["/outputs/0/content"]),  # type: ignore[list-item]
    (lambda run: run.step("t", deterministic="no"), ["/steps/1/deterministic"]),  # type: ignore[arg-type]
    (lambda run: run.step("t", parameters={"a": "\ud800"}), ["/steps/1/parameters/a"]),
    (lambda run: run.step("t", parameters={"a": {1, 2}}), ["/steps/1/parameters/a"]),  # type: ignore[dict-item]
    (lambda run: run.step("t", parameters={"a": float("nan")}), ["/steps/1/parameters/a"]),
    (lambda run: run.step("t", parameters=[1]), ["/steps/1/parameters"]),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("harm", "places"), HARM)
def test_what_no_pack_can_hold_is_refused_with_its_places_before_anything_is_written(
    settings: Settings, harm: Callable[[Recording], object], places: list[str]
) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", output="good")
        before = stored(settings)
        with pytest.raises(RecordingRefused) as caught:
            harm(run)
        assert [problem.at for problem in caught.value.problems] == places
        assert stored(settings) == before
    assert len(manifest_of(run, settings).steps) == 1


def test_what_would_make_the_manifest_too_large_is_refused_and_the_rest_can_be_finished(settings: Settings) -> None:
    half = "x" * (MAX_MANIFEST_BYTES // 2)
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.step("t", parameters={"content": half})
        raise RuntimeError
    with Recorder.resume(run.id, settings=settings) as again:
        before = stored(settings)
        with pytest.raises(RecordingRefused) as caught:
            again.step("t", parameters={"content": half}, output="of the step that is refused")
        assert [problem.at for problem in caught.value.problems] == ["/steps/1"]
        assert stored(settings) == before
        again.step("t", parameters={"content": half[: -(1 << 10)]})
    assert len(manifest_of(again, settings).steps) == 2


def test_a_recording_does_not_begin_with_a_manifest_that_is_too_large(settings: Settings) -> None:
    recorder = Recorder(model="m" * MAX_MANIFEST_BYTES, system_prompt="s", settings=settings)
    with pytest.raises(RecordingRefused), recorder:
        pytest.fail("it began")
    assert (ids(settings), stored(settings)) == ([], set())


BEGIN: list[tuple[dict[str, Any], list[str]]] = [
    ({"model": ""}, ["/model/identifier"]),
    ({"system_prompt": ""}, ["/system_prompt"]),
    ({"system_prompt": []}, ["/system_prompt"]),
    ({"model": 1, "system_prompt": b""}, ["/model/identifier", "/system_prompt"]),
    ({"parameters": {"a": object()}}, ["/model/parameters/a"]),
    ({"tool_versions": {"a/b": 1}}, ["/environment/tool_versions/a~1b"]),
    ({"parent": "pk_abcd2345"}, ["/parent"]),
]


@pytest.mark.parametrize(("changed", "places"), BEGIN, ids=lambda value: repr(value)[:20])
def test_a_recording_does_not_begin_with_what_a_log_may_not_say(
    settings: Settings, changed: dict[str, Any], places: list[str]
) -> None:
    arguments: dict[str, Any] = {"model": "m", "system_prompt": "s", "settings": settings} | changed
    with pytest.raises(RecordingRefused) as caught, Recorder(**arguments):
        pytest.fail("it began")
    assert [problem.at for problem in caught.value.problems] == places
    assert ids(settings) == []
    assert stored(settings) == set()


texts = st.sampled_from(["", "x"])


@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    step=st.tuples(st.sampled_from(["", "tool_call", "reasoning"]), texts), name=texts, began=st.tuples(texts, texts)
)
def test_what_pack_refuses_of_a_log_is_what_the_recorder_refuses(
    settings: Settings, step: tuple[str, str], name: str, began: tuple[str, str]
) -> None:
    (kind, tool), (model, prompt) = step, began
    log: dict[str, Any] = {
        "model": {"identifier": model},
        "system_prompt": prompt,
        "steps": [{"type": kind, "tool": tool}],
        "outputs": [{"name": name, "content": "x"}],
        "environment": {"os": "linux", "runtime": "py"},
    }
    try:
        with open_platform(settings) as platform:
            pack_log(platform, msgspec.json.encode(log), root=settings.cwd)
        packed: set[tuple[str, str]] = set()
    except InvalidLog as error:
        packed = {(problem.at, problem.message) for problem in error.problems}
    recorded: set[tuple[str, str]] = set()

    def attempt(call: Callable[[], object]) -> None:
        try:
            call()
        except RecordingRefused as error:
            recorded.update((problem.at, problem.message) for problem in error.problems)

    def begin() -> None:
        with Recorder(model=model, system_prompt=prompt, settings=settings):
            pass

    attempt(begin)
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        attempt(lambda: run.step(tool, kind=kind))
        attempt(lambda: run.output(name, "x"))
    assert recorded == packed


# --- its parent -------------------------------------------------------------------------------------------------------


def test_a_parent_is_a_pack_of_this_store_and_stands_in_the_manifest(settings: Settings) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as first:
        first.output("o", "x")
    assert first.reference is not None
    for name in (first.reference, first.reference.removeprefix("ctx://")[:12], str(first.digest)):
        with Recorder(model="m", system_prompt="s", parent=name, settings=settings) as run:
            run.output("o", name)
        assert manifest_of(run, settings).parent == str(first.digest)


def test_a_parent_that_is_unknown_or_gone_is_refused(settings: Settings) -> None:
    with (
        pytest.raises(ExecutionPackNotFound),
        Recorder(model="m", system_prompt="s", parent="ctx://" + "0" * 64, settings=settings),
    ):
        pytest.fail("it began")
    with Recorder(model="m", system_prompt="s", settings=settings) as first:
        pass
    assert first.digest is not None
    Path(settings.cwd, ".ctx", "objects", first.digest.hex[:2], first.digest.hex[2:]).unlink()
    with (
        pytest.raises(ManifestMissing),
        Recorder(model="m", system_prompt="s", parent=first.reference, settings=settings),
    ):
        pytest.fail("it began")
    assert ids(settings) == []


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_what_looks_like_a_secret_is_told_in_the_form_of_pack_also_after_a_resume(settings: Settings) -> None:
    kind = "AWS access key"
    expected: tuple[tuple[str, str], ...] = (
        ("/system_prompt", kind),
        ("/model/parameters", kind),
        ("/prompts/0/content", kind),
        ("/steps/1/output", kind),
        ("/steps/1/parameters", kind),
    )
    log = {
        "model": {"identifier": "m", "parameters": {"k": KEY}},
        "system_prompt": KEY,
        "prompts": [{"role": "user", "content": KEY}],
        "steps": [{"type": "t", "tool": "t"}, {"type": "t", "tool": "t", "output": KEY, "parameters": {"k": KEY}}],
        "environment": {"os": "linux", "runtime": "py"},
    }
    with open_platform(settings) as platform:
        assert set(pack_log(platform, msgspec.json.encode(log), root=settings.cwd).suspects) == set(expected)
    recorder = Recorder(model="m", system_prompt=KEY, parameters={"k": KEY}, settings=settings)
    with pytest.raises(RuntimeError), recorder as run:
        run.prompt("user", KEY)
        run.step("t")
        run.step("t", parameters={"k": KEY}, output=[KEY[:7].encode(), KEY[7:].encode(), b" "])
        assert run.suspects == expected
        raise RuntimeError
    with Recorder.resume(run.id, settings=settings) as again:
        assert again.suspects == expected
        again.output("o", f"key {KEY} ")
        assert again.suspects == (*expected, ("/outputs/0/content", kind))


def test_every_text_of_a_manifest_is_searched_by_the_recorder_and_by_pack_alike(settings: Settings) -> None:
    log = {
        "model": {"identifier": KEY},
        "system_prompt": "s",
        "prompts": [{"role": KEY, "content": "x"}],
        "inputs": [{"name": KEY, "content": "x"}],
        "steps": [{"type": KEY, "tool": KEY}],
        "outputs": [{"name": KEY, "content": "x"}],
        "environment": {"os": "linux", "runtime": "py", "tool_versions": {"t": KEY}},
    }
    with open_platform(settings) as platform:
        packed = pack_log(platform, msgspec.json.encode(log), root=settings.cwd)
    with Recorder(model=KEY, system_prompt="s", tool_versions={KEY: "1"}, settings=settings) as run:
        run.prompt(KEY, "x")
        run.input(KEY, "x")
        run.step(KEY, kind=KEY)
        run.output(KEY, "x")
    places = ["/model/identifier", "/environment", "/prompts/0/role", "/inputs/0/name", "/steps/0/type"]
    places += ["/steps/0/tool", "/outputs/0/name"]
    assert set(packed.suspects) == set(run.suspects) == {(at, "AWS access key") for at in places}


def test_of_what_only_the_beginning_was_searched_is_told_also_after_a_resume(settings: Settings) -> None:
    long = "x" * (SEARCH_LIMIT + 1)
    log = {
        "model": {"identifier": "m", "parameters": {"long": long}},
        "system_prompt": long,
        "prompts": [{"role": "user", "content": long[1:]}],
        "inputs": [{"name": long, "content": "x"}],
        "steps": [{"type": "t", "tool": "t", "output": long, "parameters": {"long": long}}],
        "environment": {"os": "linux", "runtime": "py"},
    }
    places = ("/system_prompt", "/model/parameters", "/inputs/0/name", "/steps/0/output", "/steps/0/parameters")
    with open_platform(settings) as platform:
        assert set(pack_log(platform, msgspec.json.encode(log), root=settings.cwd).unsearched) == set(places)
    recorder = Recorder(model="m", system_prompt=long, parameters={"long": long}, settings=settings)
    with pytest.raises(RuntimeError), recorder as run:
        run.prompt("user", long[1:])
        run.input(long, "x")
        run.step("t", parameters={"long": long}, output=[long[:9].encode(), long[9:].encode()])
        assert run.unsearched == places
        raise RuntimeError
    with Recorder.resume(run.id, settings=settings) as again:
        assert again.unsearched == places
