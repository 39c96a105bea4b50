"""A store with something in it for every verb, and the check of an error line."""

import os
from pathlib import Path

from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import Result

__all__ = ["LARGE", "REPORT", "Store", "one_error_line"]

REPORT = b"The refund of order 881 was paid.\n"
LARGE = bytes(range(256)) * 40_000  # beyond what is checked ahead, and beyond what a pipe holds


class Store:
    """A store of ours, with one pack of the reference program and one large object in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        other = ReferenceStore(folder)
        self.pack = other.pack(outputs={"report.md": REPORT})
        self.report = other.blob(REPORT)
        self.large = other.blob(LARGE)
        os.utime(other.path / "packs", (1000, 1000))
        init(Settings(cwd=str(folder)), ".")
        with open_platform(Settings(cwd=str(folder))):
            pass


def one_error_line(result: Result, status: int, code: str) -> str:
    """Check that a command failed with one printable error line, and return it."""
    assert result.status == status, result
    assert result.raw == b""
    assert result.err.startswith(f"ctx: {code}: "), result
    assert result.err.endswith("\n")
    assert result.err.count("\n") == 1
    assert all(character.isprintable() for character in result.err[:-1])
    return result.err
