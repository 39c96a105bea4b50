"""The page about --json lists exactly the members that the commands answer; its examples are real."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spec.manifest import ROOT
from tests.story.pages import fits, steps_of
from tests.support.cases import cases
from tests.surfaces.commands import ctx
from tests.surfaces.json_answers import answers, members

PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
RUNS = (ROOT / "docs" / "execution-packs.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]+)`( \*)? \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
TYPES: dict[str, Callable[[object], bool]] = {
    "text": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "map": lambda value: isinstance(value, dict),
    "anything": lambda _: True,
    "list of text": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "list of integers": lambda value: isinstance(value, list) and all(type(item) is int for item in value),
    "list of objects": lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
    "like `entries[]`": lambda value: isinstance(value, dict),
}
FREE = ("map", "anything", "like `entries[]`")
"""Members whose own members have free names, or are documented elsewhere on the page."""

REFERENCE = {
    *("pack_hash_a", "pack_hash_b", "has_drift", "entries", "entries[].type", "entries[].description"),
    *("entries[].step_index", "entries[].pack_a", "entries[].pack_b"),
}
"""What the reference program's `diff` answers with."""


def sections() -> dict[str, dict[str, list[str]]]:
    """The members of every section with a table, each with its possible types."""
    pieces = re.split(r"^##+ (.+)$", PAGE, flags=re.MULTILINE)[1:]
    tables = {title: ROW.findall(text) for title, text in zip(pieces[::2], pieces[1::2], strict=True)}
    return {title: {name: types.split(" or ") for name, _, types in rows} for title, rows in tables.items()}


SECTIONS = sections()


def of_section(title: str, verb_answers: dict[str, list[Any]]) -> list[Any]:
    """The answers of a section: `log` includes `log REF`, `finalize` those of a draft and a recording."""
    besides = {"log": ["log REF"], "finalize": ["finalize DRAFT", "finalize RECORDING"]}
    return [answer for name in (title, *besides.get(title, [])) for answer in verb_answers.get(name, [])]


@pytest.fixture(scope="module")
def verb_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    return answers(tmp_path_factory.mktemp("answers"))


def test_there_is_a_table_for_every_verb_of_execution_packs_and_the_store(verb_answers: dict[str, list[Any]]) -> None:
    titles = {
        "log" if name == "log REF" else "finalize" if name.startswith("finalize ") else name for name in verb_answers
    }
    assert titles == set(SECTIONS)
    runs = {"pack", "show", "cat", "log", "search", "diff", "replay", "verify", "fork", "finalize"}
    assert {title.split()[0] for title in SECTIONS} == {*runs, "export", "import", "status", "fsck", "gc", "errors"}


@cases("title", SECTIONS)
def test_a_table_lists_exactly_the_members_that_are_answered(verb_answers: dict[str, list[Any]], title: str) -> None:
    table = SECTIONS[title]
    free = frozenset(name for name, types in table.items() if set(types) & set(FREE))
    answered = [member for answer in of_section(title, verb_answers) for member in members(answer, free)]
    assert {name for name, _ in answered} == set(table)
    for name, value in answered:
        assert any(TYPES[kind](value) for kind in table[name]), (name, value)


def test_a_first_divergence_is_an_entry_without_its_text(verb_answers: dict[str, list[Any]]) -> None:
    first = verb_answers["diff"][0]["first_divergence"]
    assert first == {name: value for name, value in verb_answers["diff"][0]["entries"][0].items() if name != "text"}


def test_the_members_of_diff_that_are_the_references_are_marked() -> None:
    assert {name for name, star, _ in ROW.findall(PAGE) if star} == REFERENCE


def examples() -> Iterator[tuple[str, list[str]]]:
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        yield from steps_of(block)


def test_the_examples_of_the_page_are_what_the_commands_answer(tmp_path: Path) -> None:
    log = re.search(r"^\$ cat > run\.json\n(.*?)^\$ ", RUNS, re.DOTALL | re.MULTILINE)
    assert log is not None
    (tmp_path / "run.json").write_text(log[1], encoding="utf-8")
    assert ctx("init", cwd=tmp_path).status == 0
    shown = set()
    for command, lines in examples():
        program, *arguments = command.split()
        if program != "ctx":
            subprocess.run(command, shell=True, cwd=tmp_path, check=True)  # noqa: S602  our own page
            continue
        result = ctx(*arguments, cwd=tmp_path)
        assert fits(lines, result.err if result.status else result.out), (command, result)
        if "--json" in arguments:
            json.loads(result.err if result.status else result.out)
            shown.add(arguments[0])
    assert shown == {title.split()[0] for title in SECTIONS} - {"errors"}
