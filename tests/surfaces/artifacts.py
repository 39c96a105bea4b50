"""Runs with output files and their sidecars, for tests of `ctx verify` and of sidecars."""

from pathlib import Path

import msgspec

from contextplane.app.execution.pack import PackResult, pack_log
from contextplane.app.execution.sidecars import WrittenSidecars, write_sidecars
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from tests.surfaces.commands import Result

__all__ = [
    "MODIFIED",
    "REPORT",
    "UNCHECKED",
    "UNKNOWN",
    "VERIFIED",
    "claim",
    "damage",
    "json_answer",
    "log",
    "packed",
    "place",
    "put_out",
    "sidecars",
]

REPORT = b"The refund of order 881 was paid.\n"
VERIFIED, UNCHECKED, MODIFIED, UNKNOWN = 0, 10, 11, 13


def log(*outputs: str) -> bytes:
    return msgspec.json.encode(
        {
            "model": {"identifier": "m-1"},
            "system_prompt": "You are careful.",
            "inputs": [{"name": "b.txt", "content": "b"}, {"name": "a.txt", "content": "a"}],
            "steps": [
                {"type": "tool_call", "tool": "write_file", "timestamp": "2026-05-04T09:31:41Z"},
                {"type": "tool_call", "tool": "read_file", "output": "seen"},
                {"type": "reasoning", "output": "think"},
            ],
            "outputs": [{"name": name, "content": REPORT.decode()} for name in outputs],
            "environment": {"os": "linux", "runtime": "py3.11"},
        }
    )


def packed(folder: Path, *outputs: str) -> PackResult:
    """A store in `folder` with one run that put out these files."""
    init(Settings(cwd=str(folder)), ".")
    with open_platform(Settings(cwd=str(folder))) as platform:
        return pack_log(platform, log(*outputs), root=str(folder))


def put_out(folder: Path, name: str, data: bytes = REPORT) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def sidecars(folder: Path, run: PackResult) -> WrittenSidecars:
    with open_platform(Settings(cwd=str(folder))) as platform:
        return write_sidecars(platform, run, str(folder))


def claim(path: Path, **fields: object) -> None:
    Path(f"{path}.ctx.json").write_bytes(msgspec.json.encode(fields))


def json_answer(result: Result, status: int) -> dict[str, object]:
    assert (result.status, result.err) == (status, "")
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict)
    return value


def place(folder: Path, digest: Digest) -> Path:
    return folder / ".ctx" / "objects" / digest.hex[:2] / digest.hex[2:]


def damage(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
