"""The help of the command, and its answers to mistyped lines."""

import contextlib
import os
import pty
import shlex
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from contextplane import __version__
from contextplane.authoring.yaml_reader import read_yaml_file
from contextplane.cli.exit import STATUSES, USAGE
from contextplane.cli.help import examples_of, top_help, verb_help
from contextplane.cli.parser import Verb, parser_of
from contextplane.cli.table import VERBS
from tests.support.cases import cases
from tests.surfaces.commands import Result, child_environment, ctx
from tests.surfaces.sample import Store, one_error_line

NAMES = [verb.name for verb in VERBS]
VERB = {verb.name: verb for verb in VERBS}
WIDTHS = (60, 80, 120)


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
    assert STATUSES in " ".join(result.out.split())
    assert all(option in result.out for option in ("--json", "--quiet", "--no-color"))
    assert ctx("help", name, cwd=tmp_path) == result
    assert ctx(name, "-h", cwd=tmp_path) == result


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_help_of_all_verbs_fits_every_width_and_ends_with_examples(tmp_path: Path, columns: int) -> None:
    text = ctx("--help", cwd=tmp_path, env={"COLUMNS": str(columns)}).out
    assert max(map(len, text.splitlines())) <= min(WIDTHS)
    _, _, examples = text.rpartition("\n\n")
    heading, *lines = examples.splitlines()
    assert heading == "examples:"
    assert [line.split()[:2] for line in lines] == [["ctx", name] for name in ("demo", "new", "pack")]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("verb", VERBS, ids=NAMES)
def test_the_help_of_a_verb_fits_the_width_and_ends_with_its_examples(tmp_path: Path, verb: Verb, columns: int) -> None:
    result = ctx(verb.name, "--help", cwd=tmp_path, env={"COLUMNS": str(columns)})
    assert result.out == verb_help(verb, columns)
    assert [line for line in result.out.splitlines() if len(line) > columns or line != line.rstrip()] == []
    _, _, section = result.out.rpartition("\n\n")
    heading, *lines = section.splitlines()
    examples = examples_of(verb)
    assert heading == "examples:"
    assert [line.partition("  ")[0] for line in map(str.strip, lines) if line.startswith("ctx ")] == [
        example.command for example in examples
    ]
    assert " ".join(section.split()) == " ".join(["examples:", *(" ".join(example) for example in examples)])


def test_the_sample_of_a_table_stands_in_the_help_line_by_line(tmp_path: Path) -> None:
    lines = ctx("test", "--help", cwd=tmp_path).out.splitlines()
    start = lines.index("  pack: refunds.yaml")
    sample = "\n".join(line[2:] for line in lines[start : lines.index("", start)])
    table = read_yaml_file(sample.encode()).value
    assert isinstance(table, dict)
    assert [*table] == ["pack", "role", "set", "cases"]


def test_help_uses_the_room_that_there_is(tmp_path: Path) -> None:
    def widest(columns: str) -> int:
        return max(map(len, ctx("verify", "--help", cwd=tmp_path, env={"COLUMNS": columns}).out.splitlines()))

    assert 50 < widest("60") <= 60 < widest("80") <= 80 < widest("120") <= 120
    assert widest("500") == widest("120")
    assert widest("1") == widest("40")


@pytest.mark.parametrize("columns", ["", "0", "-5", "wide", "9" * 30])
def test_help_without_a_terminal_or_a_usable_width_is_that_of_the_docs(tmp_path: Path, columns: str) -> None:
    assert ctx("verify", "--help", cwd=tmp_path, env={"COLUMNS": columns}).out == verb_help(VERB["verify"], 80)


def test_help_is_as_wide_as_the_terminal(tmp_path: Path) -> None:
    def at(columns: int) -> str:
        leader, follower = pty.openpty()
        termios.tcsetwinsize(follower, (50, columns))
        command = [sys.executable, "-m", "contextplane", "gc", "--help"]
        subprocess.run(command, cwd=tmp_path, env=child_environment(), stdout=follower, check=True)
        os.close(follower)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while part := os.read(leader, 65536):
                text += part
        os.close(leader)
        return text.decode().replace("\r\n", "\n")

    assert at(70) == verb_help(VERB["gc"], 70)
    assert at(100) == verb_help(VERB["gc"], 100)


@pytest.mark.parametrize("verb", VERBS, ids=NAMES)
def test_the_examples_of_a_verb_are_command_lines_that_it_accepts(tmp_path: Path, verb: Verb) -> None:
    examples = examples_of(verb)
    assert examples
    for command, words in examples:
        program, name, *arguments = shlex.split(command)
        assert (program, name) == ("ctx", verb.name)
        assert words
        parser_of(verb).parse_args(arguments)
        if verb.name not in {"mcp", "demo"}:  # which would serve, and take long
            # Without a store or the files it cannot succeed; that its arguments fit together is checked before.
            assert ctx(name, *arguments, cwd=tmp_path, input=b"").status != USAGE


@pytest.mark.parametrize(
    ("verb", "action"),
    [
        (verb, action)
        for verb in VERBS
        for argument in parser_of(verb)._actions[1:2]
        if argument.choices is not None and not argument.option_strings and verb.name != "completion"
        for action in argument.choices
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_an_action_of_a_verb_has_its_help_and_an_example(tmp_path: Path, verb: Verb, action: str) -> None:
    text = ctx(verb.name, action, "--help", cwd=tmp_path).out
    assert text == verb_help(verb, 80)
    assert [line for line in text.splitlines() if line.startswith(f"  {action} ")]
    assert [example for example in examples_of(verb) if example.command.split()[2:3] == [action]]


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
