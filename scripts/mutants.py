"""Breaks the laws of the code one at a time and checks that a test notices, for `make mutants`.

The mutants are data: `tests/mutants/ROOM.toml` names, for each, the law that it destroys, a text of a source file and
its replacement, and the tests that must fail. Each mutant is applied to a copy of `src` in a folder of its own; the
checkout is never changed. Its tests run with `PYTHONPATH` at the copy, which comes before the editable install. Before
that, the tests of all mutants run once against an unchanged copy, where they must pass.

A mutant is killed when its tests fail, or never end. A survivor is a law that no test guards: it needs a test, or an
`explained` text that says why nothing can notice it.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
MUTANTS = ROOT / "tests" / "mutants"
LAWS = SOURCES / "contextplane" / "testing" / "laws"
AT_ONCE = 2
SECONDS = 180
"""How long the tests of one mutant may take."""

_FIELDS = frozenset({"law", "path", "find", "replace", "tests", "explained"})
_PASSED, _FAILED = 0, 1
_TAIL = 12
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_IMPORTED = "import contextplane, sys; sys.stdout.write(contextplane.__file__)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A change of one source file that destroys one law, and the tests that must fail for it."""

    id: str
    law: str
    path: str
    find: str
    replace: str
    tests: tuple[str, ...]
    explained: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The verdict on a mutant: `killed`, `survived`, `does not apply` or `tests broken`."""

    mutant: Mutant
    verdict: str
    seconds: float = 0.0
    output: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.verdict == "killed" or (self.verdict == "survived" and bool(self.mutant.explained))

    @property
    def failed_test(self) -> str:
        """The first test that failed; empty if none did, or if the tests never ended."""
        failure = _FAILURE.search(self.output)
        return failure[1] if failure else ""


def load_mutants(rooms: Sequence[str] = (), folder: Path = MUTANTS) -> tuple[Mutant, ...]:
    """Load the mutants of these rooms, or of one id (`room/name`); without names, all."""
    mutants: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if unknown := row.keys() - _FIELDS:
                message = f"{path.name}: {name}: unknown fields {sorted(unknown)}"
                raise ValueError(message)
            mutants.append(Mutant(id=f"{path.stem}/{name}", **{**row, "tests": tuple(row["tests"])}))
    return tuple(m for m in mutants if not rooms or m.id in rooms or m.id.partition("/")[0] in rooms)


def problems(mutant: Mutant, sources: Path = SOURCES) -> Iterator[str]:
    """Yield why a mutant cannot be run: its text is not there exactly once, or a test does not exist."""
    path = sources / mutant.path
    count = path.read_text(encoding="utf-8").count(mutant.find) if path.is_file() else 0
    if not path.is_file():
        yield f"there is no {mutant.path}"
    elif count != 1:
        yield f"its text occurs {count} times in {mutant.path}"
    elif not _is_python(path.read_text(encoding="utf-8").replace(mutant.find, mutant.replace)):
        yield "what it makes is no Python"
    if mutant.find == mutant.replace:
        yield "it changes nothing"
    if not mutant.tests:
        yield "no test is named"
    for test in mutant.tests:
        name, _, function = test.partition("::")
        file = ROOT / name
        if not file.exists():
            yield f"there is no {name}"
        elif function and not _has_test(file, *function.split("::")):
            yield f"there is no {test}"


def _has_test(file: Path, *names: str) -> bool:
    """Whether a file has a test: a function, or a method that one of its classes has or inherits from a law suite."""
    text = file.read_text(encoding="utf-8")
    *classes, function = (re.compile(rf"^ *(?:class|def|async def) {name}\b", re.MULTILINE) for name in names)
    if not all(pattern.search(text) for pattern in classes):
        return False
    texts = [text, *(path.read_text(encoding="utf-8") for path in LAWS.glob("*.py") if classes)]
    return any(function.search(other) for other in texts)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def run_mutant(mutant: Mutant, sources: Path, seconds: int = SECONDS) -> Outcome:
    """Apply a mutant to a copy of the sources and run its tests against the copy."""
    if why := list(problems(mutant, sources)):
        return Outcome(mutant=mutant, verdict="does not apply", output="\n".join(why))
    begin = time.monotonic()
    with _readable_folder() as folder:
        copy = folder / "src"
        shutil.copytree(sources, copy)
        path = copy / mutant.path
        path.write_text(path.read_text(encoding="utf-8").replace(mutant.find, mutant.replace), encoding="utf-8")
        status, output = run_tests(mutant.tests, copy, seconds)
    took = time.monotonic() - begin
    verdicts = {_PASSED: "survived", _FAILED: "killed"}
    return Outcome(mutant=mutant, verdict=verdicts.get(status, "tests broken"), seconds=took, output=output)


@contextmanager
def _readable_folder() -> Iterator[Path]:
    """Yield a temporary folder that every user can read: some tests run commands as another one."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def run_tests(tests: Sequence[str], sources: Path, seconds: int = SECONDS, *, at_once: int = 0) -> tuple[int, str]:
    """Run tests against these sources; returns the exit status of pytest (1 if it never ends) and its output."""
    base = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        [*base, "--numprocesses", str(at_once), "--dist", "worksteal", *tests],
        cwd=ROOT,
        env=environment(sources),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return _FAILED, f"did not end within {seconds} seconds"
    return process.returncode, output


