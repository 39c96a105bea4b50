"""The commands of the page about context packs, run in their order: each does what stands beside it."""

import re
from pathlib import Path

from tests.spec.manifest import ROOT
from tests.surfaces.running import ctx

PAGE = (ROOT / "docs" / "context-packs.md").read_text(encoding="utf-8")
COMMANDS = [line.split("#")[0].split()[1:] for line in re.findall(r"^ctx .*", PAGE, re.MULTILINE)]
COMPARED = PAGE.partition("```\nComparing ")[2].partition("```")[0]


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    assert len(COMMANDS) >= 8
    for command in COMMANDS:
        done = ctx(*command, cwd=tmp_path)
        # No change is complete yet: the checklist ends with 10, and says why.
        assert done.status == (10 if command[0] == "check" else 0), command
        assert done.err == ""


def test_a_comparison_is_told_as_on_the_page(tmp_path: Path) -> None:
    assert ctx("new", "old.yaml", cwd=tmp_path).status == 0
    text = (tmp_path / "old.yaml").read_text(encoding="utf-8")
    text = text.replace("pack_version: 1.0.0", "pack_version: 1.1.0").replace("max: 50000", "max: 60000")
    (tmp_path / "refunds.yaml").write_text(text, encoding="utf-8")
    assert ctx("diff", "old.yaml", "refunds.yaml", cwd=tmp_path).out == f"Comparing {COMPARED}"


def test_the_examples_of_the_page_are_taken_by_the_command(tmp_path: Path) -> None:
    environment, overlay = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "environment.yaml").write_text(environment, encoding="utf-8")
    (tmp_path / "india.yaml").write_text(overlay, encoding="utf-8")
    assert ctx("new", "refunds.yaml", cwd=tmp_path).status == 0
    done = ctx(*("lint", "refunds.yaml", "--environment", "environment.yaml", "--overlay", "india.yaml"), cwd=tmp_path)
    assert done.status == 0, done.out
    assert "overlay india.yaml:8:5  ovl.support.india@1.0.0: new redaction aadhaar (narrows)" in done.out
