"""The built-in tools `read_file`, `list_files`, `search` and `http_get`, and their worker process.

The first three read files of the workspace. `http_get` fetches a page of an allowed host and sends nothing but its
address. One worker serves all their calls: `python -m contextplane.adapters.tools.builtin`.
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
from contextplane.adapters.tools.wire import MAX_OUTPUT_BYTES, OutputBuffer, Parameters, Tool, text_parameter
from contextplane.adapters.tools.worker import ToolLookup, serve
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.tools import ToolFailed, ToolRefused

__all__ = ["builtin_lookup", "file_tools", "http_tool"]

_BINARY_PROBE_BYTES = 8192


def file_tools(workspace: Workspace) -> dict[str, Tool]:
    files = _Files(workspace)
    return {"read_file": files.read_file, "list_files": files.list_files, "search": files.search}


class _Files:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._sources = FileSources(workspace.root)
        self._hint = f"it is looked for below {workspace.root}; --root FOLDER names another workspace"

    def read_file(self, parameters: Parameters) -> bytes:
        """Return the bytes of the file at `path` (or `file_path`)."""
        path = text_parameter(parameters, "path", "file_path")
        self._workspace.resolve(path)
        output = OutputBuffer()
        with self._workspace_hint():
            for chunk in self._sources.chunks(path):
                output.add(chunk)
        return output.to_bytes()

    def list_files(self, parameters: Parameters) -> bytes:
        """List all files below the folder `path`, relative to it: sorted, one per line."""
        folder = self._workspace.resolve(text_parameter(parameters, "path", default="."))
        if not os.path.isdir(folder):
            raise ToolFailed("not a folder", at=os.path.relpath(folder, self._workspace.root), hint=self._hint)
        output = OutputBuffer()
        for path in sorted(os.fsencode(os.path.relpath(path, folder)) for path in self._walk(folder)):
            output.add(path + b"\n")
        return output.to_bytes()

    def search(self, parameters: Parameters) -> bytes:
        """List the lines below `path` that contain `pattern`, as `path:line:text`. Skips binary files."""
        pattern = text_parameter(parameters, "pattern").encode()
        root = self._workspace.resolve(text_parameter(parameters, "path", default="."))
        paths = sorted(self._walk(root), key=os.fsencode) if os.path.isdir(root) else [root]
        output = OutputBuffer()
        with self._workspace_hint():
            for path in paths:
                self._search_in(path, pattern, output)
        return output.to_bytes()

    @contextmanager
    def _workspace_hint(self) -> Iterator[None]:
        """Add a hint that names the workspace to `SourceUnreadable`."""
        try:
            yield
        except SourceUnreadable as error:
            error.hint = self._hint
            raise

    def _search_in(self, path: str, pattern: bytes, output: OutputBuffer) -> None:
        name = os.fsencode(os.path.relpath(path, self._workspace.root))
        with os.fdopen(self._sources.open(path), "rb") as file:
            if b"\0" in file.peek(_BINARY_PROBE_BYTES)[:_BINARY_PROBE_BYTES]:
                return
            for number, line in enumerate(iter(lambda: file.readline(MAX_OUTPUT_BYTES + 1), b""), start=1):
                if len(line) > MAX_OUTPUT_BYTES:
                    raise ToolFailed(f"a line is longer than {MAX_OUTPUT_BYTES >> 20} MiB", at=os.fsdecode(name))
                if pattern in line:
                    output.add(b"%s:%d:%s\n" % (name, number, line.rstrip(b"\r\n")))

    def _walk(self, folder: str) -> Iterator[str]:
        """Yield every regular file below a folder, without following links or entering the store."""
        for parent, folders, names in os.walk(folder, onerror=_raise_unreadable):
            folders[:] = [name for name in folders if not self._workspace.is_store(os.path.join(parent, name))]
            for name in names:
                path = os.path.join(parent, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    yield path


def _raise_unreadable(error: OSError) -> None:
    """Fail on an unreadable folder: a list without it would look complete."""
    raise ToolFailed(f"cannot be read: {error.strerror or error}", at=str(error.filename))


_CHUNK = 1 << 16


def http_tool(hosts: Iterable[str]) -> Tool:
    """Return `http_get` for these hosts only."""
    allowed = frozenset(host.lower() for host in hosts)

    def http_get(parameters: Parameters) -> bytes:
        """Return the body at `url` of a successful response. Follows redirects on the same host only."""
        url = text_parameter(parameters, "url")
        host = _parse_address(url).hostname or ""
        if host not in allowed:
            raise ToolRefused(f"the host {host[:80]!r} is not allowed", at=url[:200], hint="--allow-host allows one")
        # No proxies: the response would come from another host.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _SameHost(host))
        try:
            with opener.open(url) as response:
                return _read_body(response)
        except urllib.error.HTTPError as error:
            error.close()
            raise ToolFailed(f"the host answered {error.code}", at=url[:200]) from None

    return http_get


class _SameHost(urllib.request.HTTPRedirectHandler):
    def __init__(self, host: str) -> None:
        self._host = host

    def redirect_request(  # noqa: PLR0913, PLR0917  the signature in urllib
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if _parse_address(newurl).hostname != self._host:
            fp.close()
            raise ToolRefused("redirected to another host", at=newurl[:200])
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _parse_address(url: str) -> SplitResult:
    """Parse an address, and refuse one that programs may read differently."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ToolFailed(f"not an address: {error}", at=url[:200]) from None
    plain = url.isascii() and url.isprintable() and not set(url) & set(" \\")
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or not plain:
        raise ToolRefused("not a plain http or https address", at=url[:200])
    return parts


def _read_body(response: IO[bytes]) -> bytes:
    output = OutputBuffer()
    while chunk := response.read(_CHUNK):
        output.add(chunk)
    return output.to_bytes()


def builtin_lookup(workspace: Workspace, hosts: tuple[str, ...], _modules: tuple[str, ...] = ()) -> ToolLookup:
    return {**file_tools(workspace), "http_get": http_tool(hosts)}.__getitem__


if __name__ == "__main__":
    serve(sys.argv[1:], builtin_lookup)
