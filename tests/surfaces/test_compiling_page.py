"""The commands of the pages about compiling and testing run in order, and each prints what the page shows."""

import re
import shlex
from pathlib import Path

import pytest

from tests.spec.manifest import ROOT
from tests.surfaces.commands import ctx


@pytest.mark.parametrize(("page", "count"), [("compiling.md", 9), ("testing.md", 3)])
def test_every_command_of_the_page_shows_what_the_page_shows(tmp_path: Path, page: str, count: int) -> None:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    steps = [tuple(step.rstrip("\n").split("\n")) for block in blocks for step in block.split("$ ")[1:]]
    assert len(steps) == count
    for command, *shown in steps:
        program, *args = shlex.split(command)
        if program == "mkdir":
            (tmp_path / args[0]).mkdir()
            continue
        assert program == "ctx"
        result = ctx(*args, cwd=tmp_path)
        assert (result.status, result.err) == (0, ""), command
        pattern = ".*".join(map(re.escape, "\n".join(shown).split("...")))
        assert not shown or re.fullmatch(pattern, result.out.rstrip("\n"), re.DOTALL), (command, result.out)
