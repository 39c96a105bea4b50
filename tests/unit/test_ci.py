"""What CI runs, and that the same command runs here."""

import re
import subprocess
import tomllib
from pathlib import Path

from contextplane.testing.proofs import proves

ROOT = Path(__file__).resolve().parents[2]


def recipe(target: str) -> str:
    """The commands that make would run for a target, nothing of it run."""
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@proves(
    "handoff-pack:coverage:tests-are-a-gate",
    "handoff-pack:coverage:lint-denies-warnings",
    "handoff-pack:coverage:baseline-is-a-gate",
)
def test_ci_runs_every_check_and_stops_at_the_first_that_fails() -> None:
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == "exec make test"
    commands = recipe("test")
    measured, others = (line for line in commands.splitlines() if "-m pytest" in line)
    # These two together are all tests, but those that download agents first.
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.rglob("test_*.py"))} - {"agents"}
    assert "tests/agents" in recipe("agents")
    assert {name for line in (measured, others) for name in re.findall(r"tests/(\w+)", line)} == folders
    # Types are checked beside the tests: what either of them says counts.
    assert "wait $types || { cat build/types.txt; exit 1; }; exit $tests\n" in commands
    for check in (
        "ruff format --check",
        "ruff check",
        "-m mypy",
        "lint-imports",
        measured,
        others,
        "check_coverage.py",
    ):
        lines = [line for line in commands.splitlines() if check in line]
        assert len(lines) == 1, check
        # Neither make's "-" nor the shell's "|| true" lets a failure pass.
        assert not re.match(r"\s*-", lines[0]), lines
        assert "|| true" not in lines[0], lines
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["pytest"]["ini_options"]["filterwarnings"] == ["error"]
    assert settings["ruff"]["lint"]["select"] == ["ALL"]
    assert settings["mypy"]["strict"] is True


@proves("handoff-pack:coverage:one-local-command")
def test_one_local_command_runs_the_same_gate_as_ci() -> None:
    gate = [line for line in recipe("coverage").splitlines() if "check_coverage.py" in line]
    assert gate
    assert gate == [line for line in recipe("test").splitlines() if "check_coverage.py" in line]


@proves("handoff-pack:coverage:collected-for-everything")
def test_coverage_is_collected_for_the_whole_package_and_leaves_nothing_out() -> None:
    coverage = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["coverage"]
    assert coverage["run"]["include"] == ["*/src/contextplane/*"]  # the gate refuses a file that was never executed
    assert "omit" not in coverage["run"]
    assert "omit" not in coverage["report"]
    assert coverage["report"]["exclude_also"] == ["assert_never\\("]


def test_make_check_is_another_name_for_make_test() -> None:
    assert recipe("check") == recipe("test")
