"""Output to terminals, closed pipes and full disks."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextplane.app.init import init
from contextplane.app.settings import Settings
from tests.support.cases import cases
from tests.surfaces.commands import COMMAND, child_environment, ctx
from tests.surfaces.sample import LARGE, Store


def on_a_terminal(*args: str, cwd: Path, env: dict[str, str] | None = None, status: int = 0) -> str:
    """The output of `ctx` on a terminal."""
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
    assert child.wait() == status
    return written.decode()


HOSTILE = "a\x1b[2J\tb\u009b31m\u202egnp\x07\r\n\u00e9 \U000e0041\n"


def hostile(folder: Path) -> str:
    """A store with one run that has escape sequences wherever possible; returns its pack."""
    init(Settings(cwd=str(folder)), ".")
    log = {
        "model": {"identifier": HOSTILE},
        "system_prompt": HOSTILE,
        "outputs": [{"name": "text", "content": HOSTILE}, {"name": "bytes", "content_base64": "AP8bWzJK"}],
        "environment": {"os": "linux", "runtime": "py"},
    }
    return ctx("pack", "-", cwd=folder, input=json.dumps(log).encode()).out.strip()


def test_json_has_no_character_that_speaks_to_a_terminal_and_means_the_same(tmp_path: Path) -> None:
    ref = hostile(tmp_path)
    for args in (["show", ref, "--json"], ["log", "--json"]):
        for out in (ctx(*args, cwd=tmp_path).out, on_a_terminal(*args, cwd=tmp_path).replace("\r\n", "\n")):
            assert all(character.isprintable() or character == "\n" for character in out)
            value = json.loads(out)
            assert (value["model"]["identifier"] if "model" in value else value["packs"][0]["model"]) == HOSTILE
            assert "\u00e9" in out
    error = ctx("show", "\u202e\x7f", "--json", cwd=tmp_path).err
    assert (error.isascii(), json.loads(error)["error"]["code"]) == (True, "reference_invalid")


def test_cat_shows_a_text_on_a_terminal_and_sends_it_as_it_is_anywhere_else(tmp_path: Path) -> None:
    ref = hostile(tmp_path)
    screen = on_a_terminal("cat", f"{ref}:outputs/text", cwd=tmp_path)
    assert screen == "a\\x1b[2J\tb\\x9b31m\\u202egnp\\x07\\r\r\n\u00e9 \\U000e0041\r\n"  # the terminal itself adds \r
    assert ctx("cat", f"{ref}:outputs/text", cwd=tmp_path).raw == HOSTILE.encode()
    assert ctx("cat", f"{ref}:outputs/bytes", cwd=tmp_path).raw == b"\x00\xff\x1b[2J"


def test_cat_does_not_send_to_a_terminal_what_is_no_text(tmp_path: Path, sample: Store) -> None:
    named = f"{hostile(tmp_path)}:outputs/bytes"
    text = on_a_terminal("cat", named, cwd=tmp_path, status=2)
    assert f"ctx: not_text_for_terminal: {named}: " in text
    assert "ctx cat REF > FILE" in text
    assert "not_text_for_terminal" in on_a_terminal("cat", sample.large, cwd=sample.folder, status=2)


def test_colour_is_for_a_terminal_and_for_those_who_want_it(sample: Store) -> None:
    assert "\x1b[32mThe store is intact.\x1b[0m" in on_a_terminal("fsck", cwd=sample.folder)
    assert "\x1b" not in on_a_terminal("fsck", "--no-color", cwd=sample.folder)
    assert "\x1b" not in on_a_terminal("--no-color", "fsck", cwd=sample.folder)
    assert "\x1b" not in on_a_terminal("fsck", cwd=sample.folder, env={"NO_COLOR": "1"})
    assert "\x1b" not in on_a_terminal("fsck", "--json", cwd=sample.folder)
    assert "\x1b" in on_a_terminal("fsck", cwd=sample.folder, env={"NO_COLOR": ""})


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
def test_a_reader_who_has_left_ends_it_without_a_word(sample: Store, left_pipe: int, args: list[str]) -> None:
    for env in (None, {"PYTHONUNBUFFERED": "1"}):
        command = [COMMAND, *args]
        result = subprocess.run(
            command,
            cwd=sample.folder,
            env=child_environment(env),
            stdout=left_pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert (result.returncode, result.stderr) == (141, b"")


def started(sample: Store, *args: str) -> subprocess.Popen[bytes]:
    """A `ctx` that is writing more than a pipe holds; its first byte has arrived."""
    child = subprocess.Popen(
        [COMMAND, *args],
        cwd=sample.folder,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        # Tests that run in the background have it ignored, and all children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs beside it
    )
    assert child.stdout is not None
    assert child.stdout.read(1) == LARGE[:1]
    return child


def test_a_reader_who_leaves_in_the_middle_ends_it_without_a_word(sample: Store) -> None:
    with started(sample, "cat", sample.large) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141


def test_an_interrupt_ends_it_without_a_word(sample: Store) -> None:
    with started(sample, "cat", sample.large) as child:
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
def test_an_output_that_is_full_is_told_in_one_line(sample: Store, args: list[str]) -> None:
    command = [COMMAND, *(sample.large if arg == "LARGE" else arg for arg in args)]
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            command, cwd=sample.folder, env=child_environment(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 1
    assert result.stderr.startswith(b"ctx: ") or b'"error"' in result.stderr
    assert result.stderr.count(b"\n") == 1


@cases("args", [["--version"], ["status"], ["status", "--json"], ["status", "--help"], ["cat", "REPORT"]], ids=" ".join)
def test_an_output_that_is_closed_is_no_accident(sample: Store, args: list[str]) -> None:
    words = [sample.report if arg == "REPORT" else arg for arg in args]
    command = ["sh", "-c", 'exec "$@" >&-', "sh", COMMAND, *words]
    result = subprocess.run(command, cwd=sample.folder, env=child_environment(), stderr=subprocess.PIPE, check=False)
    assert result.returncode in {0, 1}
    assert b"Traceback" not in result.stderr
    assert result.stderr.count(b"\n") <= 1


def test_a_large_object_comes_out_whole(sample: Store) -> None:
    assert ctx("cat", sample.large, cwd=sample.folder).raw == LARGE


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
