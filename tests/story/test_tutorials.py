"""The tutorials work to the letter: files are saved, commands run, outputs compared."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.story.pages import Command, File, fits, parts_of, prose_of
from tests.surfaces.agents import environment
from tests.surfaces.commands import COMMAND, ctx

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "concepts.md", *sorted((DOCS / "tutorials").glob("*.md"))]
TUTORIALS = PAGES[1:]
TERMS = [  # each explained on some page, in the words that stand behind it
    ("approval mode", "read_only < local_write < network < delegated < destructive"),
    ("CEID", "order:ord_881"),
    ("`schema://`", "name of a JSON Schema"),
    ("`decision_right`", "propose"),
    ("`snapshot_pin_rule`", "alias:prod"),
]
_SHELL = re.compile(r"[$|<>*;&`]")
_PATIENCE = 30


class Reader:
    """Follows a page in its own folder: a shell that keeps its folder, variables and last status."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables: dict[str, str] = {}
        self.status = 0

    def follow(self, page: str) -> int:
        """Save every file and type every command. Return how many commands there were."""
        commands = 0
        for part in parts_of(page):
            if isinstance(part, File):
                path = self.folder / part.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(part.text, encoding="utf-8")
            else:
                self.check(part)
                commands += 1
        assert self.status == 0, "the last command failed, and the page does not show it"
        return commands

    def check(self, command: Command) -> None:
        """Type a command and compare. After one that fails the page must show its status: `echo $?`."""
        if command.line == "echo $?":
            outputs, self.status = [f"{self.status}\n"], 0
        else:
            assert self.status == 0, f"the command before {command.line!r} ended with {self.status}: show it by echo $?"
            outputs = self.type(command.line)
        shown = list(command.shown)
        differ = "\n".join([f"$ {command.line}", "--- page", *shown, "--- output", outputs[0]])
        assert any(fits(shown, output) for output in outputs), differ

    def type(self, line: str) -> list[str]:
        """Run a command line. Return what a terminal may show: it mixes output and errors in either order."""
        program, *arguments = shlex.split(line)
        if program == "cd":
            self.folder = (self.folder / arguments[0]).resolve(strict=True)
            return [""]
        if program == "export":
            self.variables |= dict([arguments[0].split("=", 1)])
            return [""]
        if program == "ctx" and not _SHELL.search(line):
            result = ctx(*arguments, cwd=self.folder, env=self.variables)
            self.status = result.status
            return [result.out + result.err, result.err + result.out]
        path = f"{Path(COMMAND).parent}:{environment()['PATH']}"
        process = subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=environment({**self.variables, "PATH": path}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=_PATIENCE,
        )
        self.status = process.returncode
        return [process.stdout.decode()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_prints_what_the_page_shows(tmp_path: Path, page: Path) -> None:
    commands = Reader(tmp_path).follow(page.read_text(encoding="utf-8"))
    assert commands >= (20 if page in TUTORIALS else 3)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_line_of_a_page_is_longer_than_120_columns(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    saved = [part.text for part in parts_of(text) if isinstance(part, File)]
    lines = "\n".join([prose_of(text), *saved]).splitlines()
    assert [line for line in lines if len(line) > 120] == []


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_has_what_its_reader_looks_for(page: Path) -> None:
    headings = re.findall(r"^## (.*)$", prose_of(page.read_text(encoding="utf-8")), re.MULTILINE)
    assert headings[:2] == ["What you will have", "What you need"]
    assert headings[-1] == "What next"
    steps = [int(heading.split(".")[0]) for heading in headings[2:-1]]
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize(("term", "words"), TERMS)
def test_a_term_is_explained_where_it_is_first_met(term: str, words: str) -> None:
    pages = [page for page in TUTORIALS if term in page.read_text(encoding="utf-8")]
    assert pages
    for page in pages:
        assert words in page.read_text(encoding="utf-8").partition(term)[2][:600], page.name


WRONG = {
    "another output": "$ echo yes\nno\n",
    "more output than shown": "$ printf 'a\\nb\\n'\na\n",
    "a status that is not shown": "$ false\n$ true\n",
    "a status that is not shown at the end": "$ false\n",
    "another status than shown": "$ false\n$ echo $?\n2\n",
}


@pytest.mark.parametrize("commands", WRONG.values(), ids=WRONG.keys())
def test_a_page_that_is_wrong_is_noticed(tmp_path: Path, commands: str) -> None:
    with pytest.raises(AssertionError):
        Reader(tmp_path).follow(f"```console\n{commands}```\n")


def test_a_block_that_no_test_looks_at_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no test looks at"):
        Reader(tmp_path).follow("```yaml\na: 1\n```\n")
