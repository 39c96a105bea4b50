"""`ctx new`: a small, complete pack to begin from."""

import json
from pathlib import Path

import pytest
import yaml

from tests.spec.manifest import proves
from tests.surfaces.commands import ctx
from tests.unit.authoring.packs import EXAMPLE

CONFLICT = 14
USAGE = 2


@proves("context-pack:mvp:six-parts-suffice")
@pytest.mark.parametrize("name", ["refunds.yaml", "refunds.YML", "refunds.json", "refunds"])
def test_what_it_writes_passes_the_gates_and_is_the_minimum_pack(tmp_path: Path, name: str) -> None:
    result = ctx("new", name, cwd=tmp_path)
    assert result.status == 0, result.err
    assert f"ctx lint {name}" in result.out
    text = (tmp_path / name).read_text()
    is_yaml = name.lower().endswith(("yaml", "yml"))
    pack = yaml.safe_load(text) if is_yaml else json.loads(text)
    assert set(pack) == set(EXAMPLE)
    assert [len(pack["decision_layer"]["decision_specs"]), len(pack["evaluation_layer"]["eval_targets"])] == [1, 1]
    assert ("#" in text) is is_yaml
    judged = ctx("lint", name, "--json", cwd=tmp_path)
    assert judged.status == 0
    assert not [finding for finding in json.loads(judged.out)["findings"] if finding["severity"] != "unknown"]


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("precious")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "gone.yaml")
    for name in ("mine.yaml", "link.yaml"):
        result = ctx("new", name, cwd=tmp_path)
        assert result.status == CONFLICT
        assert "pack_file_exists" in result.err
    assert (tmp_path / "mine.yaml").read_text() == "precious"
    assert not (tmp_path / "gone.yaml").exists()


@pytest.mark.parametrize("name", ["no/such/folder/pack.yaml", ""])
def test_a_place_that_cannot_be_written_is_an_error_and_no_traceback(tmp_path: Path, name: str) -> None:
    result = ctx("new", name, cwd=tmp_path)
    assert result.status != 0
    assert "Traceback" not in result.err


def test_json_names_the_file(tmp_path: Path) -> None:
    result = ctx("new", "pack.json", "--json", cwd=tmp_path)
    assert json.loads(result.out)["file"] == "pack.json"
    assert list(tmp_path.iterdir()) == [tmp_path / "pack.json"]


def test_a_dash_is_no_file(tmp_path: Path) -> None:
    result = ctx("new", "-", cwd=tmp_path)
    assert result.status == USAGE
    assert list(tmp_path.iterdir()) == []
