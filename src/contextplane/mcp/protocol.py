"""JSON-RPC as the Model Context Protocol uses it: one message in, at most one answer out.

It does no I/O. It supports versions with the `initialize` handshake, one of which (2025-03-26) has batches, and
(2026-07-28) with the version in each request's `_meta`. Nothing is refused before the handshake; after `shutdown`
everything but `exit` is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeAlias

import msgspec

from contextplane import __version__
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import MAX_DEPTH, JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.value import Value

__all__ = [
    "HANDSHAKE_VERSIONS",
    "INTERNAL",
    "INVALID_PARAMS",
    "MODERN_VERSIONS",
    "Method",
    "Request",
    "RequestRefused",
    "Session",
    "is_cancelled",
    "unreadable",
]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
BATCH_VERSION = "2025-03-26"
MAX_BATCH = 1000
"""The most messages of a batch."""

SERVER = {"name": "context-pack", "version": __version__}

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
_SHUT_DOWN, _UNSUPPORTED_VERSION = -32000, -32022
_META = "io.modelcontextprotocol/"
_VERSION, _CLIENT, _CAPABILITIES = (
    f"{_META}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
_DISCOVER = "server/discover"
_HANDSHAKE_ONLY = frozenset({"initialize", "ping"})  # the versions without a handshake removed them
_CANCELLED = "notifications/cancelled"
_HOUR = 3_600_000
# Which results may be cached, by whom and for how many milliseconds. All others may change at any time.
_CACHEABLE = {
    _DISCOVER: ("public", _HOUR),
    "tools/list": ("public", _HOUR),
    "resources/templates/list": ("public", _HOUR),
    "resources/list": ("private", 0),
    "resources/read": ("private", 0),
}
_ACKNOWLEDGED = frozenset({"initialized", "notifications/initialized"})
_SHOWN, _PLACE, _IDENT = 80, 200, 4096
_DEEPEST = MAX_DEPTH + 2  # the message itself, its params, and still one more than is allowed


class RequestRefused(ContextPlaneError):
    """A request that the protocol does not allow, or that has no answer. `number` is its JSON-RPC code."""

    code: ClassVar[str] = "mcp_request_refused"
    family: ClassVar[Family] = "refused"

    def __init__(self, message: str, *, number: int, data: Mapping[str, object] | None = None) -> None:
        super().__init__(message, details=data)
        self.number = number


class Request(Value, frozen=True):
    """A request or a notification. `id` is the JSON of its id as it was sent, empty for a notification.

    `client`: the name and version that the client gave itself.
    """

    id: str
    method: str
    params: dict[str, Json]
    modern: bool
    client: str = ""

    @property
    def name(self) -> str:
        """The id as a text."""
        return str(msgspec.json.decode(self.id)) if self.id.startswith('"') else self.id


Method: TypeAlias = Callable[[Request], object]


class _Envelope(Value, frozen=True):
    """The members of a message, not decoded yet."""

    id: msgspec.Raw = msgspec.Raw(b"null")
    method: msgspec.Raw = msgspec.Raw()
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_envelope = msgspec.json.Decoder(_Envelope)
_batch = msgspec.json.Decoder(list[msgspec.Raw])
_encoder = msgspec.json.Encoder()
_NOT_READ = (msgspec.DecodeError, ValueError, RecursionError)


class Session:
    """The state of one connection. `begun`: the client introduced itself. `ended`: it sent `exit`.

    `_batches`: the version that was agreed on has batches.
    """

    def __init__(self, methods: Mapping[str, Method]) -> None:
        self.begun = False
        self.ended = False
        self._shut_down = False
        self._batches = False
        self._client = ""
        self._methods = {"initialize": self._initialize, _DISCOVER: _discover, "ping": _pong, **methods}

    def answer(self, data: bytes) -> bytes | None:
        """The answer to one message; None when it needs none. An invalid request is answered with the id null."""
        batch = _split_batch(data) if self._batches else ()
        if not batch:
            return self._answer(data)
        if len(batch) > MAX_BATCH:
            why = f"invalid request: a batch of more than {MAX_BATCH} messages"
            return refusal(RequestRefused(why, number=INVALID_REQUEST))
        answers = [answer for message in batch if (answer := self._answer(message, alone=False)) is not None]
        return b"[" + b",".join(answers) + b"]" if answers else None

    def _answer(self, data: bytes, *, alone: bool = True) -> bytes | None:
        """The answer to one message, which may be one of a batch."""
        try:
            envelope = _read(data)
            ident = _ident(bytes(envelope.id))
        except RequestRefused as error:
            return refusal(error)
        if not bytes(envelope.method) and (bytes(envelope.result) or bytes(envelope.error)):
            return None  # an answer, though no request was sent
        try:
            method = _method(bytes(envelope.method))
        except RequestRefused as error:
            return refusal(error, ident)
        try:
            result = self._result(method, envelope, ident, alone=alone)
        except RequestRefused as error:
            return None if ident == b"null" else refusal(error, ident)
        if ident == b"null":
            return None
        return _encoder.encode({"jsonrpc": "2.0", "id": msgspec.Raw(ident), "result": result})

    def _result(self, method: str, envelope: _Envelope, ident: bytes, *, alone: bool) -> object:
        if method == "exit":
            self.ended = True
            return None
        if self._shut_down:
            raise RequestRefused("the server was shut down", number=_SHUT_DOWN)
        if method == "shutdown":
            self._shut_down = True
            return None
        if method in _ACKNOWLEDGED:
            return None
        if method == "initialize" and not alone:
            raise RequestRefused("invalid request: initialize is not part of a batch", number=INVALID_REQUEST)
        request = _request(method, envelope, ident)
        serve = self._methods.get(method)
        if serve is None or (request.modern and method in _HANDSHAKE_ONLY):
            raise RequestRefused(f"no such method: {method[:_SHOWN]!r}", number=NO_METHOD)
        self.begun = self.begun or request.modern or method == "initialize"
        try:
            result = serve(msgspec.structs.replace(request, client=request.client or self._client))
        except RequestRefused:
            raise
        except Exception as error:  # a defect must not end the connection
            data = {"error": type(error).__name__, "at": _place(error)}
            raise RequestRefused("internal error", number=INTERNAL, data=data) from error
        return _modern(method, result) if request.modern else result

    def _initialize(self, request: Request) -> object:
        """The handshake: the client's version if it is supported, else our newest."""
        requested = request.params.get("protocolVersion")
        if requested is not None and type(requested) is not str:
            raise RequestRefused("invalid params: protocolVersion must be text", number=INVALID_PARAMS)
        version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        self._batches = version == BATCH_VERSION
        self._client = _client_text(request.params.get("clientInfo"))
        return {
            "protocolVersion": version,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }


