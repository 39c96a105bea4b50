"""The commands of the page about compiling run in order, and each prints what the page shows."""

import re
import shlex
from pathlib import Path

from tests.spec.manifest import ROOT
from tests.surfaces.commands import ctx

PAGE = (ROOT / "docs" / "compiling.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
STEPS = [tuple(step.rstrip("\n").split("\n")) for block in BLOCKS for step in block.split("$ ")[1:]]


def test_every_command_of_the_page_shows_what_the_page_shows(tmp_path: Path) -> None:
    assert len(STEPS) == 8
    for command, *shown in STEPS:
        program, *args = shlex.split(command)
        if program == "mkdir":
            (tmp_path / args[0]).mkdir()
            continue
        assert program == "ctx"
        result = ctx(*args, cwd=tmp_path)
        assert (result.status, result.err) == (0, ""), command
        pattern = ".*".join(map(re.escape, "\n".join(shown).split("...")))
        assert not shown or re.fullmatch(pattern, result.out.rstrip("\n"), re.DOTALL), (command, result.out)
