"""`ctx new`: a small, complete pack to begin from."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from contextplane.app.packs.template import SCHEMA_PATH
from tests.spec.manifest import proves
from tests.surfaces.commands import ctx
from tests.unit.authoring.packs import EXAMPLE

CONFLICT = 14
USAGE = 2
SHIPPED = files("contextplane").joinpath("schemas", "context-pack.v2.schema.json")


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


@pytest.mark.parametrize("name", ["sub/dir/refunds.yaml", "sub/dir/refunds.json"])
def test_a_folder_that_is_missing_is_named_and_not_made(tmp_path: Path, name: str) -> None:
    result = ctx("new", name, cwd=tmp_path)
    assert result.err == "ctx: storage_failed: sub/dir: there is no such folder (make the folder first)\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    result = ctx("new", ".", cwd=tmp_path)
    assert (result.status, "it is a folder" in result.err) == (CONFLICT, True)


def test_json_names_the_file(tmp_path: Path) -> None:
    result = ctx("new", "pack.json", "--json", cwd=tmp_path)
    assert json.loads(result.out)["file"] == "pack.json"
    assert list(tmp_path.iterdir()) == [tmp_path / "pack.json"]


def validator_beside(pack: Path) -> jsonschema_rs.Draft202012Validator:
    """The schema that the first line of a pack names, as an editor finds it: relative to the pack."""
    comment, _, path = pack.read_text().partition("\n")[0].partition("$schema=")
    assert comment == "# yaml-language-server: "
    return jsonschema_rs.Draft202012Validator(json.loads((pack.parent / path).read_text()))


def test_the_first_line_of_a_yaml_pack_names_its_schema_for_editors(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    result = ctx("new", "packs/refunds.yaml", cwd=tmp_path)
    assert result.out.splitlines()[1] == f"Editors check it against packs/{SCHEMA_PATH}"
    pack = tmp_path / "packs" / "refunds.yaml"
    files_beside = sorted(str(path.relative_to(pack.parent)) for path in pack.parent.rglob("*") if path.is_file())
    assert files_beside == [SCHEMA_PATH, "refunds.yaml"]
    assert (pack.parent / SCHEMA_PATH).read_bytes() == SHIPPED.read_bytes()
    value = yaml.safe_load(pack.read_text())
    validator_beside(pack).validate(value)
    assert not validator_beside(pack).is_valid({**value, "unknown_layer": {}})


def test_only_a_yaml_pack_has_a_schema_beside_it(tmp_path: Path) -> None:
    ctx("new", "pack.json", cwd=tmp_path)
    ctx("new", "request.yaml", "--request", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pack.json", "request.yaml"]


def test_the_copy_of_the_schema_is_brought_up_to_date_and_follows_no_link(tmp_path: Path) -> None:
    copy, target = tmp_path / SCHEMA_PATH, tmp_path / "target"
    copy.parent.mkdir()
    target.write_text("precious")
    copy.symlink_to(target)
    assert ctx("new", "refunds.yaml", cwd=tmp_path).status == 0
    assert target.read_text() == "precious"
    assert not copy.is_symlink()
    copy.write_text("of an older version")
    again = ctx("new", "refunds.yaml", cwd=tmp_path)
    assert again.out.startswith("Already there: refunds.yaml. ")
    assert copy.read_bytes() == SHIPPED.read_bytes()


def test_a_refused_pack_leaves_no_schema_behind(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("precious")
    assert ctx("new", "mine.yaml", cwd=tmp_path).status == CONFLICT
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    (tmp_path / ".ctx-schemas").write_text("a file")
    assert "Traceback" not in ctx("new", "other.yaml", cwd=tmp_path).err
    assert not (tmp_path / "other.yaml").exists()


def test_a_dash_is_no_file(tmp_path: Path) -> None:
    result = ctx("new", "-", cwd=tmp_path)
    assert result.status == USAGE
    assert list(tmp_path.iterdir()) == []
