"""Closed standard streams: the failure is reported, and no other file is used in their place."""

import subprocess
from pathlib import Path

from tests.support.cases import cases
from tests.surfaces.commands import COMMAND, child_environment
from tests.surfaces.sample import REPORT, Store


def closed(which: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run `ctx` without some of its streams, as a shell closes them."""
    command = ["sh", "-c", f'exec "$@" {which}', "sh", COMMAND, *args]
    return subprocess.run(
        command, cwd=cwd, env=child_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


@cases("args", [["export", "PACK", "-o", "-"], ["cat", "REPORT"], ["show", "PACK"], ["log", "--json"]], ids=" ".join)
@cases("which", [">&-", "<&- >&-"])
def test_what_cannot_be_written_is_told_and_is_no_success(sample: Store, which: str, args: list[str]) -> None:
    words = [{"PACK": sample.pack, "REPORT": sample.report}.get(arg, arg) for arg in args]
    result = closed(which, *words, cwd=sample.folder)
    assert (result.returncode, result.stderr) == (1, b"ctx: output_failed: Bad file descriptor\n")


def test_where_nothing_is_to_be_written_a_closed_output_is_no_failure(sample: Store) -> None:
    result = closed(">&-", "fsck", "--quiet", cwd=sample.folder)
    assert (result.returncode, result.stderr) == (0, b"")


@cases("verb", ["pack", "finalize", "import"])
@cases("which", ["<&-", "<&- >&-"])
def test_a_closed_input_cannot_be_read_and_no_file_of_the_store_stands_in_for_it(
    sample: Store, which: str, verb: str
) -> None:
    result = closed(which, verb, "-", cwd=sample.folder)
    assert result.returncode == 13
    assert b"-: cannot be read: Bad file descriptor" in result.stderr
    assert result.stderr.count(b"\n") == 1


def test_what_was_asked_for_comes_out_whatever_else_is_closed(sample: Store) -> None:
    for which in ("<&-", "2>&-", "<&- 2>&-"):
        result = closed(which, "cat", sample.report, cwd=sample.folder)
        assert (result.returncode, result.stdout) == (0, REPORT)
