"""The commands of the page about context packs run in order, and each does what the page says."""

import json
import re
from pathlib import Path

import pytest

from tests.spec.manifest import ROOT
from tests.surfaces.commands import ctx
from tests.unit.registry.desk import CATALOG

PAGE = (ROOT / "docs" / "context-packs.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("| to | type |")[2].partition("\n\n")[0]
COMMANDS = [line.split() for line in re.findall(r"`ctx (.*?)`", TABLE)]
GIVEN = {"--overlay": "india.yaml", "--catalog": "shared.json", "--golden": "golden"}
"""What a reader gives to each of the options that take a file or a folder of his own."""
COMPARED = PAGE.partition("```\nComparing ")[2].partition("```")[0]


def examples(folder: Path) -> None:
    """The files that the page writes: a pack, its next version, an environment, an overlay, a catalog."""
    assert ctx("new", "refunds.yaml", cwd=folder).status == 0
    text = (
        (folder / "refunds.yaml").read_text(encoding="utf-8").replace("pan, credit_card", "pan, credit_card, aadhaar")
    )
    text = text.replace("pack_version: 1.0.0", "pack_version: 1.1.0")
    (folder / "next.yaml").write_text(text, encoding="utf-8")
    (folder / "golden").mkdir()
    (folder / "shared.json").write_text(json.dumps(CATALOG), encoding="utf-8")
    environment, overlay = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (folder / "environment.yaml").write_text(environment, encoding="utf-8")
    (folder / "india.yaml").write_text(overlay, encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_of_the_table_works(tmp_path: Path, command: list[str]) -> None:
    examples(tmp_path)
    words = [GIVEN.get(before, word) for before, word in zip(["", *command], command, strict=False)]
    result = ctx(*words, cwd=tmp_path)
    # No change is complete yet: the checklist ends with 15, and says why.
    assert result.status == (15 if command[0] == "check" else 0), result
    assert result.err == ""


def test_the_table_has_commands() -> None:
    assert len(COMMANDS) >= 5


def test_a_comparison_is_told_as_on_the_page(tmp_path: Path) -> None:
    assert ctx("new", "old.yaml", cwd=tmp_path).status == 0
    text = (tmp_path / "old.yaml").read_text(encoding="utf-8")
    text = text.replace("pack_version: 1.0.0", "pack_version: 1.1.0").replace("max: 50000", "max: 60000")
    (tmp_path / "refunds.yaml").write_text(text, encoding="utf-8")
    assert ctx("diff", "old.yaml", "refunds.yaml", cwd=tmp_path).out == f"Comparing {COMPARED}"


def test_the_examples_of_the_page_are_taken_by_the_command(tmp_path: Path) -> None:
    examples(tmp_path)
    result = ctx(
        *("lint", "refunds.yaml", "--environment", "environment.yaml", "--overlay", "india.yaml"), cwd=tmp_path
    )
    assert result.status == 0, result.out
    assert "overlay india.yaml:8:5  ovl.support.india@1.0.0: new redaction aadhaar (narrows)" in result.out
