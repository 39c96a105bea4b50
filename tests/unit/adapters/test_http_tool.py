"""The tool `http_get`: pages of allowed hosts, and of no other."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from contextplane.adapters.tools.wire import MAX_OUTPUT_BYTES
from contextplane.ports.tools import ToolFailed, ToolRefused, Tools
from tests.support.cases import cases


class Site(BaseHTTPRequestHandler):
    """A page, a way to it on this host, ways to others, and nothing else."""

    def do_GET(self) -> None:
        port = self.server.server_port if isinstance(self.server, ThreadingHTTPServer) else 0
        away = {"/near": "/page", "/away": f"http://localhost:{port}/page", "/file": "file:///etc/passwd"}
        if self.path in away:
            self.send_response(302)
            self.send_header("Location", away[self.path])
            self.end_headers()
            return
        body = {"/page": b"hello", "/large": b"x" * (MAX_OUTPUT_BYTES + 1)}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its form
        """Log nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@cases("path", ["page", "near"])
def test_a_page_of_an_allowed_host_is_fetched_also_behind_its_own_redirection(
    tools: Tools, port: int, path: str
) -> None:
    assert tools.call("http_get", {"url": f"http://127.0.0.1:{port}/{path}"}) == b"hello"


@cases(
    "url",
    [
        *("http://localhost:{}/page", "http://127.0.0.1:{}/away", "file:///etc/passwd"),
        *("ftp://127.0.0.1/x", "http://127.0.0.1:{}@localhost/", "http://localhost\\@127.0.0.1:{}/page", "//x", "x"),
    ],
)
def test_every_other_host_and_scheme_is_refused(tools: Tools, port: int, url: str) -> None:
    with pytest.raises(ToolRefused):
        tools.call("http_get", {"url": url.format(port)})


@cases(
    "url", ["http://127.0.0.1:{}/none", "http://127.0.0.1:{}/large", "http://127.0.0.1:{}/file", "http://127.0.0.1:x/"]
)
def test_an_answer_that_is_no_success_or_too_large_is_a_failure(tools: Tools, port: int, url: str) -> None:
    with pytest.raises(ToolFailed):
        tools.call("http_get", {"url": url.format(port)})
