"""The command as people and scripts meet it: its words, its statuses, its lines, and what it costs to ask."""

import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from contextplane import __version__
from contextplane.app.init import init
from contextplane.app.platform import opened
from contextplane.app.settings import Settings
from contextplane.cli.exit import LEGEND
from contextplane.cli.parser import top_help
from contextplane.cli.table import VERBS
from contextplane.testing.reference_store import ReferenceStore
from tests.surfaces.running import COMMAND, Result, child_environment, ctx

NAMES = [verb.name for verb in VERBS]
REPORT = b"The refund of order 881 was paid.\n"
LARGE = bytes(range(256)) * 40_000  # beyond what is checked ahead, and beyond what a pipe holds


class Store:
    """A store of ours, with one pack of the reference program and one large object in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        other = ReferenceStore(folder)
        self.pack = other.pack(outputs={"report.md": REPORT})
        self.report = other.blob(REPORT)
        self.large = other.blob(LARGE)
        os.utime(other.path / "packs", (1000, 1000))
        init(Settings(cwd=str(folder)), ".")
        with opened(Settings(cwd=str(folder))):
            pass


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One for all tests here: none of them changes it."""
    return Store(tmp_path_factory.mktemp("store"))


def one_error_line(result: Result, status: int, code: str) -> str:
    assert result.status == status, result
    assert result.raw == b""
    assert result.err.startswith(f"ctx: {code}: "), result
    assert result.err.endswith("\n")
    assert result.err.count("\n") == 1
    assert all(character.isprintable() for character in result.err[:-1])
    return result.err


# --- its words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_one_line(tmp_path: Path, flag: str) -> None:
    assert ctx(flag, cwd=tmp_path) == Result(status=0, raw=f"ctx {__version__}\n".encode(), err="")


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"], ["help"]], ids=" ".join)
def test_the_help_is_what_the_table_of_verbs_says(tmp_path: Path, args: list[str]) -> None:
    assert ctx(*args, cwd=tmp_path) == Result(status=0, raw=top_help(VERBS).encode(), err="")


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_verb_tells_its_options_and_its_exit_statuses(tmp_path: Path, name: str) -> None:
    result = ctx(name, "--help", cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"usage: ctx {name} ")
    assert LEGEND in result.out
    assert all(option in result.out for option in ("--json", "--quiet", "--no-color"))
    assert max(map(len, result.out.splitlines())) <= 110
    assert ctx("help", name, cwd=tmp_path) == result
    assert ctx(name, "-h", cwd=tmp_path, env={"COLUMNS": "40"}) == result


@pytest.mark.parametrize(
    ("typed", "meant"), [("statsu", "status"), ("fsk", "fsck"), ("intt", "init"), ("complete", "completion")]
)
def test_an_unknown_verb_suggests_the_one_that_was_meant(tmp_path: Path, typed: str, meant: str) -> None:
    assert f"did you mean 'ctx {meant}'?" in one_error_line(ctx(typed, cwd=tmp_path), 2, "usage")


