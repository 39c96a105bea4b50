"""docs/python.md: every example runs, and every public name is on the page and typed for its users."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import contextplane
from contextplane.app import public

ROOT = Path(__file__).resolve().parents[2]

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
PARTS = re.compile(r"<!-- ctx (?P<command>[^>]+) -->|```python\n(?P<example>.*?)```", re.DOTALL)
OUTPUT = ["store_", "ctx://", "RunTarget", "verified", "0", "exact", "True", "sha256:", "document_unreadable"]


def script_of_page() -> str:
    """Return the examples as one script; the commands between them are run by it."""
    lines = ["import subprocess, sys"]
    for part in PARTS.finditer(PAGE):
        if part["command"]:
            command = part["command"].split()
            lines.append(f"subprocess.run([sys.executable, '-m', 'contextplane', *{command!r}], check=True, stdout=-3)")
        else:
            lines.append(part["example"])
    return "\n".join(lines)


def test_every_example_of_the_page_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", script_of_page()]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == OUTPUT


def test_every_public_name_is_on_the_page_and_no_other() -> None:
    table = PAGE[PAGE.index("## Names") :]
    names = {
        name for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert names == {*public.__all__, "__version__"}
    assert set(dir(contextplane)) == names


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'open_platform'"):
        _ = contextplane.open_platform  # type: ignore[attr-defined]


def test_the_import_loads_nothing_but_the_package_itself(tmp_path: Path) -> None:
    code = "import sys; before = set(sys.modules); import contextplane; print(*sorted(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["contextplane"]


USER = """
import contextplane
from contextplane import ContextPlaneError, Recorder, open_store


def check(folder: str, text: str) -> str:
    with open_store(folder) as store:
        verdict = contextplane.verify(store, text)
        entries = contextplane.diff(store, text, text).entries
        target = contextplane.resolve(store, text)
        if isinstance(target, contextplane.RunTarget):
            return f"{target.ref} {verdict.answer} {len(entries)}"
        return contextplane.replay(store, text, recorded=True).fidelity


def record() -> str | None:
    try:
        with Recorder(model="m", system_prompt="s") as run:
            run.prompt("user", "hello")
            run.output("a.md", b"# a")
    except ContextPlaneError as error:
        print(error.code, error.hint)
        return None
    return run.reference


def prompt_hash(pack: str, request: str) -> str:
    compiled: contextplane.CompiledContext = contextplane.compile_context(pack, request)
    return compiled.context_ledger.compiled_context_hash if contextplane.lint(pack).report.passed else ""
"""
WRONG = "\nnumber: int = contextplane.__version__\nopen_store(folder=3)\ncontextplane.open_platform\n"
CHECKERS = {
    "mypy": ("-m", "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null"),
    "pyright": ("-m", "basedpyright", "--level", "error"),
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_user_of_the_api_is_typed_under_a_strict_checker(tmp_path: Path, checker: str) -> None:
    """The user's package lies outside of our tree, and sees the installed package only."""
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "strict", "pythonVersion": "3.11", "venvPath": "{ROOT}", "venv": ".venv"}}',
        encoding="utf-8",
    )
    user = tmp_path / "user.py"
    for text, is_right in ((USER, True), (USER + WRONG, False)):
        user.write_text(text, encoding="utf-8")
        command = [sys.executable, *CHECKERS[checker], "user.py"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (result.returncode == 0) == is_right, result.stdout + result.stderr
        if not is_right:
            lines = {int(number) for number in re.findall(r"user\.py:(\d+)", result.stdout)}
            assert len(lines) == len(WRONG.split("\n")) - 2
