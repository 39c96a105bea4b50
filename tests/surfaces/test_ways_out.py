"""Errors tell newcomers what went wrong and what to type instead."""

import json
from pathlib import Path

import pytest

from contextplane.app.execution.record import Recorder
from contextplane.app.settings import Settings
from contextplane.record.journal import RecordingFinished
from tests.surfaces.commands import ctx
from tests.surfaces.runs import LOG, packed
from tests.surfaces.sample import one_error_line

LISTS = "(write ctx://<hash> or its first digits; 'ctx log' lists them)\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    assert ctx("init", cwd=tmp_path).status == 0
    return tmp_path


@pytest.mark.parametrize("verb", ["fork", "replay", "show", "verify"])
def test_where_a_pack_is_asked_for_the_hint_names_only_forms_of_packs(store: Path, verb: str) -> None:
    assert one_error_line(ctx(verb, "zzzz", cwd=store), 2, "reference_invalid").endswith(LISTS)


def test_a_file_whose_name_looks_like_none_is_recognized_where_files_are_taken(store: Path) -> None:
    (store / "zzzz").write_text("")
    message = one_error_line(ctx("diff", "zzzz", "yyyy", cwd=store), 2, "reference_invalid")
    assert "(write ./zzzz if it is a file)" in message
    assert one_error_line(ctx("diff", "yyyy", "zzzz", cwd=store), 2, "reference_invalid").endswith(LISTS)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (["cat", "zzzz"], "(write sha256:<hash> for any object; "),
        (["cat", "refunds@1.2.3"], "('ctx show' prints the digest of a version; "),
        (["finalize", "zzzz"], "(write ./zzzz if it is a file; 'ctx log --unfinished' lists recordings)"),
        (
            ["review", "zzzz", "--role", "data", "--approve", "--reason", "x"],
            "(write a file as ./FILE, sha256:<hash>, ",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_hint_names_what_a_verb_takes(store: Path, line: list[str], hint: str) -> None:
    assert hint in ctx(*line, cwd=store).err


def test_a_part_of_a_pack_is_read_by_another_verb(store: Path) -> None:
    part = f"{packed(store)[:8]}:steps/0"
    message = one_error_line(ctx("show", part, cwd=store), 2, "reference_not_an_execution_pack")
    assert f"('ctx cat {part}' reads a part)" in message


def test_a_time_that_is_none_is_told_as_it_was_typed(store: Path) -> None:
    message = one_error_line(ctx("log", "--since", "yesterday", cwd=store), 2, "usage")
    assert "not a time: 'yesterday' (2026-05-04, 2026-05-04T09:30:00Z, 36h or 14d)" in message


def test_a_log_without_any_time_is_told_and_is_of_no_year(store: Path) -> None:
    timeless = {**LOG, "steps": []}
    result = ctx("pack", "-", cwd=store, input=json.dumps(timeless).encode())
    assert result.err == "ctx: the log has no time (add created, or the timestamp of a step)\n"
    digits = result.out.strip().removeprefix("ctx://")
    machine = json.loads(ctx("pack", "-", "--json", cwd=store, input=json.dumps(timeless).encode()).out)
    assert (machine["created"], machine["tells_time"]) == ("0001-01-01T00:00:00Z", False)
    assert "Created:   no time\n" in ctx("show", digits, cwd=store).out
    assert "Created:   no time\n" in ctx("verify", digits, cwd=store).out
    other = packed(store, model={"identifier": "m"})
    # The columns stand below each other, also where there is no time and a model has a short name.
    assert ctx("log", cwd=store).out.splitlines() == [
        f"{other[:12]}  2026-05-04 09:31:42Z  m        2 steps",
        f"{digits[:12]}  no time               model-x  0 steps",
    ]
    assert "no time" not in ctx("log", "--json", cwd=store).out


def test_what_is_wrong_with_a_log_is_told_with_the_name_of_its_file(store: Path) -> None:
    (store / "rec.py").write_text("import os\n")
    assert "rec.py: line 1, column 1: a value was expected" in ctx("pack", "rec.py", cwd=store).err
    (store / "run.json").write_text(json.dumps({**LOG, "sytem_prompt": "x"}))
    assert "run.json#/sytem_prompt: is not a field of a log" in ctx("pack", "run.json", cwd=store).err
    assert (
        "ctx: execution_log_invalid: /sytem_prompt"
        in ctx("pack", "-", cwd=store, input=(store / "run.json").read_bytes()).err
    )


def logged(**fields: object) -> dict[str, object]:
    """A log whose only output is a missing file."""
    return {**LOG, "outputs": [{"name": "data.bin", "path": "out/data.bin"}], **fields}


@pytest.mark.parametrize(
    ("log", "status", "code"),
    [
        (logged(), 13, "source_unreadable"),
        (logged(outputs=[{"name": "hosts", "path": "/etc/hosts"}]), 10, "path_outside_root"),
        (logged(inputs=[{"name": "a", "path": "nowhere"}]), 10, "execution_log_invalid"),
        (logged(system_prompt=1), 10, "execution_log_invalid"),
        (logged(system_prompt=1 << 60), 10, "json_integer_unsafe"),
    ],
)
def test_of_a_path_in_a_log_it_is_told_where_it_is_looked_for(store: Path, log: object, status: int, code: str) -> None:
    (store / "logs").mkdir()
    (store / "logs" / "run.json").write_text(json.dumps(log))
    message = one_error_line(ctx("pack", "logs/run.json", cwd=store), status, code)
    assert f"paths are read below {store.resolve()}/logs; --root FOLDER names another)" in message


def test_where_paths_are_looked_for_is_told_only_where_one_is_wrong(store: Path) -> None:
    message = ctx("pack", "-", cwd=store, input=json.dumps({**LOG, "system_prompt": 1}).encode()).err
    assert "is looked for" not in message


def test_a_text_in_a_draft_is_refused_with_the_way_to_change_one(store: Path) -> None:
    draft = Path(json.loads(ctx("fork", packed(store), "--json", cwd=store).out)["draft"])
    draft.write_text(json.dumps({**json.loads(draft.read_text()), "system_prompt": "You are bold."}))
    message = one_error_line(ctx("finalize", str(draft), cwd=store), 10, "draft_invalid")
    assert "(a draft holds digests; to change a text, write a log and use 'ctx pack LOG --parent REF')" in message
    draft.write_text("{}")
    assert "a draft holds digests" not in ctx("finalize", str(draft), cwd=store).err


def test_a_variable_that_names_the_folder_of_a_store_is_told_the_store(store: Path, tmp_path: Path) -> None:
    message = one_error_line(ctx("status", cwd=tmp_path, env={"CTX_DIR": str(store)}), 13, "store_not_found")
    assert f"(CTX_DIR names the store itself: did you mean {store}/.ctx?)" in message


@pytest.mark.parametrize("length", [20, 5000])
def test_a_file_that_is_no_archive_is_called_that(store: Path, length: int) -> None:
    (store / "run.json").write_text(json.dumps(LOG).ljust(length)[:length])
    assert "not an archive" in one_error_line(ctx("import", "run.json", cwd=store), 10, "archive_invalid")


def test_a_file_that_a_tool_does_not_find_is_told_with_the_workspace(store: Path) -> None:
    result = ctx("replay", packed(store), cwd=store)
    assert f"(it is looked for below {store.resolve()}; --root FOLDER names another workspace)" in result.out


def test_a_function_without_its_module_is_told_the_form(store: Path) -> None:
    step = {"type": "tool_call", "tool": "python", "parameters": {"function": "json.dumps"}, "deterministic": True}
    result = ctx("replay", packed(store, steps=[step]), "--trust-tools", cwd=store)
    assert "failed: function must be module:name, not 'json.dumps'" in result.out


def test_how_a_step_diverged_is_told_to_machines_too(store: Path) -> None:
    (store / "order.json").write_text('{"id": 882}')
    parts = json.loads(ctx("replay", packed(store), "--json", cwd=store).out)["parts"]
    assert parts[0]["text"]["lines"] == ["@@ -1 +1 @@", '-{"id": 881}', '+{"id": 882}']
    assert "text" not in parts[1]
    (store / "order.json").write_bytes(b"\0")
    assert "(what came now is not text)" in ctx("replay", packed(store), cwd=store).out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["handoff"], "are required: {list,read,write,show,log,extend,export}"),
        (["keys"], "are required: ACTION"),
        (["completion"], "are required: {bash,zsh,fish}"),
        (["handoff", "lst"], "no such choice: 'lst' (did you mean 'ctx handoff list'?)"),
        (["handoff", "list", "--status", "drafts"], "(did you mean 'ctx handoff --status draft'?)"),
    ],
    ids=" ".join,
)
def test_what_comes_behind_a_verb_is_called_as_the_help_calls_it(store: Path, args: list[str], message: str) -> None:
    assert message in one_error_line(ctx(*args, cwd=store), 2, "usage")