def _split_batch(data: bytes) -> tuple[bytes, ...]:
    """The messages of a batch; none if it is no batch, an empty one, or nested too deep."""
    if not data.lstrip().startswith(b"["):
        return ()
    try:
        return tuple(bytes(message) for message in _batch.decode(data))
    except _NOT_READ:
        return ()


def is_cancelled(data: bytes, later: Iterable[bytes]) -> bool:
    """Whether a message that came later cancels this request. A handshake cannot be cancelled."""
    notifications = [message for message in later if b"cancelled" in message]
    if not notifications:
        return False
    try:
        request = _read(data)
        ident = msgspec.json.decode(request.id)
        if ident is None or _method(bytes(request.method)) == "initialize":
            return False
    except (RequestRefused, *_NOT_READ):
        return False
    return any(_is_same(_cancelled_id(message), ident) for message in notifications)


def _cancelled_id(data: bytes) -> object:
    """The id of the request that a notification cancels; None if the message cancels none."""
    try:
        notification = _read(data)
        if _method(bytes(notification.method)) != _CANCELLED:
            return None
        params = msgspec.json.decode(notification.params)
    except (RequestRefused, *_NOT_READ):
        return None
    return params.get("requestId") if type(params) is dict else None


def _is_same(one_id: object, other_id: object) -> bool:
    """Whether two ids are the same JSON: 1, 1.0 and "1" are not."""
    return type(one_id) is type(other_id) and one_id == other_id


