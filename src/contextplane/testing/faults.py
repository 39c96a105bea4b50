"""Faults as data: which call fails, at which count, and how. Nothing here is random."""

import os
import signal
from collections import Counter

from contextplane.adapters.files.disk import Disk

__all__ = ["KILL", "Faults", "FaultyDisk"]

KILL = "kill"
"""End the process like `kill -9` instead of raising: no handler runs, nothing is flushed."""


class Faults:
    """A plan of faults, and the number of calls so far."""

    def __init__(self) -> None:
        self._plan: dict[tuple[str, int], OSError | str] = {}
        self._calls: Counter[str] = Counter()

    def at(self, call: str, nth: int, fault: OSError | str) -> "Faults":
        """Let the `nth` call of this name fail. The name `*` counts all calls together."""
        self._plan[call, nth] = fault
        return self

    def hit(self, call: str) -> None:
        """Count a call, and fail if the plan says so."""
        for name in (call, "*"):
            self._calls[name] += 1
            fault = self._plan.get((name, self._calls[name]))
            if isinstance(fault, OSError):
                raise fault
            if fault == KILL:
                os.kill(os.getpid(), signal.SIGKILL)

    def calls(self, name: str = "*") -> int:
        return self._calls[name]


class FaultyDisk(Disk):
    """A disk that fails by plan. A fault happens before its call takes effect."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def create(self, path: str, mode: int) -> int:
        self._faults.hit("create")
        return super().create(path, mode)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._faults.hit("write")
        # Half of it at a time, so that faults also happen between two halves of an object.
        return super().write(fd, data[: max(1, len(data) // 2)])

    def sync(self, fd: int) -> None:
        self._faults.hit("sync")
        super().sync(fd)

    def sync_folder(self, path: str) -> None:
        self._faults.hit("sync_folder")
        super().sync_folder(path)

    def sync_all(self, fd: int) -> None:
        self._faults.hit("sync_all")
        super().sync_all(fd)

    def sync_early(self, fd: int) -> None:
        self._faults.hit("sync_early")
        super().sync_early(fd)

    def make_folder(self, path: str, mode: int = 0o777) -> bool:
        self._faults.hit("make_folder")
        return super().make_folder(path, mode)

    def replace(self, source: str, target: str) -> None:
        self._faults.hit("replace")
        super().replace(source, target)

    def rename_new(self, source: str, target: str) -> None:
        self._faults.hit("rename_new")
        super().rename_new(source, target)

    def create_nameless(self, folder: str, mode: int) -> int | None:
        self._faults.hit("create")
        return super().create_nameless(folder, mode)

    def name_new(self, fd: int, target: str) -> None:
        self._faults.hit("rename_new")
        super().name_new(fd, target)

    def touch(self, path: str) -> None:
        self._faults.hit("touch")
        super().touch(path)

    def remove(self, path: str) -> None:
        self._faults.hit("remove")
        super().remove(path)
