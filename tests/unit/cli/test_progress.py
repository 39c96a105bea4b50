"""The progress bar: on a terminal only, and removed when the work is done."""

import json
from argparse import Namespace
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from contextplane.app.init import init
from contextplane.app.settings import Settings
from contextplane.cli import terminal
from contextplane.cli.output import CommandOutput
from contextplane.cli.store import progress_bar
from contextplane.cli.terminal import Bar
from contextplane.cli.verbs import export, import_, pack, verify
from contextplane.ports.objects import StorageFull

CLEARED = "\r\x1b[K"


class Terminal(StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw every step at once."""
    monkeypatch.setattr(terminal, "_PATIENCE", 0.0)
    monkeypatch.setattr(terminal, "_EVERY", 0.0)


def at_terminal() -> CommandOutput:
    return CommandOutput(out=StringIO(), err=Terminal())


def drawn_lines(output: CommandOutput) -> list[str]:
    """Return each state of the progress line, in turn."""
    assert isinstance(output.err, StringIO)
    return output.err.getvalue().split(CLEARED)[1:]


@pytest.mark.usefixtures("impatient")
def test_a_bar_stays_on_its_line_however_narrow_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    output = at_terminal()
    Bar(output, 4).step(10, 1)
    assert drawn_lines(output) == ["[########----------"]


@pytest.mark.usefixtures("impatient")
def test_a_bar_is_measured_by_bytes_then_by_objects_and_pretends_nothing() -> None:
    output = at_terminal()
    unknown, counted = Bar(output), Bar(output, 4)
    unknown.step(3 << 20, 1)
    counted.step(10, 1)
    counted.expect(20)
    counted.step(10, 3)
    assert drawn_lines(output) == [
        "1 object, 3.0 MiB",
        "[########----------------------] 1 object, 10 B",
        "[###############---------------] 1 object, 10 B of 20 B",
        "[##############################] 4 objects, 20 B of 20 B",
    ]


def test_what_is_soon_done_shows_no_bar_and_what_is_very_much_shows_it_at_once() -> None:
    output = at_terminal()
    bar = Bar(output)
    bar.expect(1 << 20)
    bar.step(1 << 20, 1)
    bar.clear()
    assert drawn_lines(output) == []
    bar.expect(2 << 30)
    assert drawn_lines(output) == ["[------------------------------] 1 object, 1.0 MiB of 2.0 GiB"]


@pytest.mark.usefixtures("impatient")
def test_nothing_is_left_of_a_bar_also_when_the_work_fails() -> None:
    output = at_terminal()

    def work() -> None:
        with progress_bar(output) as bar:
            assert bar is not None
            bar.step(1, 1)
            raise StorageFull("no room")

    with pytest.raises(StorageFull):
        work()
    assert drawn_lines(output)[-1] == ""


@pytest.mark.parametrize(
    "output",
    [
        CommandOutput(err=StringIO()),
        CommandOutput(err=Terminal(), json=True),
        CommandOutput(err=Terminal(), quiet=True),
    ],
    ids=["a pipe", "json", "quiet"],
)
@pytest.mark.usefixtures("impatient")
def test_nobody_but_people_at_a_terminal_is_told(output: CommandOutput) -> None:
    with progress_bar(output) as bar:
        assert bar is None
    Bar(output).expect(2 << 30)
    assert drawn_lines(output) == []


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log with its contents, a log that names a file, and a store."""
    monkeypatch.chdir(tmp_path)
    init(Settings(cwd=str(tmp_path)), ".")
    log = {"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}
    Path("inline.json").write_text(json.dumps(log), encoding="utf-8")
    Path("large").write_bytes(bytes(5 << 20))
    Path("files.json").write_text(json.dumps({**log, "inputs": [{"name": "large", "path": "large"}]}), encoding="utf-8")
    return tmp_path


def watch(run: Callable[[Namespace, CommandOutput], int], **args: object) -> list[str]:
    """Run a verb at a terminal; return the lines that were drawn on standard error."""
    output = at_terminal()
    assert run(Namespace(**args), output) == 0
    return [line.partition("ctx: ")[0].strip() for line in drawn_lines(output)]


@pytest.mark.usefixtures("impatient", "store")
def test_the_verbs_that_move_much_show_how_far_they_have_come() -> None:
    packing = {"sidecars": False, "parent": None, "root": None}
    inline = watch(pack.run, log="inline.json", **packing)
    assert inline[0].endswith(f"0 objects, 0 B of {Path('inline.json').stat().st_size} B")
    files = watch(pack.run, log="files.json", **packing)
    assert "2 objects, 5.0 MiB" in files  # how much it will be is not known, so there is no bar
    (ref,) = [path.name for path in Path(".ctx/packs").iterdir() if b"large" in path.read_bytes()]
    exported = watch(export.run, refs=[ref], output="runs.tar", environment=[], since=None)
    assert exported[0] == f"[{'-' * 30}] 0 objects, 0 B of 5.0 MiB"
    assert exported[-2] == f"[{'#' * 30}] 3 objects, 5.0 MiB of 5.0 MiB"
    imported = watch(import_.run, file="runs.tar")
    assert imported[0] == f"[{'-' * 30}] 0 objects, 0 B of 5.0 MiB"
    assert imported[-2] == f"[{'#' * 30}] 3 objects, 5.0 MiB of 5.0 MiB"
    others = ("sign", "key", "passphrase_fd", "inclusion", "consistency", "since", "output")
    checked = watch(verify.run, what=ref, file=False, registry=False, **dict.fromkeys(others))
    assert checked[-2] == "3 objects, 5.0 MiB"
    for seen in (inline, files, exported, imported, checked):
        assert len(seen) > 2
        assert seen[-1] == ""
