"""Prints the unit tests of what changed, for `make quick`: a path a line.

What changed is what git sees as changed since the last commit; when that is nothing, the last commit itself. A changed
test is a test of itself. A changed module has the tests that import it, and those of its own package.
"""

import ast
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNIT = "tests/unit"
ALWAYS = (f"{UNIT}/test_house.py",)


def changed_files() -> list[str]:
    """List the Python files that differ from the last commit, or that the last commit changed."""
    uncommitted = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    names = uncommitted or _git("diff", "--name-only", "HEAD~1", "HEAD")
    return [name for name in names if name.endswith(".py") and (ROOT / name).is_file()]


def tests_of(names: list[str]) -> list[str]:
    """List the unit tests of these files: those that import them, and those of the same package."""
    changed = {".".join(Path(name).with_suffix("").parts[1:]) for name in names if name.startswith("src/")}
    rooms = {module.split(".")[1] for module in changed if module.count(".") > 1}
    tests = {name for name in names if name.startswith(UNIT) and Path(name).name.startswith("test_")}
    for path in (ROOT / UNIT).rglob("test_*.py"):
        name = path.relative_to(ROOT).as_posix()
        if path.parent.name in rooms or _imports(path) & changed:
            tests.add(name)
    return sorted({*tests, *ALWAYS})


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


if __name__ == "__main__":
    print("\n".join(tests_of(changed_files())))