@pytest.mark.parametrize(
    "args",
    [
        ["xyzzy"],
        ["--json-lines"],
        ["--quiet"],
        ["status", "--nope"],
        ["status", "--js"],
        ["status", "extra"],
        ["cat"],
        ["cat", "a", "b"],
        ["completion", "tcsh"],
        ["gc", "--grace", "soon"],
        ["gc", "--grace", "-1d"],
        ["gc", "--grace", "1"],
        ["gc", "--grace", "99999999999d"],
        ["gc", "--grace", "\u0661d"],
        ["help", "xyzzy"],
        [""],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_one_line_with_a_way_out(store: Store, args: list[str]) -> None:
    assert "ctx" in one_error_line(ctx(*args, cwd=store.folder), 2, "usage").partition("(")[2]


# --- what every verb understands --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One that verbs may change, with something for each of them to work on."""
    store = Store(tmp_path_factory.mktemp("used"))
    log = {"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}
    (store.folder / "log.json").write_bytes(msgspec.json.encode(log))
    assert ctx("pack", "log.json", cwd=store.folder).status == 0
    assert ctx("export", store.pack, "-o", "archive.tar", cwd=store.folder).status == 0
    draft = msgspec.json.decode(ctx("fork", store.pack, "--json", cwd=store.folder).raw)
    text = Path(draft["draft"]).read_bytes().replace(b"model-x", b"model-y")
    (store.folder / "draft.json").write_bytes(text)
    return store


# What a verb may say beside its answer when it is tried for the second time.
SAID_AGAIN = {"pack": "ctx: this very run was packed before; nothing changed\n"}

VERB_LINES = {
    "init": ["init"],
    "demo": ["demo"],
    "status": ["status", "--tables"],
    "cat": ["cat", "REPORT"],
    "pack": ["pack", "log.json"],
    "show": ["show", "PACK"],
    "log": ["log"],
    "search": ["search", "careful"],
    "verify": ["verify", "PACK"],
    "diff": ["diff", "PACK", "PACK"],
    "replay": ["replay", "PACK", "--recorded"],
    "fork": ["fork", "PACK"],
    "finalize": ["finalize", "draft.json"],
    "export": ["export", "PACK", "-o", "out.tar"],
    "import": ["import", "archive.tar"],
    "fsck": ["fsck"],
    "gc": ["gc", "--dry-run"],
    "completion": ["completion", "bash"],
}


def line_of(store: Store, name: str) -> list[str]:
    stands_for = {"REPORT": store.report, "PACK": store.pack}
    return [stands_for.get(word, word) for word in VERB_LINES[name]]


def test_every_verb_is_tried_here() -> None:
    assert sorted(VERB_LINES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_verb_answers_with_one_json_document_wherever_the_option_stands(used: Store, name: str) -> None:
    after = ctx(*line_of(used, name), "--json", cwd=used.folder)
    before = ctx("--json", *line_of(used, name), cwd=used.folder)
    assert (after.status, after.err) == (before.status, before.err) == (0, "")
    assert isinstance(msgspec.json.decode(after.raw), dict | list)
    assert type(msgspec.json.decode(before.raw)) is type(msgspec.json.decode(after.raw))
    assert b"\x1b" not in after.raw


@pytest.mark.parametrize("name", NAMES)
def test_every_verb_prints_plain_text_in_a_pipe(used: Store, name: str) -> None:
    result = ctx(*line_of(used, name), cwd=used.folder)
    assert (result.status, result.err) == (0, SAID_AGAIN.get(name, ""))
    assert result.raw
    assert b"\x1b" not in result.raw or name == "completion"


@pytest.mark.parametrize("name", NAMES)
def test_a_quiet_verb_prints_only_what_was_asked_for(used: Store, name: str) -> None:
    result = ctx("--quiet", *line_of(used, name), cwd=used.folder)
    assert (result.status, result.err) == (0, "")
    if name == "cat":
        assert result.raw == REPORT
    elif name == "completion":
        assert result.raw
    elif name in {"pack", "finalize"}:
        assert result.raw.startswith(b"ctx://")
    else:
        assert result.raw == b""


def test_quiet_is_not_silent_about_errors(tmp_path: Path) -> None:
    one_error_line(ctx("--quiet", "status", cwd=tmp_path), 13, "store_not_found")


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (["status"], 13, "store_not_found"),
        (["cat", "refunds@1.2.3"], 2, "reference_not_an_object"),
        (["cat", "x"], 2, "reference_invalid"),
        (["status", "--nope"], 2, "usage"),
        (["xyzzy"], 2, "usage"),
        ([], 2, "usage"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_an_error_is_one_json_document_when_a_machine_reads(
    tmp_path: Path, args: list[str], status: int, code: str
) -> None:
    for line in ([*args, "--json"], ["--json", *args]):
        result = ctx(*line, cwd=tmp_path)
        assert (result.status, result.raw) == (status, b"")
        error = msgspec.json.decode(result.err)["error"]
        assert set(error) == {"code", "family", "message", "at", "hint", "details"}
        assert (error["code"], bool(error["hint"])) == (code, True)


# --- where it works ---------------------------------------------------------------------------------------------------


def test_it_works_from_any_folder_below_the_store(store: Store) -> None:
    below = store.folder / "a" / "b"
    below.mkdir(parents=True, exist_ok=True)
    assert ctx("status", "--json", cwd=below) == ctx("status", "--json", cwd=store.folder)
    assert ctx("cat", store.report, cwd=below).raw == REPORT


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_a_variable_leads_to_a_store_elsewhere(store: Store, tmp_path: Path, relative: bool) -> None:  # noqa: FBT001
    path = str(store.folder / ".ctx")
    env = {"CTX_DIR": os.path.relpath(path, tmp_path) if relative else path}
    assert msgspec.json.decode(ctx("status", "--json", cwd=tmp_path, env=env).raw)["path"] == path
    assert ctx("init", cwd=tmp_path, env=env).status == 0
    assert list(tmp_path.iterdir()) == []


def test_an_empty_variable_is_none(store: Store) -> None:
    assert ctx("status", cwd=store.folder, env={"CTX_DIR": ""}).status == 0


def test_a_store_is_made_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    made = msgspec.json.decode(ctx("init", "project", "--json", cwd=tmp_path).raw)
    assert (made["what"], made["path"]) == ("created", str(tmp_path / "project" / ".ctx"))
    assert msgspec.json.decode(ctx("init", "project", "--json", cwd=tmp_path).raw) == {**made, "what": "present"}


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


def test_a_working_folder_that_is_gone_is_told_in_one_line(store: Store, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    leave = 'cd "$1" && rmdir "$1" && shift && exec "$@"'

    def run(*args: str, env: dict[str, str] | None = None) -> Result:
        gone.mkdir(exist_ok=True)
        command = ["sh", "-c", leave, "sh", str(gone), COMMAND, *args]
        done = subprocess.run(command, cwd=tmp_path, env=child_environment(env), capture_output=True, check=False)
        return Result(status=done.returncode, raw=done.stdout, err=done.stderr.decode())

    result = run("status")
    assert result.status in {1, 13}
    assert result.err.startswith("ctx: ")
    assert result.err.count("\n") == 1
    assert run("status", env={"CTX_DIR": str(store.folder / ".ctx")}).status == 0
    assert run("--version").status == 0


# --- what it writes, and to whom --------------------------------------------------------------------------------------


def on_a_terminal(*args: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What `ctx` writes when somebody watches."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMAND, *args], cwd=cwd, env=child_environment(env), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 4096):
            written += piece
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    assert child.wait() == 0
    return written.decode()


def test_colour_is_for_a_terminal_and_for_those_who_want_it(store: Store) -> None:
    assert "\x1b[32mThe store is sound.\x1b[0m" in on_a_terminal("fsck", cwd=store.folder)
    assert "\x1b" not in on_a_terminal("fsck", "--no-color", cwd=store.folder)
    assert "\x1b" not in on_a_terminal("--no-color", "fsck", cwd=store.folder)
    assert "\x1b" not in on_a_terminal("fsck", cwd=store.folder, env={"NO_COLOR": "1"})
    assert "\x1b" not in on_a_terminal("fsck", "--json", cwd=store.folder)
    assert "\x1b" in on_a_terminal("fsck", cwd=store.folder, env={"NO_COLOR": ""})


@pytest.fixture
def left_pipe() -> Iterator[int]:
    """The writing end of a pipe whose reader has left."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize(
    "args",
    [["--version"], ["--help"], ["status", "--help"], ["status"], ["fsck"], ["completion", "bash"]],
    ids=" ".join,
)
def test_a_reader_who_has_left_ends_it_without_a_word(store: Store, left_pipe: int, args: list[str]) -> None:
    for env in (None, {"PYTHONUNBUFFERED": "1"}):
        command = [COMMAND, *args]
        done = subprocess.run(
            command, cwd=store.folder, env=child_environment(env), stdout=left_pipe, stderr=subprocess.PIPE, check=False
        )
        assert (done.returncode, done.stderr) == (141, b"")


def started(store: Store, *args: str) -> subprocess.Popen[bytes]:
    """`ctx` writing more than a pipe holds, after its first byte came through."""
    child = subprocess.Popen(
        [COMMAND, *args],
        cwd=store.folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert child.stdout is not None
    assert child.stdout.read(1) == LARGE[:1]
    return child


def test_a_reader_who_leaves_in_the_middle_ends_it_without_a_word(store: Store) -> None:
    with started(store, "cat", store.large) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141


def test_an_interrupt_ends_it_without_a_word(store: Store) -> None:
    with started(store, "cat", store.large) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.send_signal(signal.SIGINT)
        child.stdout.read()
        assert child.stderr.read() == b""
    assert child.returncode == 130


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "args", [["--version"], ["--help"], ["status"], ["fsck", "--json"], ["cat", "LARGE"]], ids=" ".join
)
def test_an_output_that_is_full_is_told_in_one_line(store: Store, args: list[str]) -> None:
    command = [COMMAND, *(store.large if arg == "LARGE" else arg for arg in args)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, cwd=store.folder, env=child_environment(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"ctx: ") or b'"error"' in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "args", [["--version"], ["status"], ["status", "--json"], ["status", "--help"], ["cat", "REPORT"]], ids=" ".join
)
def test_an_output_that_is_closed_is_no_accident(store: Store, args: list[str]) -> None:
    words = [store.report if arg == "REPORT" else arg for arg in args]
    command = ["sh", "-c", 'exec "$@" >&-', "sh", COMMAND, *words]
    done = subprocess.run(command, cwd=store.folder, env=child_environment(), stderr=subprocess.PIPE, check=False)
    assert done.returncode in {0, 1}
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") <= 1


def test_a_large_object_comes_out_whole(store: Store) -> None:
    assert ctx("cat", store.large, cwd=store.folder).raw == LARGE


def test_a_large_damaged_object_ends_as_untrusted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digits = store.large.removeprefix("sha256:")
    place = tmp_path / ".ctx" / "objects" / digits[:2] / digits[2:]
    place.chmod(0o644)
    with place.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"!")
    result = ctx("cat", store.large, cwd=tmp_path)
    assert result.status == 11
    assert result.err.startswith("ctx: object_corrupt: ")


# --- references -------------------------------------------------------------------------------------------------------


def test_a_pack_is_found_by_its_hash_and_by_the_beginning_of_it(store: Store) -> None:
    manifest = ctx("cat", f"ctx://{store.pack}", cwd=store.folder)
    assert manifest.status == 0
    assert msgspec.json.decode(manifest.raw)["version"] == "0.1"
    for ref in (store.pack, store.pack[:8], f"ctx://{store.pack[:8]}", store.pack[:8].upper(), f"sha256:{store.pack}"):
        assert ctx("cat", ref, cwd=store.folder) == manifest


def test_a_blob_is_not_found_by_the_beginning_of_its_hash(store: Store) -> None:
    digits = store.report.removeprefix("sha256:")
    one_error_line(ctx("cat", digits[:12], cwd=store.folder), 13, "execution_pack_not_found")
    one_error_line(ctx("cat", f"ctx://{digits}", cwd=store.folder), 13, "execution_pack_not_found")
    one_error_line(ctx("cat", f"sha256:{digits[:12]}", cwd=store.folder), 2, "id_invalid")
    assert ctx("cat", f"sha256:{digits.upper()}", cwd=store.folder).raw == REPORT


@pytest.mark.parametrize("ref", ["run_0123456789abcdef", "pk_abcd2345", "a@1.2.3", "./a", "kg:a"])
def test_what_has_no_bytes_of_its_own_is_told_so(store: Store, ref: str) -> None:
    one_error_line(ctx("cat", ref, cwd=store.folder), 2, "reference_not_an_object")


# --- completion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_knows_every_verb(tmp_path: Path, shell: str) -> None:
    result = ctx("completion", shell, cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert [name for name in NAMES if name not in result.out] == []
    assert msgspec.json.decode(ctx("completion", shell, "--json", cwd=tmp_path).raw) == {
        "shell": shell,
        "script": result.out.removesuffix("\n"),
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_one_that_its_shell_accepts(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    script.write_bytes(ctx("completion", shell, cwd=tmp_path).raw)
    checked = subprocess.run([shell, "-n", str(script)], capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")


# --- what it costs ----------------------------------------------------------------------------------------------------


def imported(*args: str, cwd: Path) -> set[str]:
    """The modules that a command imports beyond those that Python needs to start."""

    def seen(code: str) -> set[str]:
        env = child_environment(measured=False)
        command = [sys.executable, "-X", "importtime", "-c", code, *args]
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True)
        lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip() for line in lines}

    ours = seen("import sys; from contextplane.cli.main import main; sys.exit(main(sys.argv[1:]))")
    assert "contextplane.cli.main" in ours
    return ours - seen("pass")


HEAVY = {
    "argparse",
    "dataclasses",
    "hashlib",
    "inspect",
    "json",
    "msgspec",
    "pathlib",
    "re",
    "rfc8785",
    "shtab",
    "sqlite3",
    "typing",
}


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_lightest_answers_import_next_to_nothing(tmp_path: Path, flag: str) -> None:
    modules = imported(flag, cwd=tmp_path)
    assert modules & HEAVY == set()
    assert {name for name in modules if name.startswith("contextplane")} <= {
        "contextplane",
        "contextplane.cli",
        "contextplane.cli.main",
    }


def test_the_status_of_a_store_that_is_in_step_imports_no_object_store(store: Store) -> None:
    modules = imported("status", cwd=store.folder)
    assert "contextplane.adapters.sqlite.catalog" in modules
    unwanted = {
        "rfc8785",
        "shtab",
        "dataclasses",
        "json",
        "threading",
        "tempfile",
        "contextplane.model.canonical",
    }
    unwanted |= {f"contextplane.adapters.files.{name}" for name in ("objects", "batch", "pump", "staging")}
    assert modules & unwanted == set()


@pytest.mark.parametrize("name", NAMES)
def test_no_verb_imports_another_for_its_help(tmp_path: Path, name: str) -> None:
    modules = imported(name, "--help", cwd=tmp_path)
    verbs = {module for module in modules if module.startswith("contextplane.cli.verbs.")}
    assert verbs == {f"contextplane.cli.verbs.{name}" + ("_" if name == "import" else "")}
    assert not {module for module in modules if module.startswith(("contextplane.adapters", "contextplane.store"))}