def environment(sources: Path) -> dict[str, str]:
    """Return the environment of a process that imports the package from these sources."""
    inherited = os.environ  # noqa: TID251  a child gets what this process has
    variables = {name: value for name, value in inherited.items() if not name.startswith("COVERAGE")}
    return {**variables, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}


def imported_package(sources: Path) -> Path:
    """Return where a process with the environment of `sources` really imports the package from."""
    command = [sys.executable, "-c", _IMPORTED]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(sources), capture_output=True, text=True, check=True, timeout=SECONDS
    )
    return Path(done.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants and print a line for each; 1 if one is neither killed nor explained."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("rooms", nargs="*", help="rooms (trust) or ids (trust/expired-key); all if none is named")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long the tests of one mutant may take")
    parser.add_argument(
        "--show", action="store_true", help="print what the tests of survivors printed, and what noticed others"
    )
    options = parser.parse_args(arguments)
    mutants = load_mutants(options.rooms)
    if not mutants:
        sys.stderr.write(f"no mutant of {', '.join(options.rooms)}\n")
        return 1
    with _readable_folder() as folder:
        # One copy for all: the checkout may change while they run.
        sources = folder / "src"
        shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("__pycache__"))
        package = imported_package(sources)
        if not package.is_relative_to(sources):
            sys.stderr.write(f"tests would import {package}, not the copy\n")
            return 1
        tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
        status, output = run_tests([*tests], sources, len(tests) * options.seconds, at_once=AT_ONCE)
        if status != _PASSED:
            # Their failure would be taken for that of every mutant.
            sys.stderr.write(f"the tests fail without any mutant:\n{output}\n")
            return 1
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = [*_printed(pool.map(lambda m: run_mutant(m, sources, options.seconds), mutants), options.show)]
    sys.stdout.write(summary(outcomes) + "\n")
    return 0 if all(outcome.is_accepted for outcome in outcomes) else 1


def summary(outcomes: Sequence[Outcome]) -> str:
    """Format how many mutants have each verdict."""
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(["killed", *verdicts]))
    explained = sum(outcome.verdict == "survived" and outcome.is_accepted for outcome in outcomes)
    return f"mutants: {len(outcomes)} in all, {counts}" + (f" ({explained} explained)" if explained else "")


def _printed(outcomes: Iterator[Outcome], show: bool) -> Iterator[Outcome]:  # noqa: FBT001  an option
    for outcome in outcomes:
        mutant = outcome.mutant
        sys.stdout.write(f"{outcome.verdict:<15}{outcome.seconds:6.1f}s  {mutant.id}  {mutant.law}\n")
        if outcome.verdict == "survived" and mutant.explained:
            sys.stdout.write(f"{'':24}explained: {mutant.explained}\n")
        elif show and outcome.verdict == "killed":
            sys.stdout.write(f"{'':24}noticed by: {outcome.failed_test or outcome.output}\n")
        elif not outcome.is_accepted and (show or outcome.verdict != "survived"):
            sys.stdout.write("".join(f"{'':24}{line}\n" for line in outcome.output.splitlines()[-_TAIL:]))
        sys.stdout.flush()
        yield outcome


if __name__ == "__main__":
    sys.exit(main())
