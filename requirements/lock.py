"""Pin every dependency of every platform by hash: `make lock`.

`all.txt` is resolved first and the others within it, so that a package has one version in all of them. The files name
packages, versions and hashes only; the installer chooses where to fetch them from. Needs `uv`.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("requirements")
WHOLE = FOLDER / "all.txt"
FILES: dict[Path, list[str]] = {
    WHOLE: ["pyproject.toml", "--all-extras", "--group", "dev"],
    FOLDER / "dev.txt": ["pyproject.toml", "--extra", "testing", "--group", "dev"],
    FOLDER / "run.txt": ["pyproject.toml"],
    FOLDER / "build.txt": ["--group", "build"],
}
OPTIONS = [
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-sources",
    "--custom-compile-command=make lock",
    "--quiet",
]
# An address, an option that names one, a path from the root or a home: none belongs into the lock.
FOREIGN = re.compile(r"://|^\s*(?:-i|-f|--\S*(?:index|links)\S*)\b|(?<![\w.])[/~]\w", re.MULTILINE)
PINNED = re.compile(r"^[^\s#]+==", re.MULTILINE)


def find_uv() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "uv"
    uv = shutil.which("uv") or (str(beside) if beside.exists() else None)
    if uv is None:
        sys.exit("lock: uv is needed, and is not on PATH: 'pip install uv' brings it")
    return uv


def foreign_lines(text: str) -> list[str]:
    """List the lines that would tie the lock to one machine or one registry."""
    return [line for line in text.splitlines() if FOREIGN.search(line)]


def main() -> int:
    """Write every file; remove a file that would name a place."""
    uv = find_uv()
    for path, sources in FILES.items():
        within = [] if path == WHOLE else ["--constraints", str(WHOLE)]
        command = [uv, "pip", "compile", *sources, *within, *OPTIONS, *sys.argv[1:], "--output-file", str(path)]
        done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            return done.returncode
        text = (ROOT / path).read_text(encoding="utf-8")
        if foreign := foreign_lines(text):
            (ROOT / path).unlink()
            sys.exit(f"lock: {path} named a place, and was removed: {foreign[0].strip()}")
        print(f"{path}: {len(PINNED.findall(text))} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
