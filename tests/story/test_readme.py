"""What the README tells a newcomer to type is typed here, and what it shows is what appears."""

import re
import shlex
from pathlib import Path

import pytest

from tests.surfaces.running import ctx

README = Path(__file__).parents[2] / "README.md"


def _quickstart() -> list[tuple[str, list[str]]]:
    """Each command of the quickstart, with the lines that the README shows below it."""
    block = re.search(r"<!-- quickstart:.*?```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
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


def test_the_quickstart_of_the_readme_runs_and_shows_what_the_readme_shows(tmp_path: Path) -> None:
    steps = _quickstart()
    assert len(steps) >= 4
    for command, shown in steps:
        if command.startswith("cat > "):
            (tmp_path / command.removeprefix("cat > ")).write_text("\n".join(shown), encoding="utf-8")
            continue
        program, *arguments = shlex.split(command)
        assert program == "ctx"
        result = ctx(*arguments, cwd=tmp_path)
        lines = result.out.splitlines()
        assert result.status == 0, result.err
        assert len(lines) == len(shown), (command, lines)
        assert all(_fits(*pair) for pair in zip(shown, lines, strict=True)), (command, lines)


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
