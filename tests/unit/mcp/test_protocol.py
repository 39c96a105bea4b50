"""One message in, at most one answer out, and none of them ends the session."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import version

from contextplane import __version__
from contextplane.mcp.protocol import HANDSHAKE_VERSIONS, MODERN_VERSIONS, Request, Session, unreadable
from tests.support.cases import cases

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"


def broken(_request: Request) -> object:
    raise ZeroDivisionError


def session() -> Session:
    return Session({"tools/list": lambda request: {"tools": [], "got": request.params}, "broken": broken})


def ask(data: bytes | dict[str, Any], to: Session | None = None) -> dict[str, Any]:
    answer = (to or session()).answer(data if isinstance(data, bytes) else msgspec.json.encode(data))
    return {} if answer is None else msgspec.json.decode(answer, type=dict[str, Any])


def code(answer: dict[str, Any]) -> int:
    assert set(answer) == {"jsonrpc", "id", "error"}
    return int(answer["error"]["code"])


@cases(
    ("asked_for", "version"),
    [(version, version) for version in HANDSHAKE_VERSIONS]
    + [(None, "2025-11-25"), ("1999-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("", "2025-11-25")],
)
def test_a_version_that_we_speak_is_agreed_on_and_else_our_newest(asked_for: str | None, version: str) -> None:
    params = {} if asked_for is None else {"protocolVersion": asked_for}
    result = ask({"id": 1, "method": "initialize", "params": params})["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert result["serverInfo"] == {"name": "context-pack", "version": __version__}
    assert "verdict" in result["instructions"]


def test_the_versions_are_those_of_the_official_kit() -> None:
    assert version.HANDSHAKE_PROTOCOL_VERSIONS == HANDSHAKE_VERSIONS
    assert version.MODERN_PROTOCOL_VERSIONS == MODERN_VERSIONS


@cases("ident", [b"1", b"-7", b"1.50", b"1e3", b'"a"', '"\u00e9\\n"'.encode(), b"123456789012345678901", b'""'])
def test_an_id_comes_back_as_it_was_sent(ident: bytes) -> None:
    answer = session().answer(b'{"id":%b,"method":"ping"}' % ident)
    assert answer == b'{"jsonrpc":"2.0","id":%b,"result":{}}' % ident


@cases("ident", [b"true", b"[1]", b'{"a":1}', b'"\xff"'])
def test_an_id_of_another_kind_is_refused(ident: bytes) -> None:
    answer = ask(b'{"id":%b,"method":"ping"}' % ident)
    assert (code(answer), answer["id"]) == (-32600, None)


@pytest.mark.parametrize("data", [b'{"method":"ping"}', b'{"id":null,"method":"ping"}', b'{"method":"nope"}'])
def test_a_notification_is_never_answered(data: bytes) -> None:
    assert session().answer(data) is None


@cases(
    "data",
    [
        b"x",
        b"{",
        b'{"id":1,"method":"ping"',
        b"\xff\xfe{}",
        b"{\0}",
        b"",
        b'{"id":1,"params":' + b"[" * 100_000,
        b"'a'",
    ],
)
def test_what_is_no_json_is_a_parse_error(data: bytes) -> None:
    answer = ask(data)
    assert (code(answer), answer["id"]) == (-32700, None)


@pytest.mark.parametrize("data", [b"[]", b'[{"id":1,"method":"ping"}]', b"[" * 300 + b"]" * 300])
def test_batches_are_refused_politely(data: bytes) -> None:
    answer = ask(data)
    assert (code(answer), answer["id"]) == (-32600, None)
    assert "batches" in answer["error"]["message"]


def spoken(version: str) -> Session:
    """A session after the handshake."""
    result = session()
    assert ask({"id": 0, "method": "initialize", "params": {"protocolVersion": version}}, result)["result"]
    return result


def test_a_batch_of_the_version_that_has_them_is_answered_with_a_batch() -> None:
    to = spoken("2025-03-26")
    batch = [
        {"id": 1, "method": "ping"},
        {"method": "notifications/initialized"},
        {"id": "b", "method": "nope"},
        7,
        [],
        {"id": 2, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"id": 3, "method": "tools/list"},
    ]
    data = to.answer(b" " + msgspec.json.encode(batch))
    assert data is not None
    answers = msgspec.json.decode(data, type=list[dict[str, Any]])
    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
        (1, None),
        ("b", -32601),
        (None, -32600),
        (None, -32600),
        (2, -32600),
        (3, None),
    ]
    assert to.answer(b'[{"method":"notifications/initialized"},{"method":"ping"}]') is None
    for refused in (b"[]", b"[%b]" % b",".join([b'{"id":1,"method":"ping"}'] * 1001)):
        answer = ask(refused, to)
        assert (code(answer), answer["id"]) == (-32600, None)
    assert code(ask(b"[1,", to)) == -32700
    assert ask(b'{"id":4,"method":"ping"}', to)["result"] == {}


@pytest.mark.parametrize("version", [other for other in HANDSHAKE_VERSIONS if other != "2025-03-26"])
def test_other_versions_have_no_batches(version: str) -> None:
    assert "batches" in ask(b'[{"id":1,"method":"ping"}]', spoken(version))["error"]["message"]


@cases("data", [b"1", b"null", b'"text"', b"{}", b'{"method":7}', b'{"params":{}}'])
def test_json_that_is_no_request_is_refused(data: bytes) -> None:
    assert code(ask(data)) == -32600


def test_a_request_without_a_method_gets_its_id_back() -> None:
    assert ask(b'{"id":"q"}')["id"] == "q"


def test_an_answer_that_nobody_asked_for_is_left_alone() -> None:
    assert session().answer(b'{"id":1,"result":{}}') is None
    assert session().answer(b'{"id":1,"error":{"code":1,"message":""}}') is None


@cases(
    ("params", "number"),
    [
        (b"[]", -32602),
        (b"7", -32602),
        (b'{"a":1,"a":2}', -32602),
        (b'{"a":123456789012345678}', -32602),
        (b"[" * 300 + b"]" * 300, -32602),
    ],
)
def test_params_of_the_wrong_kind_are_refused(params: bytes, number: int) -> None:
    answer = ask(b'{"id":1,"method":"tools/list","params":%b}' % params)
    assert (code(answer), answer["id"]) == (number, 1)


@cases("depth", [257, 900, 1100, 100_000])
@cases("opening", [b"[", b'{"a\\"]":'])
def test_whoever_nests_too_deep_gets_the_id_back_and_nothing_is_done(depth: int, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    params = b'{"x":' + opening * depth + b'"]}"' + closing * depth + b"}"
    for message in (b'{"id":7,"method":"tools/list","params":%b}', b'{"params":%b,"method":"broken","id":7}'):
        answer = ask(message % params)
        assert (code(answer), answer["id"]) == (-32602, 7)
        assert "deep" in answer["error"]["message"]
    assert ask(b'{"method":"tools/list","params":%b}' % params) == {}
    assert code(ask(b"[%b]" % params)) == -32600  # a batch


def test_what_is_too_deep_and_beside_the_call_is_ignored_as_anything_there() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    assert ask(b'{"other":%b,"id":7,"method":"ping"}' % deep)["result"] == {}
    assert code(ask(b'{"id":%b,"method":"ping"}' % deep)) == -32600
    assert code(ask(b'{"id":7,"method":%b}' % deep)) == -32600


@cases("end", [b"", b"]" * 4999 + b"}", b'"', b'"\\"', b'"\\', b"]" * 6000 + b"}", b"]" * 5000 + b"}}"])
def test_what_is_too_deep_and_broken_is_a_parse_error(end: bytes) -> None:
    answer = ask(b'{"id":7,"method":"ping","params":' + b"[" * 5000 + end)
    assert (code(answer), answer["id"]) == (-32700, None)


@pytest.mark.parametrize("ident", [b'"%b"' % (b"x" * 5000), b"1" * 5000])
def test_an_id_that_is_endless_is_refused(ident: bytes) -> None:
    answer = ask(b'{"id":%b,"method":"ping"}' % ident)
    assert (code(answer), answer["id"]) == (-32600, None)


@pytest.mark.parametrize("params", [b"null", b"{}"])
def test_no_params_are_empty_params(params: bytes) -> None:
    assert ask(b'{"id":1,"method":"tools/list","params":%b}' % params)["result"]["got"] == {}


def test_an_unknown_method_is_told_by_its_number() -> None:
    assert code(ask({"id": 1, "method": "prompts/list"})) == -32601


def test_a_defect_is_told_and_does_not_end_the_session() -> None:
    ours = session()
    answer = ask({"id": 1, "method": "broken"}, ours)
    assert code(answer) == -32603
    assert answer["error"]["data"]["error"] == "ZeroDivisionError"
    assert answer["error"]["data"]["at"].startswith("test_protocol.py:")
    assert ask({"id": 2, "method": "ping"}, ours)["result"] == {}


@pytest.mark.parametrize("method", ["initialized", "notifications/initialized"])
def test_the_client_may_say_twice_that_it_is_ready(method: str) -> None:
    assert ask({"id": 1, "method": method}) == {"jsonrpc": "2.0", "id": 1, "result": None}
    assert ask({"method": method}) == {}


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/progress", "notifications/unheard-of"])
def test_other_notifications_are_taken_in_silence(method: str) -> None:
    assert ask({"method": method, "params": {"requestId": 1}}) == {}


def test_after_a_shutdown_only_exit_is_understood() -> None:
    ours = session()
    assert ask({"id": 1, "method": "shutdown"}, ours)["result"] is None
    assert code(ask({"id": 2, "method": "ping"}, ours)) == -32000
    assert code(ask({"id": 3, "method": "initialize"}, ours)) == -32000
    assert ask({"method": "tools/list"}, ours) == {}
    assert not ours.ended
    assert ask({"id": 4, "method": "exit"}, ours)["result"] is None
    assert ours.ended


def test_exit_needs_no_shutdown_and_no_id() -> None:
    ours = session()
    assert ask({"method": "exit"}, ours) == {}
    assert ours.ended


@cases(
    ("data", "begun"),
    [
        ({"id": 1, "method": "initialize"}, True),
        ({"id": 1, "method": "ping"}, False),
        ({"id": 1, "method": "nope"}, False),
        ({"id": 1, "method": "server/discover", "params": {"_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}}}, True),
    ],
)
def test_who_introduced_itself_is_known(data: dict[str, Any], begun: bool) -> None:  # noqa: FBT001
    ours = session()
    ask(data, ours)
    assert ours.begun is begun


# --- the newest version, without a handshake --------------------------------------------------------------------------


def modern(method: str, **meta: object) -> dict[str, Any]:
    meta = {VERSION: "2026-07-28", CAPABILITIES: {}, **meta}
    return ask({"id": 1, "method": method, "params": {"_meta": meta}})


def test_who_we_are_is_told_without_a_handshake() -> None:
    result = modern("server/discover")["result"]
    assert result["supportedVersions"] == [*HANDSHAKE_VERSIONS, *MODERN_VERSIONS]
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert (result["resultType"], result["cacheScope"]) == ("complete", "public")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "context-pack"


def test_a_result_of_the_newest_version_says_what_it_is_and_how_long_it_is_good() -> None:
    result = modern("tools/list")["result"]
    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "public", 3_600_000)
    assert "resultType" not in ask({"id": 1, "method": "tools/list"})["result"]


def test_a_version_that_nobody_speaks_is_refused_with_those_that_we_do() -> None:
    answer = modern("tools/list", **{VERSION: "2999-01-01"})
    assert code(answer) == -32022
    assert answer["error"]["data"] == {
        "supported": [*HANDSHAKE_VERSIONS, *MODERN_VERSIONS],
        "requested": "2999-01-01",
    }


@pytest.mark.parametrize("meta", [{VERSION: 7}, {CAPABILITIES: None}, {CAPABILITIES: []}])
def test_half_an_envelope_is_refused(meta: dict[str, Any]) -> None:
    assert code(modern("tools/list", **meta)) == -32602


@pytest.mark.parametrize(
    "meta",
    [None, {}, {"progressToken": 1}, {CLIENT: {}}, {CLIENT: {}, CAPABILITIES: {}}, {CLIENT: {}, VERSION: "2026-07-28"}],
)
def test_discovery_without_the_whole_envelope_is_refused(meta: dict[str, Any] | None) -> None:
    params = {} if meta is None else {"_meta": meta}
    answer = ask({"id": 101, "method": "server/discover", "params": params})
    assert (code(answer), answer["id"]) == (-32602, 101)


@pytest.mark.parametrize("meta", [{CAPABILITIES: {}}, {CLIENT: {"name": "x", "version": "1"}}])
def test_an_envelope_without_its_version_is_refused_by_every_method(meta: dict[str, Any]) -> None:
    for method in ("tools/list", "ping", "unknown/method"):
        assert code(ask({"id": 1, "method": method, "params": {"_meta": meta}})) == -32602


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"])
def test_methods_that_the_newest_version_removed_do_not_exist_in_it(method: str) -> None:
    answer = modern(method)
    assert (code(answer), answer["id"]) == (-32601, 1)


def test_other_meta_data_is_no_envelope() -> None:
    answer = ask({"id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": 1}}})
    assert "resultType" not in answer["result"]


# --- laws -------------------------------------------------------------------------------------------------------------

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=100))
def test_no_bytes_raise(data: bytes) -> None:
    answer = session().answer(data)
    assert answer is None or msgspec.json.decode(answer)["jsonrpc"] == "2.0"


@given(st.fixed_dictionaries({}, optional={"id": _JSON, "method": _JSON, "params": _JSON, "jsonrpc": _JSON}))
def test_no_message_raises_and_what_has_an_id_is_answered(message: dict[str, Any]) -> None:
    answer = ask(message)
    if type(message.get("id")) in {str, int, float}:
        assert answer["id"] == message["id"]


def test_what_is_no_message_at_all_is_a_parse_error() -> None:
    assert code(msgspec.json.decode(unreadable("why"))) == -32700
