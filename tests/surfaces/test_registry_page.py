"""Every command of the page about the registry works, in the order of the page."""

import re
import shlex
from pathlib import Path

from contextplane.registry.authority import RIGHTS
from contextplane.registry.refresh import ACTIONS, REQUIRED_ACTIONS
from tests.surfaces.commands import ctx

PAGE = (Path(__file__).parents[2] / "docs" / "registry.md").read_text(encoding="utf-8")
LINES = [
    line.removeprefix("$ ctx ")
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    assert len(LINES) > 30
    for line in LINES:
        result = ctx(*shlex.split(line), cwd=tmp_path, env={"CTX_KEY_PASSPHRASE": "correct horse"})
        assert result.status == 0, (line, result)


def test_the_table_of_refreshes_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)
    table = {trigger: re.findall(r"[a-z_]{6,}\*?", actions.partition(":")[0]) for trigger, actions in rows}
    assert table == {
        trigger: [f"{action}*" if ACTIONS[action].absent else action for action in actions]
        for trigger, actions in REQUIRED_ACTIONS.items()
    }


def test_the_page_tells_of_every_right() -> None:
    rows = PAGE.partition("| act | takes |")[2].partition("\n\n")[0]
    roles = {"environment": "environment:<name>"}
    for right in {*RIGHTS.values()} - {"anybody", "issuer", "reviewer"}:
        assert f"`{roles.get(right, right)}`" in rows
