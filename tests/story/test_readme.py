"""The commands of the first pages run, and print what the pages show."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.story.pages import fits, steps_of
from tests.surfaces.commands import ctx

ROOT = Path(__file__).parents[2]
README, RUNS, AUTHORS = ROOT / "README.md", ROOT / "docs" / "execution-packs.md", ROOT / "docs" / "context-packs.md"


def _steps(page: Path, name: str) -> list[tuple[str, list[str]]]:
    """The commands of the block with this name, each with the lines that the page shows below it."""
    block = re.search(rf"<!-- {name}:.*?```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return steps_of(block[1])


@pytest.mark.parametrize(
    ("page", "name"),
    [(README, "story"), (RUNS, "quickstart"), (AUTHORS, "context pack")],
    ids=lambda value: str(value)[-12:],
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
        assert fits(shown, result.out), (command, result.out)
    if name == "quickstart":  # the drift around a run is another on every machine, so the page shows no lines
        assert "steps/0  read_file  matched" in ctx("replay", "b192", cwd=tmp_path).out


def test_the_python_of_a_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", RUNS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    assert ctx("init", cwd=tmp_path).status == 0
    monkeypatch.chdir(tmp_path)
    # As the quickstart leaves it.
    (_, log), *_ = _steps(RUNS, "quickstart")
    Path("run.json").write_text("\n".join(log), encoding="utf-8")
    Path("order.json").write_text("order 881", encoding="utf-8")
    assert ctx("pack", "run.json", cwd=tmp_path).status == 0
    for block in blocks:
        exec(compile(block, RUNS.name, "exec"), {})  # noqa: S102  our own page
    assert ctx("fsck", cwd=tmp_path).out.endswith("The store is intact.\n")
    fork, recorded, _ = json.loads(ctx("log", "--json", cwd=tmp_path).out)["packs"]
    assert (fork["parent"][:10], recorded["steps"]) == ("ctx://b192", 2)


@pytest.mark.parametrize("page", [README, RUNS, AUTHORS, ROOT / "docs" / "json.md"], ids=lambda page: page.name)
def test_every_page_that_a_page_links_to_is_there(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert targets
    assert all((page.parent / target).exists() for target in targets), targets
