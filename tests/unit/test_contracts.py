"""Every rule of the house is planted once, broken, in a copy, and the real tool with the real settings catches it.

A rule whose tool does not see the breach is a wish. Each test copies no more than its tool needs.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.house import modules, oversized

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent
HERE = "src/contextplane"


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool on a copy. Coverage stays out of it: the tool is not what is measured."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    env["PYTHONPATH"] = str(cwd / "src")
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def copy_of_sources(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def copy_of_rooms(tmp_path: Path) -> Path:
    """The rooms without what stands in them, so that a plant is the only breach there can be."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    rooms = [*(ROOT / HERE).glob("*/__init__.py"), ROOT / HERE / "__init__.py", ROOT / HERE / "errors.py"]
    plant(tmp_path, {str(room.relative_to(ROOT)): room.read_text(encoding="utf-8") for room in rooms})
    return tmp_path


def copy_of_settings(tmp_path: Path) -> Path:
    for name in ("pyproject.toml", "tests/ruff.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def plant(copy: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# --- import-linter ----------------------------------------------------------------------------------------------------

LAYERS = "Imports run against the flow: later stages know earlier ones, never the reverse"
KNOW_NO_STAGE = "Adapters implement ports and know no stage"
THIN = "Surfaces call app: they import no stage and no port themselves"
PURE = "Pure packages touch no world: no ports, clock, randomness, files, network"
ACYCLIC = "No cycles between siblings, at any depth"
CHOSEN_IN_APP = "Adapters are chosen in app, and exercised in testing, nowhere else"


def broken_contracts(copy: Path) -> set[str]:
    done = run([str(TOOLS / "lint-imports"), "--no-cache", "--no-logo"], cwd=copy)
    assert "Contracts: " in done.stdout, done
    broken = {line.removesuffix(" BROKEN") for line in done.stdout.splitlines() if line.endswith(" BROKEN")}
    assert done.returncode == (1 if broken else 0), done
    return broken


@pytest.mark.parametrize("copy_of", [copy_of_sources, copy_of_rooms])
def test_an_unplanted_copy_keeps_every_contract(tmp_path: Path, copy_of: Callable[[Path], Path]) -> None:
    assert broken_contracts(copy_of(tmp_path)) == set()


@pytest.mark.parametrize(
    ("contract", "files"),
    [
        pytest.param(LAYERS, {f"{HERE}/trust/planted.py": "import contextplane.runtime\n"}, id="upward"),
        pytest.param(LAYERS, {f"{HERE}/record/planted.py": "import contextplane.gateway\n"}, id="neighbour"),
        pytest.param(LAYERS, {f"{HERE}/utils/__init__.py": ""}, id="unplaced-package"),
        pytest.param(LAYERS, {f"{HERE}/utils.py": ""}, id="unplaced-module"),
        pytest.param(LAYERS, {f"{HERE}/ports/planted.py": "def f():\n    import contextplane.policy\n"}, id="lazy"),
        pytest.param(KNOW_NO_STAGE, {f"{HERE}/adapters/planted.py": "import contextplane.store\n"}, id="adapter-stage"),
        pytest.param(THIN, {f"{HERE}/mcp/planted.py": "import contextplane.handoff\n"}, id="surface-stage"),
        pytest.param(THIN, {f"{HERE}/cli/planted.py": "def f():\n    import contextplane.ports\n"}, id="surface-port"),
        pytest.param(PURE, {f"{HERE}/model/planted.py": "import os\n"}, id="pure-os"),
        pytest.param(PURE, {f"{HERE}/policy/planted.py": "from time import monotonic\n"}, id="pure-time"),
        pytest.param(PURE, {f"{HERE}/compiler/planted.py": "import os.path\n"}, id="pure-submodule"),
        pytest.param(PURE, {f"{HERE}/authoring/planted.py": "import contextplane.ports\n"}, id="pure-ports"),
        pytest.param(
            ACYCLIC,
            {
                f"{HERE}/trust/planted_a.py": "import contextplane.trust.planted_b\n",
                f"{HERE}/trust/planted_b.py": "import contextplane.trust.planted_a\n",
            },
            id="cycle",
        ),
        pytest.param(CHOSEN_IN_APP, {f"{HERE}/cli/planted.py": "import contextplane.adapters\n"}, id="cli-adapters"),
    ],
)
def test_import_linter_catches(tmp_path: Path, contract: str, files: dict[str, str]) -> None:
    copy = copy_of_rooms(tmp_path)
    plant(copy, files)
    assert broken_contracts(copy) == {contract}


@pytest.mark.parametrize(
    "files",
    [
        {f"{HERE}/adapters/planted.py": "import contextplane.ports\nimport contextplane.policy\nimport sqlite3\n"},
        {f"{HERE}/testing/planted.py": "import contextplane.adapters\n"},
        {f"{HERE}/model/planted.py": "import re\nimport hashlib\nimport datetime\n"},
    ],
    ids=["adapter", "testing", "pure"],
)
def test_import_linter_lets_pass(tmp_path: Path, files: dict[str, str]) -> None:
    copy = copy_of_rooms(tmp_path)
    plant(copy, files)
    assert broken_contracts(copy) == set()


# --- ruff -------------------------------------------------------------------------------------------------------------


class Complaint(msgspec.Struct, frozen=True):
    """What ruff says of a line, as far as we ask."""

    code: str | None
    message: str


def complaints(tmp_path: Path, name: str, text: str) -> list[Complaint]:
    copy = copy_of_settings(tmp_path)
    plant(copy, {name: text})
    done = run([str(TOOLS / "ruff"), "check", "--no-cache", "--output-format=json", name], cwd=copy)
    assert done.returncode in {0, 1}, done
    return msgspec.json.decode(done.stdout, type=list[Complaint])


CLOCK = "import datetime as dt\n\nnow = dt.datetime.now(dt.UTC)\n"
ENVIRONMENT = "import os\n\nhome = os.environ\n"
JSON = "import json\n\ntext = json.dumps({})\n"
LAZY = "def f() -> None:\n    import json\n\n    json.loads('1')\n"
BROAD = "def f() -> None:\n    try:\n        print\n    except Exception:\n        g()\n"
BRANCHES = (
    "def f(n: int) -> int:\n"
    + "".join(f"    if n == {n!r}:\n        n += 1\n" for n in "abcdefghij")
    + "    return n\n"
)
STATEMENTS = "def f(n: int) -> int:\n" + "    n += 1\n" * 41 + "    return n\n"
STAGE, TEST = f"{HERE}/trust/planted.py", "tests/unit/test_planted.py"


@pytest.mark.parametrize(
    ("name", "text", "code", "word"),
    [
        pytest.param(STAGE, CLOCK, "TID251", "datetime.datetime.now", id="clock"),
        pytest.param(STAGE, CLOCK.replace("now(dt.UTC)", "utcnow()"), "TID251", "utcnow", id="utcnow"),
        pytest.param(STAGE, "from time import time\n\nnow = time()\n", "TID251", "time.time", id="time"),
        pytest.param(STAGE, JSON, "TID251", "json.dumps", id="json"),
        pytest.param(STAGE, ENVIRONMENT, "TID251", "os.environ", id="environment"),
        pytest.param(STAGE, "from os import getenv\n\nhome = getenv('HOME')\n", "TID251", "os.getenv", id="getenv"),
        pytest.param(STAGE, "from unittest.mock import Mock\n\nit = Mock()\n", "TID251", "unittest.mock", id="mock"),
        pytest.param(STAGE, "import random\n\nn = random.random()\n", "TID251", "random", id="random"),
        pytest.param(STAGE, "from uuid import uuid4\n\nn = uuid4()\n", "TID251", "uuid.uuid4", id="uuid"),
        pytest.param(TEST, "from unittest import mock\n\nit = mock.Mock()\n", "TID251", "mock", id="mock-in-a-test"),
        pytest.param(TEST, CLOCK, "TID251", "datetime.datetime.now", id="clock-in-a-test"),
        pytest.param(f"{HERE}/app/planted.py", ENVIRONMENT, "TID251", "os.environ", id="environment-in-app"),
        pytest.param(f"{HERE}/adapters/planted.py", CLOCK, "TID251", "datetime", id="clock-in-an-adapter"),
        pytest.param(STAGE, LAZY, "PLC0415", "import", id="lazy-import"),
        pytest.param(f"{HERE}/http/planted.py", LAZY, "PLC0415", "import", id="lazy-import-in-http"),
        pytest.param(STAGE, BROAD, "BLE001", "Exception", id="broad-except"),
        pytest.param(f"{HERE}/cli/planted.py", BROAD, "BLE001", "Exception", id="broad-except-in-cli"),
        pytest.param(STAGE, BRANCHES, "C901", "11 > 10", id="complexity"),
        pytest.param(STAGE, STATEMENTS, "PLR0915", "41 > 40", id="statements"),
        pytest.param(STAGE, "n: int = f()  # noqa\n", "PGH004", "noqa", id="blanket-noqa"),
    ],
)
def test_ruff_catches(tmp_path: Path, name: str, text: str, code: str, word: str) -> None:
    expected = complaints(tmp_path, name, text)
    assert [complaint for complaint in expected if complaint.code == code and word in complaint.message], expected


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        pytest.param(f"{HERE}/app/settings.py", ENVIRONMENT, "TID251", id="environment-in-settings"),
        pytest.param(f"{HERE}/adapters/system.py", CLOCK, "TID251", id="clock-in-system"),
        pytest.param(f"{HERE}/cli/verbs/planted.py", LAZY, "PLC0415", id="lazy-import-in-cli"),
        pytest.param(f"{HERE}/app/planted.py", LAZY, "PLC0415", id="lazy-import-in-app"),
        pytest.param(f"{HERE}/mcp/planted.py", LAZY, "PLC0415", id="lazy-import-in-mcp"),
        pytest.param(TEST, JSON, "TID251", id="json-in-a-test"),
        pytest.param(TEST, "def test_it() -> None:\n    assert f() == 7\n", "S101", id="assert-in-a-test"),
    ],
)
def test_ruff_lets_pass(tmp_path: Path, name: str, text: str, code: str) -> None:
    assert code not in {complaint.code for complaint in complaints(tmp_path, name, text)}


