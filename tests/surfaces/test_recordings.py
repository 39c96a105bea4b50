"""Unfinished recordings on the command line, and incomplete packs in `ctx log` and `ctx show`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import msgspec
import pytest

from contextplane.app.execution.record import Recorder
from contextplane.app.init import init
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from contextplane.model.reference import InvalidReference
from tests.patience import PATIENCE
from tests.surfaces.commands import Result, child_environment, ctx

KEY = "AKIA" + "ABCDEFGHIJKLMNOP"
NEVER = "rec_0123456789abcdef"
USAGE, REFUSED, NOT_FOUND, CONFLICT = 2, 10, 13, 14


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(cwd=str(tmp_path))
    init(settings, ".")
    return settings


def json_answer(result: Result) -> dict[str, Any]:
    assert (result.status, result.err) == (0, "")
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict)
    return value


def left_behind(settings: Settings, *, model: str = "m-1", steps: int = 2, parent: str | None = None) -> str:
    """Leave a recording unfinished, as a failed process does; return its id."""
    recorder = Recorder(model=model, system_prompt="s", parent=parent, settings=settings)
    with pytest.raises(RuntimeError), recorder as run:
        for n in range(steps):
            run.step("t", output=f"step {n}")
        raise RuntimeError
    return run.id


def manifest(ref: str, folder: Path) -> dict[str, Any]:
    return json_answer(ctx("show", ref, "--json", cwd=folder))


# --- listing and finishing --------------------------------------------------------------------------------------------


def test_unfinished_recordings_are_listed_and_finalized(tmp_path: Path, settings: Settings) -> None:
    assert ctx("log", "--unfinished", cwd=tmp_path).out == "No unfinished recordings.\n"
    recording = left_behind(settings)
    line = ctx("log", "--unfinished", cwd=tmp_path).out
    assert line.startswith(f"{recording}  20")
    assert line.endswith("  m-1  2 steps\n")
    assert ctx("log", "--unfinished", "--quiet", cwd=tmp_path).out == f"{recording}\n"
    (listed,) = json_answer(ctx("log", "--unfinished", "--json", cwd=tmp_path))["recordings"]
    assert listed.keys() == {"id", "begun", "model", "steps", "problem"}
    assert (listed["id"], listed["model"], listed["steps"], listed["problem"]) == (recording, "m-1", 2, None)
    result = ctx("finalize", recording, cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("ctx://")
    assert len(manifest(result.out.strip(), tmp_path)["steps"]) == 2
    assert json_answer(ctx("log", "--unfinished", "--json", cwd=tmp_path)) == {"recordings": []}
    assert ctx("fsck", cwd=tmp_path).status == 0


def test_finalizing_a_recording_again_gives_the_same_pack_and_says_so(tmp_path: Path, settings: Settings) -> None:
    parent = json_answer(ctx("finalize", left_behind(settings), "--json", cwd=tmp_path))["ref"]
    recording = left_behind(settings, parent=parent)
    first = json_answer(ctx("finalize", recording, "--json", cwd=tmp_path))
    assert (first["recording"], first["parent"], first["new"], first["suspects"]) == (recording, parent, True, [])
    assert json_answer(ctx("finalize", recording, "--json", cwd=tmp_path)) == first | {"new": False}
    assert "already finalized" in ctx("finalize", recording, cwd=tmp_path).err
    assert len(json_answer(ctx("log", "--json", cwd=tmp_path))["packs"]) == 2


def test_a_recording_with_a_content_that_is_gone_is_refused_with_its_part_and_a_way_out(
    tmp_path: Path, settings: Settings
) -> None:
    recording, lost = left_behind(settings), Digest.of(b"step 1")
    (tmp_path / ".ctx" / "objects" / lost.hex[:2] / lost.hex[2:]).unlink()
    result = ctx("finalize", recording, cwd=tmp_path)
    assert (result.status, result.out) == (REFUSED, "")
    assert result.err.startswith(
        f"ctx: recording_incomplete: {recording}:steps/1: is missing: {lost} (no pack was made"
    )
    assert ctx("gc", "--grace", "0s", "--quiet", cwd=tmp_path).out == ""
    (tmp_path / "run.json").write_bytes(
        b'{"model":{"identifier":"m"},"system_prompt":"step 1","environment":{"os":"l","runtime":"r"}}'
    )
    assert ctx("pack", "run.json", cwd=tmp_path).status == 0
    assert ctx("finalize", recording, cwd=tmp_path).status == 0
    assert ctx("fsck", cwd=tmp_path).status == 0


def test_finalizing_again_after_its_large_events_were_collected_says_what_is_not_known_any_more(
    tmp_path: Path, settings: Settings
) -> None:
    with Recorder(model="m", system_prompt=KEY, settings=settings) as run:
        run.step("t", parameters={"long": "x" * 70_000})
    assert ctx("gc", "--grace", "0s", cwd=tmp_path).out.count("removed  sha256:") == 1
    result = ctx("finalize", run.id, cwd=tmp_path)
    assert (result.status, result.out) == (0, f"{run.reference}\n")
    assert "were shown then, and are not repeated" in result.err
    answer = msgspec.json.decode(ctx("finalize", run.id, "--json", cwd=tmp_path).raw)
    assert (answer["new"], answer["suspects"], answer["unsearched"]) == (False, None, None)


@pytest.mark.parametrize("verb", ["cat", "show", "verify"])
@pytest.mark.usefixtures("settings")
def test_who_asks_for_a_recording_as_if_it_were_a_pack_is_told_how_it_becomes_one(tmp_path: Path, verb: str) -> None:
    result = ctx(verb, NEVER, cwd=tmp_path)
    assert (result.status, f"(it is not a pack yet: 'ctx finalize {NEVER}' makes one of it" in result.err) == (2, True)


def test_a_parent_that_is_no_reference_is_told_the_forms_that_a_parent_has(settings: Settings) -> None:
    recorder = Recorder(model="m", system_prompt="s", parent="zzzz", settings=settings)
    with pytest.raises(InvalidReference) as caught, recorder:
        pass
    assert caught.value.hint == "write ctx://<hash> or its first digits; 'ctx log' lists them"


def test_secrets_that_a_recording_holds_are_told(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(RuntimeError), Recorder(model="m", system_prompt=KEY, settings=settings) as run:
        raise RuntimeError
    result = ctx("finalize", run.id, cwd=tmp_path)
    assert "/system_prompt may contain a secret (AWS access key)" in result.err
    suspects = json_answer(ctx("finalize", run.id, "--json", cwd=tmp_path))["suspects"]
    assert suspects == [{"at": "/system_prompt", "kind": "AWS access key"}]


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        (NEVER, NOT_FOUND, "recording_not_found"),
        ("rec_123", USAGE, "id_invalid"),
        (f"{NEVER}.json", NOT_FOUND, "document_unreadable"),
        (f"./{NEVER}", NOT_FOUND, "document_unreadable"),
        ("draft", USAGE, "reference_invalid"),
        ("cafe", USAGE, "usage"),
        (f"{NEVER}:steps/1", USAGE, "usage"),
        ("", USAGE, "reference_invalid"),
    ],
)
@pytest.mark.usefixtures("settings")
def test_a_file_is_what_has_a_slash_or_an_extension(tmp_path: Path, name: str, status: int, code: str) -> None:
    result = ctx("finalize", name, cwd=tmp_path)
    assert (result.status, result.err.split(": ")[1]) == (status, code)


def test_a_recording_is_no_execution_pack_to_other_verbs(tmp_path: Path, settings: Settings) -> None:
    recording = left_behind(settings)
    for verb in ("show", "fork", "cat"):
        assert ctx(verb, recording, cwd=tmp_path).status == USAGE


CHILD = """
import sys
from contextplane.app.execution.record import Recorder
from contextplane.errors import ContextPlaneError
try:
    with Recorder(model="m", system_prompt="s") as run:
        run.step("t", output="first")
        print(run.id, flush=True)
        sys.stdin.readline()
        run.step("t", output="second")
