"""The help of the command, and its answers to mistyped lines."""

from pathlib import Path

import pytest

from contextplane import __version__
from contextplane.cli.exit import LEGEND
from contextplane.cli.parser import top_help
from contextplane.cli.table import VERBS
from tests.support.cases import cases
from tests.surfaces.commands import Result, ctx
from tests.surfaces.sample import Store, one_error_line

NAMES = [verb.name for verb in VERBS]


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
    ("typed", "meant"), [("statsu", "status"), ("fsk", "fsck"), ("innit", "init"), ("completions", "completion")]
)
def test_an_unknown_verb_suggests_the_one_that_was_meant(tmp_path: Path, typed: str, meant: str) -> None:
    assert f"did you mean 'ctx {meant}'?" in one_error_line(ctx(typed, cwd=tmp_path), 2, "usage")


@cases(
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
def test_a_wrong_command_line_is_one_line_with_a_way_out(sample: Store, args: list[str]) -> None:
    assert "ctx" in one_error_line(ctx(*args, cwd=sample.folder), 2, "usage").partition("(")[2]
