"""Logs with the manifests that they become, as data: what others must match to give the same identity."""

import hashlib
import json
from pathlib import Path

import pytest
import rfc8785

from tests.surfaces.running import ctx

CASES = sorted((Path(__file__).parents[1] / "cases" / "execution").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_log_becomes_its_manifest(tmp_path: Path, path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    # The case itself is right: its hash is that of its manifest, in the form of the standard.
    assert hashlib.sha256(rfc8785.dumps(case["want_manifest"])).hexdigest() == case["want_hash"]
    assert ctx("init", cwd=tmp_path).status == 0
    done = ctx("pack", "-", cwd=tmp_path, input=json.dumps(case["log"]).encode())
    assert done.out == f"ctx://{case['want_hash']}\n", done.err
    assert ctx("cat", case["want_hash"], cwd=tmp_path).raw == rfc8785.dumps(case["want_manifest"])


def test_there_are_cases() -> None:
    assert len(CASES) >= 6
