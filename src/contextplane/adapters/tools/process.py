"""The `Tools` port: one process for all calls of our own tools, and another one for each call of code of others."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from types import TracebackType
from typing import Self

from contextplane.adapters.tools.child import Child
from contextplane.adapters.tools.plugins import plugins
from contextplane.adapters.tools.tool import BUILT_IN, OURS
from contextplane.adapters.tools.wire import Answer, Request, wire_bytes
from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value
from contextplane.ports.tools import Confinement, ToolFailed, ToolRefused, ToolUnknown

__all__ = ["Confines", "ProcessTools"]

_HERE = __name__.rpartition(".")[0]
_OURS, _FUNCTION, _PLUGIN = f"{_HERE}.worker", f"{_HERE}.foreign_function", f"{_HERE}.foreign_plugin"
_END_SECONDS = 2.0
_ALONE_SECONDS = 5.0  # after the time limit, the process of an owner that was killed ends by itself
_ENDED: dict[str, type[ContextPlaneError]] = {"failed": ToolFailed, "refused": ToolRefused}


class Confines(Value, frozen=True):
    """What calls may reach: files below `root`, these hosts, functions of these modules, and so many seconds each.

    `store` is a folder that none of them reaches, wherever it lies. `environment` is all that they see of ours.
    `trusting`: code of others is called also where no kernel holds it.
    """

    root: str
    store: str = ""
    hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 10.0
    environment: Mapping[str, str] = {}
    trusting: bool = False


class ProcessTools:
    """Tools in processes of their own, begun when they are called. A call that overruns ends its process."""

    def __init__(self, confines: Confines) -> None:
        self._confines = confines
        self._worker: Child | None = None
        self.confinement: Confinement | None = None
        """Who held the tools that were called: the weaker, where that changed. None while there was no call."""

    @cached_property
    def _plugins(self) -> dict[str, str]:
        """Looked for when first a tool is named that is not built in."""
        return plugins()

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*BUILT_IN, *self._plugins}))

    def version(self, name: str) -> str:
        version = BUILT_IN.get(name)
        if version is None:
            version = self._plugins.get(name)
        if version is None:
            raise ToolUnknown(f"no tool {name[:80]!r} is available here", hint=f"there are {', '.join(self.names())}")
        return version

    def call(self, name: str, parameters: Mapping[str, object]) -> bytes:
        self.version(name)  # an unknown tool needs no process
        try:
            request = wire_bytes(Request(tool=name, parameters=dict(parameters)))
        except (RecursionError, UnicodeEncodeError):
            raise ToolFailed("the parameters are too deep, or hold what is no text") from None
        answer = self._of_ours(request) if name in OURS else self._of_others(name, request)
        if answer.ended != "output":
            raise _ENDED[answer.ended](answer.message)
        return answer.output

    def close(self, *, at_once: bool = False) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(0.0 if at_once else _END_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(at_once=kind is not None)

    def _of_ours(self, request: bytes) -> Answer:
        if self._worker is None:
            self._worker = Child(_OURS, self._told(), self._confines.environment)
        try:
            self._held(self._worker)
            return self._worker.exchange(request, self._confines.seconds)
        except BaseException:
            # Whatever it is in the middle of, its next answer would not be the one to the next request.
            self.close(at_once=True)
            raise

    def _of_others(self, name: str, request: bytes) -> Answer:
        with _scratch() as scratch:
            places = {"HOME": scratch, "TMPDIR": scratch}
            module = _FUNCTION if name == "python" else _PLUGIN
            child = Child(module, self._told(scratch), {**self._confines.environment, **places})
            try:
                if self._held(child) == "python" and not self._confines.trusting:
                    raise ToolRefused(
                        "this system has no wall for code of others (Linux 6.2 has)",
                        hint="--trust-tools calls it without one: only what you trust",
                    )
                return child.exchange(request, self._confines.seconds)
            finally:
                child.end(0.0)

    def _held(self, child: Child) -> Confinement:
        if self.confinement != "python":
            self.confinement = child.confinement
        return child.confinement

    def _told(self, scratch: str = "") -> tuple[str, ...]:
        own = self._confines
        root, store = os.path.abspath(own.root), os.path.abspath(own.store) if own.store else ""
        return root, store, ",".join(own.hosts), ",".join(own.modules), str(own.seconds + _ALONE_SECONDS), scratch


@contextmanager
def _scratch() -> Iterator[str]:
    """A folder for what code of others writes, for as long as it runs."""
    folder = tempfile.mkdtemp(prefix="ctx-tool-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
