"""The tools that read the workspace: `read_file`, `list_files`, `search`. Nothing outside of it, and no waiting."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from contextplane.adapters.files.sources import FileSources
from contextplane.adapters.tools.tool import OUTPUT_MOST, Output, Parameters, Tool, text_of
from contextplane.adapters.tools.workspace import Workspace
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.tools import ToolFailed

__all__ = ["file_tools"]

_BINARY_SEEN_IN = 8192


def file_tools(workspace: Workspace) -> dict[str, Tool]:
    files = _Files(workspace)
    return {"read_file": files.read_file, "list_files": files.list_files, "search": files.search}


class _Files:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._sources = FileSources(workspace.root)
        self._hint = f"it is looked for below {workspace.root}; --root FOLDER names another workspace"

    def read_file(self, parameters: Parameters) -> bytes:
        """The bytes of the file at `path` (or `file_path`)."""
        path = text_of(parameters, "path", "file_path")
        self._workspace.inside(path)
        output = Output()
        with self._placed():
            for chunk in self._sources.chunks(path):
                output.add(chunk)
        return output.whole()

    def list_files(self, parameters: Parameters) -> bytes:
        """The files below the folder `path`, at any depth, by their names relative to it: sorted, one per line."""
        folder = self._workspace.inside(text_of(parameters, "path", default="."))
        if not os.path.isdir(folder):
            raise ToolFailed("not a folder", at=os.path.relpath(folder, self._workspace.root), hint=self._hint)
        output = Output()
        for path in sorted(os.fsencode(os.path.relpath(path, folder)) for path in self._walk(folder)):
            output.add(path + b"\n")
        return output.whole()

    def search(self, parameters: Parameters) -> bytes:
        """Every line below `path` that holds the text `pattern`, as `path:line:text`. Binary files are passed over."""
        pattern = text_of(parameters, "pattern").encode()
        place = self._workspace.inside(text_of(parameters, "path", default="."))
        found = sorted(self._walk(place), key=os.fsencode) if os.path.isdir(place) else [place]
        output = Output()
        with self._placed():
            for path in found:
                self._search_in(path, pattern, output)
        return output.whole()

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """What cannot be read is told with the folder that it is looked for in."""
        try:
            yield
        except SourceUnreadable as error:
            error.hint = self._hint
            raise

    def _search_in(self, path: str, pattern: bytes, output: Output) -> None:
        name = os.fsencode(os.path.relpath(path, self._workspace.root))
        with os.fdopen(self._sources.open(path), "rb") as file:
            if b"\0" in file.peek(_BINARY_SEEN_IN)[:_BINARY_SEEN_IN]:
                return
            for number, line in enumerate(iter(lambda: file.readline(OUTPUT_MOST + 1), b""), start=1):
                if len(line) > OUTPUT_MOST:
                    raise ToolFailed(f"a line is longer than {OUTPUT_MOST >> 20} MiB", at=os.fsdecode(name))
                if pattern in line:
                    output.add(b"%s:%d:%s\n" % (name, number, line.rstrip(b"\r\n")))

    def _walk(self, folder: str) -> Iterator[str]:
        """Every regular file below a folder. Links are not followed; the store itself is no part of the workspace."""
        for place, folders, names in os.walk(folder, onerror=_stop):
            folders[:] = [name for name in folders if not self._workspace.is_store(os.path.join(place, name))]
            for name in names:
                path = os.path.join(place, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    yield path


def _stop(error: OSError) -> None:
    """A list with a folder left out would look like a whole one."""
    raise ToolFailed(f"cannot be read: {error.strerror or error}", at=str(error.filename))
