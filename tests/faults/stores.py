"""A small store to damage, and assertions about commands that run on it afterwards."""

import os
import sys
from pathlib import Path
from subprocess import run

import msgspec

from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from tests.faults.children import ROOT
from tests.patience import PATIENCE
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import COMMAND, Result, child_environment

__all__ = [
    "BLOB",
    "READING",
    "REPORT",
    "assert_refused",
    "json_of",
    "object_path",
    "small_files",
    "tree",
    "with_one_pack",
]

REPORT = b"The refund of order 881 was paid.\n"
BLOB = Digest.of(REPORT)
READING = (("status",), ("gc", "--dry-run"), ("cat", str(BLOB)))


def with_one_pack(folder: Path) -> Path:
    """Make a store with one pack and a current index; return its path."""
    other = ReferenceStore(folder)
    other.pack(outputs={"report.md": REPORT})
    os.utime(other.path / "packs", (1000, 1000))
    settings = Settings(cwd=str(folder))
    init(settings, ".")
    with open_platform(settings):
        return other.path


def object_path(store: Path, digest: Digest = BLOB) -> Path:
    return store / "objects" / digest.hex[:2] / digest.hex[2:]


def tree(folder: Path) -> dict[str, bytes | None]:
    """Map every path below a folder to the bytes of the file, None for folders."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}


def assert_refused(result: Result, status: int, *codes: str) -> str:
    """Assert that a command ended with this status and one line with one of these codes; return the line."""
    assert result.status == status, result
    assert result.err.endswith("\n"), result
    assert result.err.count("\n") == 1, result
    assert result.err.startswith("ctx: "), result
    assert result.err.split(":")[1].strip() in codes, result
    return result.err


def json_of(result: Result) -> dict[str, object]:
    """Decode the JSON document that a command printed."""
    assert result.raw, result
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict), result
    return value


def small_files(limit: int, *args: str, cwd: Path) -> Result:
    """Run `ctx` with a limit on the size of files."""
    command = [sys.executable, "-m", "tests.faults.children", "with_small_files", str(limit), COMMAND, *args]
    env = child_environment()
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [env.get("PYTHONPATH")])])
    done = run(command, cwd=cwd, env=env, capture_output=True, check=False, timeout=PATIENCE)
    return Result(status=done.returncode, raw=done.stdout, err=done.stderr.decode())
