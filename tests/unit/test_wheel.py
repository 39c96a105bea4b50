"""The wheel: an installed package has the JSON Schemas as data files."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema_rs
import yaml

from contextplane.app.packs.template import template_text
from docs.schemas import PUBLISHED
from tests.spec.manifest import ROOT

_READ = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib.resources import files
sys.stdout.buffer.write(files("contextplane").joinpath("schemas", sys.argv[2]).read_bytes())
"""


def test_the_wheel_ships_the_schemas_and_the_starting_point_is_valid_by_them(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("contextplane/schemas/")]
    assert sorted(names) == sorted(f"contextplane/schemas/{entry.file}" for entry in PUBLISHED)
    schemas = {entry.file: json.loads(read_from(wheel, entry.file)) for entry in PUBLISHED}
    assert schemas == {entry.file: entry.render() for entry in PUBLISHED}
    starting_point = yaml.safe_load(template_text(as_yaml=True))
    jsonschema_rs.Draft202012Validator(schemas["context-pack.v2.schema.json"]).validate(starting_point)


def read_from(wheel: Path, name: str) -> bytes:
    """Read a schema as an installed program does, from this wheel and no other copy."""
    command = [sys.executable, "-I", "-c", _READ, str(wheel), name]
    return subprocess.run(command, cwd=wheel.parent, check=True, capture_output=True).stdout
