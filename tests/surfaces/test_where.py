"""Where the command works: below a store, in the store of a variable, in folders with strange names."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.surfaces.commands import COMMAND, Result, child_environment, ctx
from tests.surfaces.sample import REPORT, Store, one_error_line


def test_it_works_from_any_folder_below_the_store(sample: Store) -> None:
    below = sample.folder / "a" / "b"
    below.mkdir(parents=True, exist_ok=True)
    assert ctx("status", "--json", cwd=below) == ctx("status", "--json", cwd=sample.folder)
    assert ctx("cat", sample.report, cwd=below).raw == REPORT


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_a_variable_leads_to_a_store_elsewhere(sample: Store, tmp_path: Path, relative: bool) -> None:  # noqa: FBT001
    path = str(sample.folder / ".ctx")
    env = {"CTX_DIR": os.path.relpath(path, tmp_path) if relative else path}
    assert msgspec.json.decode(ctx("status", "--json", cwd=tmp_path, env=env).raw)["path"] == path
    assert ctx("init", cwd=tmp_path, env=env).status == 0
    assert list(tmp_path.iterdir()) == []


def test_the_store_of_handoff_packs_is_named_where_there_is_no_other(tmp_path: Path) -> None:
    assert ".agents" not in one_error_line(ctx("status", cwd=tmp_path), 13, "store_not_found")
    place = tmp_path / ".agents" / "mcp" / "context_pack"
    place.mkdir(parents=True)
    assert ctx("init", cwd=place).status == 0
    for verb in ("status", "fsck", "log", "gc"):
        message = one_error_line(ctx(verb, cwd=tmp_path), 13, "store_not_found")
        assert "CTX_DIR=.agents/mcp/context_pack/.ctx ctx fsck" in message
    assert ctx("fsck", cwd=tmp_path, env={"CTX_DIR": ".agents/mcp/context_pack/.ctx"}).status == 0


def test_an_empty_variable_is_none(sample: Store) -> None:
    assert ctx("status", cwd=sample.folder, env={"CTX_DIR": ""}).status == 0


def test_a_store_is_made_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    answer = msgspec.json.decode(ctx("init", "project", "--json", cwd=tmp_path).raw)
    assert (answer["what"], answer["path"]) == ("created", str(tmp_path / "project" / ".ctx"))
    assert msgspec.json.decode(ctx("init", "project", "--json", cwd=tmp_path).raw) == {**answer, "what": "present"}


STRANGE = {
    "new-line": "a\nb",
    "escape": "\x1b[31mred\x1b[0m\x07",
    "carriage": "fine\rctx: ok",
    "separator": "a\u2028b\u0085c",
    "turned": "a\u202eb",
    "not-text": os.fsdecode(b"\xff\xfe"),
    "question": "what?#%41",
    "quotes": "'\"\\",
    "spaces": "  ",
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_folder_with_a_strange_name_is_no_obstacle(tmp_path: Path, name: str) -> None:
    folder = tmp_path / STRANGE[name]
    folder.mkdir()
    one_error_line(ctx("status", cwd=folder), 13, "store_not_found")
    for args in (["init"], ["status"], ["fsck"]):
        result = ctx(*args, cwd=folder)
        assert (result.status, result.err) == (0, "")
        assert all(character.isprintable() for character in result.out.replace("\n", ""))
    assert (folder / ".ctx" / "catalog.db").is_file()


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_fits_into_one_json_document(tmp_path: Path, name: str) -> None:
    folder = tmp_path / STRANGE[name]
    folder.mkdir()
    refused = ctx("status", "--json", cwd=folder)
    assert refused.status == 13
    assert msgspec.json.decode(refused.err)["error"]["code"] == "store_not_found"
    for args in (["init", "--json"], ["status", "--json"]):
        result = ctx(*args, cwd=folder)
        assert (result.status, result.err) == (0, "")
        assert msgspec.json.decode(result.raw)["path"].startswith(str(tmp_path))


@pytest.mark.parametrize("name", STRANGE)
def test_an_error_stays_on_one_line_whatever_is_in_the_name(tmp_path: Path, name: str) -> None:
    text = STRANGE[name]
    one_error_line(ctx("cat", text, cwd=tmp_path), 2, "reference_invalid")
    one_error_line(ctx("cat", f"./{text}", cwd=tmp_path), 2, "reference_not_an_object")
    one_error_line(ctx("status", cwd=tmp_path, env={"CTX_DIR": text}), 13, "store_not_found")
    one_error_line(ctx(f"x{text}", cwd=tmp_path), 2, "usage")
    for args in (["cat", text], ["status"]):
        failed = ctx("--json", *args, cwd=tmp_path, env={"CTX_DIR": text})
        assert failed.err.count("\n") == 1
        assert msgspec.json.decode(failed.err)["error"]["code"]


def test_a_working_folder_that_is_gone_is_told_in_one_line(sample: Store, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    leave = 'cd "$1" && rmdir "$1" && shift && exec "$@"'

    def run(*args: str, env: dict[str, str] | None = None) -> Result:
        gone.mkdir(exist_ok=True)
        # Where the path of the checkout has spaces, COMMAND is a script of the shell, which would speak up as well.
        command = ["sh", "-c", leave, "sh", str(gone), sys.executable, COMMAND, *args]
        result = subprocess.run(command, cwd=tmp_path, env=child_environment(env), capture_output=True, check=False)
        return Result(status=result.returncode, raw=result.stdout, err=result.stderr.decode())

    result = run("status")
    assert result.status in {1, 13}
    assert result.err.startswith("ctx: ")
    assert result.err.count("\n") == 1
    assert run("status", env={"CTX_DIR": str(sample.folder / ".ctx")}).status == 0
    assert run("--version").status == 0
