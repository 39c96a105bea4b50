"""Startup cost: a verb imports nothing heavy that it does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

from contextplane.cli.table import VERBS
from tests.surfaces.commands import child_environment
from tests.surfaces.sample import Store
from tests.unit.compiler.case_files import SHOWN, pack_file, write_json

NAMES = [verb.name for verb in VERBS]


def imported(*args: str, cwd: Path) -> set[str]:
    """The modules that a command imports beyond those that Python needs to start."""

    def seen(code: str) -> set[str]:
        env = child_environment()
        command = [sys.executable, "-X", "importtime", "-c", code, *args]
        result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True)
        lines = [line for line in result.stderr.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip() for line in lines}

    ours = seen("import sys; from contextplane.cli.main import main; sys.exit(main(sys.argv[1:]))")
    assert "contextplane.cli.main" in ours
    return ours - seen("pass")


HEAVY = {
    "argparse",
    "dataclasses",
    "hashlib",
    "inspect",
    "json",
    "msgspec",
    "pathlib",
    "re",
    "rfc8785",
    "sqlite3",
    "typing",
}


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_lightest_answers_import_next_to_nothing(tmp_path: Path, flag: str) -> None:
    modules = imported(flag, cwd=tmp_path)
    assert modules & HEAVY == set()
    assert {name for name in modules if name.startswith("contextplane")} <= {
        "contextplane",
        "contextplane.cli",
        "contextplane.cli.main",
    }


def test_the_status_of_a_store_that_is_in_step_imports_no_object_store(sample: Store) -> None:
    modules = imported("status", cwd=sample.folder)
    assert "contextplane.adapters.sqlite.catalog" in modules
    unwanted = {
        "rfc8785",
        "dataclasses",
        "json",
        "threading",
        "tempfile",
        "contextplane.model.json.canonical",
    }
    unwanted |= {f"contextplane.adapters.files.{name}" for name in ("objects", "batch", "pump", "staging")}
    assert modules & unwanted == set()


def test_a_pack_that_nobody_waits_for_at_a_terminal_imports_no_bar(sample: Store, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(
        '{"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}',
        encoding="utf-8",
    )
    modules = imported("pack", str(log), cwd=sample.folder)
    assert "contextplane.app.execution.pack" in modules
    assert "contextplane.cli.terminal" not in modules


def test_a_compile_of_json_files_imports_no_store_no_yaml_and_no_validator(tmp_path: Path) -> None:
    pack_file(tmp_path)
    write_json(tmp_path, "request.json", SHOWN)
    modules = imported("compile", "pack.json", "--request", "request.json", cwd=tmp_path)
    assert "contextplane.compiler.compile" in modules
    unwanted = {"sqlite3", "yaml", "jsonschema_rs", "cryptography", "json", "dataclasses", "tempfile", "difflib"}
    unwanted |= {"zoneinfo", "tzdata", "pkgutil"}  # the pack reads no clock
    assert modules & unwanted == set()
    rooms = ("registry", "adapters", "store", "record", "trust", "handoff", "audit")
    assert not {module for module in modules if module.startswith(tuple(f"contextplane.{room}." for room in rooms))}


def test_completing_the_names_of_a_store_reads_no_object_and_loads_no_room(sample: Store) -> None:
    modules = imported("__complete", "show", "", cwd=sample.folder)
    assert "contextplane.app.names" in modules
    rooms = ("registry", "store", "record", "trust", "handoff", "audit", "compiler", "authoring", "policy")
    assert not {module for module in modules if module.startswith(tuple(f"contextplane.{room}." for room in rooms))}
    unwanted = {
        "yaml",
        "jsonschema_rs",
        "cryptography",
        "rfc8785",
        "json",
        "dataclasses",
        "pathlib",
    }
    assert modules & unwanted == set()


def test_a_schema_is_printed_without_the_types_that_it_is_made_from(tmp_path: Path) -> None:
    modules = imported("schema", "context-pack", cwd=tmp_path)
    assert "contextplane.app.schemas" in modules
    assert "contextplane.model.context_pack" not in modules


@pytest.mark.parametrize("name", NAMES)
def test_no_verb_imports_another_for_its_help(tmp_path: Path, name: str) -> None:
    modules = imported(name, "--help", cwd=tmp_path)
    verbs = {module for module in modules if module.startswith("contextplane.cli.verbs.")}
    assert verbs == {f"contextplane.cli.verbs.{name}" + ("_" if name == "import" else "")}
    assert not {module for module in modules if module.startswith(("contextplane.adapters", "contextplane.store"))}