except ContextPlaneError as error:
    print(error.code, error.family, flush=True)
print(run.reference, flush=True)
"""


@contextmanager
def recording_process(folder: Path) -> Iterator["Popen[str]"]:
    """A process that has recorded one step and waits for a line before it goes on."""
    command = [sys.executable, "-c", CHILD]
    with Popen(command, cwd=folder, env=child_environment(), stdin=PIPE, stdout=PIPE, text=True) as child:
        yield child


def goes_on(child: "Popen[str]") -> list[str]:
    out, _ = child.communicate("\n", timeout=PATIENCE)
    assert child.returncode == 0
    return out.splitlines()


@pytest.mark.usefixtures("settings")
def test_a_process_that_still_records_is_refused_once_others_finished_its_recording(tmp_path: Path) -> None:
    with recording_process(tmp_path) as child:
        assert child.stdout is not None
        recording = child.stdout.readline().strip()
        (listed,) = json_answer(ctx("log", "--unfinished", "--json", cwd=tmp_path))["recordings"]
        assert (listed["id"], listed["steps"]) == (recording, 1)
        answer = json_answer(ctx("finalize", recording, "--json", cwd=tmp_path))
        assert goes_on(child) == ["recording_finished conflict", "None"]
    assert len(manifest(answer["ref"], tmp_path)["steps"]) == 1
    assert [pack["ref"] for pack in json_answer(ctx("log", "--json", cwd=tmp_path))["packs"]] == [answer["ref"]]
    assert ctx("fsck", cwd=tmp_path).status == 0


@pytest.mark.usefixtures("settings")
def test_a_killed_process_leaves_a_recording_that_several_may_finalize_at_once(tmp_path: Path) -> None:
    with recording_process(tmp_path) as child:
        assert child.stdout is not None
        recording = child.stdout.readline().strip()
        child.kill()
    command = [str(Path(sys.executable).with_name("ctx")), "finalize", recording]
    running = [Popen(command, cwd=tmp_path, env=child_environment(), stdout=PIPE, text=True) for _ in range(4)]
    ended = {(child.communicate()[0], child.returncode) for child in running}
    assert len(ended) == 1
    assert len(json_answer(ctx("log", "--json", cwd=tmp_path))["packs"]) == 1


# --- ctx log ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("--limit", "1", "--all"),
        ("--unfinished", "--all"),
        ("--unfinished", "--limit", "1"),
        ("--unfinished", "--model", "m"),
        ("--unfinished", "--since", "1d"),
        ("--unfinished", "--tool", "t"),
        ("--unfinished", "--parent", "cafe"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("settings")
def test_options_that_contradict_each_other_are_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    result = ctx("log", *args, cwd=tmp_path)
    assert (result.status, result.out) == (USAGE, "")
    assert "not allowed with argument" in result.err


def test_a_pack_whose_manifest_is_gone_is_marked_missing_and_said_to_be_registered(
    tmp_path: Path, settings: Settings
) -> None:
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.output("o", "x")
    assert run.digest is not None
    assert run.reference is not None
    _place(tmp_path, run.digest).unlink()
    listed = ctx("log", cwd=tmp_path)
    assert listed.status == 0
    assert listed.out.startswith(run.digest.hex[:12])
    assert "[missing" in listed.out
    for args in (("show",), ("show", "--json"), ("fork",), ("replay",)):
        result = ctx(args[0], run.reference, *args[1:], cwd=tmp_path)
        assert (result.status, "manifest_missing" in result.err) == (NOT_FOUND, True), args
        assert "registered, but its manifest is missing" in result.err


def _place(folder: Path, digest: Digest) -> Path:
    return folder / ".ctx" / "objects" / digest.hex[:2] / digest.hex[2:]
