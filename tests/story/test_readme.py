"""What the README tells a newcomer to type is typed here, and what it shows is what appears."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.surfaces.running import ctx

README = Path(__file__).parents[2] / "README.md"


def _steps(name: str) -> list[tuple[str, list[str]]]:
    """Each command of the block that is marked with this name, with the lines that the README shows below it."""
    block = re.search(rf"<!-- {name}:.*?```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    steps: list[tuple[str, list[str]]] = []
    for line in block[1].splitlines():
        if line.startswith("$ "):
            steps.append((line.removeprefix("$ "), []))
        else:
            steps[-1][1].append(line)
    return steps


def _fits(shown: str, line: str) -> bool:
    """Whether a line is what the README shows, where `...` stands for anything."""
    return re.fullmatch(re.escape(shown).replace(re.escape("..."), ".*"), line) is not None


@pytest.mark.parametrize("name", ["quickstart", "context pack"])
def test_the_commands_of_the_readme_run_and_show_what_the_readme_shows(tmp_path: Path, name: str) -> None:
    steps = _steps(name)
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
        lines = result.out.splitlines()
        assert result.status == 0, result.err
        assert len(lines) == len(shown), (command, lines)
        assert all(_fits(*pair) for pair in zip(shown, lines, strict=True)), (command, lines)
    if name == "quickstart":  # the drift around a run is another on every machine, so the page shows no lines
        assert "steps/0  read_file  matched" in ctx("replay", "b192", cwd=tmp_path).out


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    assert ctx("init", cwd=tmp_path).status == 0
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_bytes(README.read_bytes())
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102  our own page
    # Of the first only the file is orphaned: the prompt is the same bytes as that of the recorded run.
    assert ctx("fsck", cwd=tmp_path).out.count("orphaned  sha256:") == 1
    assert ctx("log", cwd=tmp_path).out.count("\n") == 1


def test_every_page_that_the_readme_links_to_is_there() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    assert all((README.parent / target).exists() for target in targets), targets
