"""Completion scripts know every verb, and their shells accept them."""

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from contextplane.cli.table import VERBS
from tests.surfaces.commands import ctx

NAMES = [verb.name for verb in VERBS]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_knows_every_verb(tmp_path: Path, shell: str) -> None:
    result = ctx("completion", shell, cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert [name for name in NAMES if name not in result.out] == []
    assert msgspec.json.decode(ctx("completion", shell, "--json", cwd=tmp_path).raw) == {
        "shell": shell,
        "script": result.out.removesuffix("\n"),
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_one_that_its_shell_accepts(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    script.write_bytes(ctx("completion", shell, cwd=tmp_path).raw)
    checked = subprocess.run([shell, "-n", str(script)], capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