# --- mypy and the size of things --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("def f(n: int) -> int:\n    return n\n", None, id="clean"),
        pytest.param("def f(n):\n    return n\n", "no-untyped-def", id="untyped"),
        pytest.param("n: int = ''  # type: ignore\n", "ignore-without-code", id="blanket-ignore"),
        pytest.param(
            "def f(b: bool) -> int:\n    if b:\n        n = 1\n    return n\n", "possibly-undefined", id="undefined"
        ),
    ],
)
def test_mypy_catches(tmp_path: Path, text: str, code: str | None) -> None:
    copy = copy_of_settings(tmp_path)
    plant(copy, {f"{HERE}/__init__.py": "", f"{HERE}/planted.py": text})
    done = run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull, f"{HERE}/planted.py"], cwd=copy)
    assert done.returncode == (0 if code is None else 1), done
    assert code is None or f"[{code}]" in done.stdout


def function_of(lines: int) -> str:
    return "def planted() -> int:\n" + "    # a line\n" * (lines - 2) + "    return 1\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("planted.py", function_of(60), []),
        ("planted.py", function_of(61), ["planted::planted"]),
        ("planted.py", "class It:\n" + "    n: int\n" * 200, ["planted::It"]),
        ("planted.py", "class It:\n" + "    n: int\n" * 199, []),
        ("planted.py", "# a line\n" * 501, ["planted"]),
        ("planted.py", "# a line\n" * 500, []),
        ("room/__init__.py", "# a line\n" * 41, ["room.__init__"]),
        ("room/__init__.py", "# a line\n" * 40, []),
    ],
)
def test_the_size_test_catches(tmp_path: Path, name: str, text: str, expected: list[str]) -> None:
    plant(tmp_path, {name: text})
    assert [violation.key for violation in oversized(modules(tmp_path))] == expected


def test_the_size_test_sees_methods_and_functions_in_functions(tmp_path: Path) -> None:
    inner = "".join(f"    {line}\n" for line in function_of(61).splitlines())
    plant(tmp_path, {"planted.py": "class It:\n" + inner})
    assert [(violation.key, violation.words) for violation in oversized(modules(tmp_path))] == [
        ("planted::It.planted", "function of 61 lines, the limit is 60")
    ]
