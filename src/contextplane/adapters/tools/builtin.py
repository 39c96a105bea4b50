"""The tools that read the workspace: `read_file`, `list_files`, `search`. Nothing outside of it, and no waiting.

The tool `http_get`: one page from a host that was allowed. It sends nothing but the address.

The process of our own tools, one for all their calls: `python -m contextplane.adapters.tools.builtin` (`serving`).
"""

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPMessage
from typing import IO
from urllib.parse import SplitResult, urlsplit

from contextplane.adapters.files.workspace import FileSources
from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import OUTPUT_MOST, Output, Parameters, Tool, text_of
from contextplane.adapters.tools.worker import Find, serve
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.tools import ToolFailed, ToolRefused

__all__ = ["file_tools", "http_tool", "own_tools"]

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


_CHUNK = 1 << 16


def http_tool(hosts: Iterable[str]) -> Tool:
    """`http_get` for these hosts; for none when there are none."""
    allowed = frozenset(host.lower() for host in hosts)

    def http_get(parameters: Parameters) -> bytes:
        """The body at `url`, if the answer is a success. A redirection is followed on the same host only."""
        url = text_of(parameters, "url")
        host = _address(url).hostname or ""
        if host not in allowed:
            raise ToolRefused(f"the host {host[:80]!r} is not allowed", at=url[:200], hint="--allow-host allows one")
        # Proxies are left out: they would make it another host's answer.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _SameHost(host))
        try:
            with opener.open(url) as answer:
                return _body(answer)
        except urllib.error.HTTPError as error:
            error.close()
            raise ToolFailed(f"the host answered {error.code}", at=url[:200]) from None

    return http_get


class _SameHost(urllib.request.HTTPRedirectHandler):
    def __init__(self, host: str) -> None:
        self._host = host

    def redirect_request(  # noqa: PLR0913, PLR0917  the form that urllib calls
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if _address(newurl).hostname != self._host:
            fp.close()
            raise ToolRefused("redirected to another host", at=newurl[:200])
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _address(url: str) -> SplitResult:
    """The parts of an address that means the same to everyone who reads it."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ToolFailed(f"not an address: {error}", at=url[:200]) from None
    plain = url.isascii() and url.isprintable() and not set(url) & set(" \\")
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or not plain:
        raise ToolRefused("not a plain http or https address", at=url[:200])
    return parts


def _body(answer: IO[bytes]) -> bytes:
    output = Output()
    while chunk := answer.read(_CHUNK):
        output.add(chunk)
    return output.whole()


def own_tools(workspace: Workspace, hosts: tuple[str, ...], _modules: tuple[str, ...] = ()) -> Find:
    return {**file_tools(workspace), "http_get": http_tool(hosts)}.__getitem__


if __name__ == "__main__":
    serve(sys.argv[1:], own_tools)
