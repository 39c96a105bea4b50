"""What the first pages tell a newcomer to type is typed here, and what they show is what appears."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.surfaces.running import ctx

ROOT = Path(__file__).parents[2]
README, RUNS, AUTHORS = ROOT / "README.md", ROOT / "docs" / "execution-packs.md", ROOT / "docs" / "context-packs.md"


def _steps(page: Path, name: str) -> list[tuple[str, list[str]]]:
    """Each command of the block that is marked with this name, with the lines that the page shows below it."""
    block = re.search(rf"<!-- {name}:.*?```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    steps: list[tuple[str, list[str]]] = []
    for line in block[1].splitlines():
        if line.startswith("$ "):
            steps.append((line.removeprefix("$ "), []))
        else:
            steps[-1][1].append(line)
    return steps


def _fits(shown: list[str], told: str) -> bool:
    """Whether it is what the page shows: `...` stands for anything in a line, and as a line for any lines."""
    lines = [
        r"(?s:.*)" if line == "..." else re.escape(line + "\n").replace(re.escape("..."), "[^\n]*") for line in shown
    ]
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in told.splitlines())) is not None


@pytest.mark.parametrize(
    ("page", "name"),
    [(README, "story"), (RUNS, "quickstart"), (AUTHORS, "context pack")],
    ids=lambda one: str(one)[-12:],
)
def test_the_commands_of_a_page_run_and_show_what_the_page_shows(tmp_path: Path, page: Path, name: str) -> None:
    steps = _steps(page, name)
    assert len(steps) >= 4
    for command, shown in steps:
        if command.startswith("cat > "):
            (tmp_path / command.removeprefix("cat > ")).write_text("\n".join(shown), encoding="utf-8")
            continue
        if command.startswith("printf "):
            subprocess.run(command, shell=True, cwd=tmp_path, check=True)  # noqa: S602  our own page
            continue
        program, *arguments = shlex.split(command)
        if program in {"cp", "sed"}:  # what an author does by hand
            subprocess.run([program, *arguments], cwd=tmp_path, check=True)
            continue
        assert program == "ctx"
        result = ctx(*arguments, cwd=tmp_path)
        assert result.status == 0, result.err
        assert _fits(shown, result.out), (command, result.out)
    if name == "quickstart":  # the drift around a run is another on every machine, so the page shows no lines
        assert "steps/0  read_file  matched" in ctx("replay", "b192", cwd=tmp_path).out


def test_the_python_of_a_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", RUNS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    assert ctx("init", cwd=tmp_path).status == 0
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_bytes(README.read_bytes())
    for block in blocks:
        exec(compile(block, RUNS.name, "exec"), {})  # noqa: S102  our own page
    # Of the first only the file is orphaned: the prompt is the same bytes as that of the recorded run.
    assert ctx("fsck", cwd=tmp_path).out.count("orphaned  sha256:") == 1
    assert ctx("log", cwd=tmp_path).out.count("\n") == 1


@pytest.mark.parametrize("page", [README, RUNS, AUTHORS], ids=lambda one: one.name)
def test_every_page_that_a_page_links_to_is_there(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert targets
    assert all((page.parent / target).exists() for target in targets), targets
