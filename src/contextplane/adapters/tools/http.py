"""The tool `http_get`: one page from a host that was allowed. It sends nothing but the address."""

import urllib.error
import urllib.request
from collections.abc import Iterable
from http.client import HTTPMessage
from typing import IO
from urllib.parse import SplitResult, urlsplit

from contextplane.adapters.tools.tool import Output, Parameters, Tool, text_of
from contextplane.ports.tools import ToolFailed, ToolRefused

__all__ = ["http_tool"]

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