def _place(error: BaseException) -> str:
    """The file and line where an error happened: enough for a report, and nothing of the request."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}" if trace else ""


def refusal(error: RequestRefused, ident: bytes = b"null") -> bytes:
    """The answer to a request that is refused."""
    answer: dict[str, object] = {"code": error.number, "message": error.message}
    if error.details:
        answer["data"] = error.details
    return _encoder.encode({"jsonrpc": "2.0", "id": msgspec.Raw(ident), "error": answer})


def unreadable(why: str) -> bytes:
    """The answer to input that is no message."""
    return refusal(RequestRefused(f"parse error: {why}", number=PARSE_ERROR))


def _read(data: bytes) -> _Envelope:
    try:
        return _decode_envelope(data)
    except RecursionError:
        return _decode_envelope(_cut_depth(data))  # the client still waits for an answer with its id


def _cut_depth(data: bytes) -> bytes:
    """The message without the parts that are nested too deep to be decoded. Its depth is refused later."""
    import re

    # A text, also one that does not end, or a bracket. Possessive, hence linear. Compiled only when it is needed.
    tokens = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
    pieces, depth, start = [], 0, 0
    for token in tokens.finditer(data):
        bracket = token[0]
        if bracket in {b"[", b"{"}:
            depth += 1
            if depth == _DEEPEST + 1:
                pieces.append(data[start : token.start()])
        elif bracket in {b"]", b"}"}:
            if depth == _DEEPEST + 1:
                pieces.append(b"0")
                start = token.end()
            depth -= 1
    return b"".join(pieces) if depth > _DEEPEST else b"".join([*pieces, data[start:]])


def _decode_envelope(data: bytes) -> _Envelope:
    try:
        return _envelope.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        reason = str(error)
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError):
        raise RequestRefused(f"parse error: {reason}", number=PARSE_ERROR) from None
    what = "batches are not supported: send one request per message" if type(value) is list else "not a request object"
    raise RequestRefused(f"invalid request: {what}", number=INVALID_REQUEST)


def _ident(raw: bytes) -> bytes:
    """The id as it was sent: text, a number, or null, which means no id."""
    if len(raw) > _IDENT:
        raise RequestRefused(f"invalid request: an id of more than {_IDENT} bytes", number=INVALID_REQUEST)
    try:
        value = msgspec.json.decode(raw)
    except _NOT_READ:
        value = ()
    if value is None or type(value) in {str, int, float}:
        return raw
    raise RequestRefused("invalid request: an id is text or a number", number=INVALID_REQUEST)


def _method(raw: bytes) -> str:
    try:
        method = msgspec.json.decode(raw) if raw else None
    except _NOT_READ:
        method = None
    if type(method) is not str:
        raise RequestRefused("invalid request: method must be text", number=INVALID_REQUEST)
    return method


def _request(method: str, envelope: _Envelope, ident: bytes) -> Request:
    try:
        params = parse(bytes(envelope.params)).value
    except JsonRefused as error:
        data = {"code": error.code, "at": f"/params{error.at or ''}"[:_PLACE]}
        raise RequestRefused(f"invalid params: {error.message}", number=INVALID_PARAMS, data=data) from error
    if params is not None and type(params) is not dict:
        raise RequestRefused("invalid params: params must be an object", number=INVALID_PARAMS)
    params = params or {}
    modern = _is_modern(params)
    if method == _DISCOVER and not modern:
        raise RequestRefused(f"invalid params: {_NEEDED}", number=INVALID_PARAMS)
    meta = params.get("_meta")
    client = _client_text(meta.get(_CLIENT)) if modern and type(meta) is dict else ""
    ident_text = "" if ident == b"null" else ident.decode()
    return Request(id=ident_text, method=method, params=params, modern=modern, client=client)


def _client_text(info: Json) -> str:
    """The name and version of a client, cut to a length; empty if it has none."""
    if type(info) is not dict:
        return ""
    name, version = info.get("name"), info.get("version")
    if type(name) is not str or not name.strip():
        return ""
    return f"{name[:_LONGEST_NAME]} {version if type(version) is str else ''}"[:_LONGEST_NAME].strip()


_LONGEST_NAME = 2000
_NEEDED = f"_meta needs {_VERSION} as text and {_CAPABILITIES} as an object"


def _is_modern(params: Mapping[str, Json]) -> bool:
    """Whether the request names its protocol version itself. Half of that is refused.

    A version that is not supported is refused, with the supported ones in the data.
    """
    meta = params.get("_meta")
    if type(meta) is not dict or not any(name in meta for name in (_VERSION, _CLIENT, _CAPABILITIES)):
        return False
    version = meta.get(_VERSION)
    if type(version) is not str or type(meta.get(_CAPABILITIES)) is not dict:
        raise RequestRefused(f"invalid params: {_NEEDED}", number=INVALID_PARAMS)
    if version not in MODERN_VERSIONS:
        data = {"supported": [*HANDSHAKE_VERSIONS, *MODERN_VERSIONS], "requested": version[:_SHOWN]}
        raise RequestRefused("unsupported protocol version", number=_UNSUPPORTED_VERSION, data=data)
    return True


def _modern(method: str, result: object) -> dict[str, object]:
    """A result in the form of the newest version: with its type, the server, and its cache lifetime."""
    answer: dict[str, object] = dict(result) if isinstance(result, dict) else {}
    answer |= {"resultType": "complete", "_meta": {f"{_META}serverInfo": SERVER}}
    if method in _CACHEABLE:
        answer["cacheScope"], answer["ttlMs"] = _CACHEABLE[method]
    return answer


# --- the server -------------------------------------------------------------------------------------------------------

CAPABILITIES: dict[str, object] = {"tools": {}, "resources": {}}
INSTRUCTIONS = (
    "Handoff packs carry findings on from one agent to another, anchored to lines of code. "
    "Read one with tool output (action read): the default page is short, profile reviewer shows the code. "
    "Write one with tool input (action write) as a whole document; to change one, get it, edit it, and write it back "
    "with its revision as expected_revision. Finalizing (status finalized) needs the sections scope and findings with "
    "content, a section qa with a line such as 'verdict: pass', and refs that lead to existing lines. "
    "Packs expire: ttl extends one."
)


def _discover(_request: Request) -> object:
    return {
        "supportedVersions": [*HANDSHAKE_VERSIONS, *MODERN_VERSIONS],
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
    }


def _pong(_request: Request) -> object:
    return {}