def test_the_demo_that_is_kept_says_where_to_look(tmp_path: Path) -> None:
    last = ctx("demo", "--keep", "tour", cwd=tmp_path).out.splitlines()[-1]
    assert last.startswith("Look around: cd tour; then ctx log, ctx show ")
    first, later = last.split()[-2:]
    assert ctx("show", first, cwd=tmp_path / "tour").status == 0
    assert ctx("diff", first, later, cwd=tmp_path / "tour").out.startswith("Comparing")


def test_a_recorder_says_how_it_is_used_and_where_a_failed_run_is(store: Path) -> None:
    settings = Settings(cwd=str(store))
    recorder = Recorder(model="m", system_prompt="s", settings=settings)
    with pytest.raises(AttributeError, match=r"use it as 'with Recorder\(\.\.\.\) as run', then run\.prompt"):
        recorder.prompt("user", "hello")  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError) as caught, recorder as run:
        run.prompt("user", "hello")
        raise RuntimeError
    assert caught.value.__notes__ == [f"recorded so far: {run.id}; 'ctx finalize {run.id}' makes a pack of it"]
    assert ctx("finalize", run.id, cwd=store).status == 0


def test_whoever_goes_on_with_a_finished_recording_is_told_the_pack_it_became(store: Path) -> None:
    settings = Settings(cwd=str(store))
    with Recorder(model="m", system_prompt="s", settings=settings) as run:
        run.prompt("user", "hello")
    with pytest.raises(RecordingFinished) as caught, Recorder.resume(run.id, settings=settings) as again:
        again.prompt("user", "more")
    assert caught.value.__notes__ == [f"the recording {run.id} is finished: {run.reference}"]


def test_whoever_still_records_what_another_finished_is_told_how_to_find_the_pack(store: Path) -> None:
    settings = Settings(cwd=str(store))
    with pytest.raises(RecordingFinished) as caught, Recorder(model="m", system_prompt="s", settings=settings) as run:
        assert ctx("finalize", run.id, cwd=store).status == 0
        run.prompt("user", "too late")
    assert caught.value.__notes__ == [f"'ctx finalize {run.id}' prints its pack"]


def test_only_so_many_outputs_of_a_replay_are_compared_as_text(store: Path) -> None:
    (store / "order.json").write_text("another")
    parts = json.loads(ctx("replay", packed(store, steps=LOG["steps"][:1] * 21), "--json", cwd=store).out)["parts"]
    assert [part["text"]["state"] for part in parts] == ["text"] * 20 + ["left_out"]
