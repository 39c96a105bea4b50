"""The arguments of both tools: the schema that clients are told and the reader refuse the same calls."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.app.handoff.session import HandoffSession, open_handoffs
from contextplane.app.settings import Settings
from contextplane.mcp.arguments import FIELDS
from contextplane.mcp.protocol import Request
from contextplane.mcp.schemas import TOOLS
from contextplane.mcp.tools import call
from tests.support.cases import cases

SCHEMA = {tool["name"]: jsonschema_rs.validator_for(tool["inputSchema"]) for tool in TOOLS}
PROPERTIES = [(tool["name"], name) for tool in TOOLS for name in tool["inputSchema"]["properties"]]


@pytest.fixture(scope="module")
def handoffs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandoffSession]:
    """A place without packs."""
    with open_handoffs(Settings(cwd=str(tmp_path_factory.mktemp("handoffs")))) as handoffs:
        yield handoffs


def refusal(handoffs: HandoffSession, tool: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """The error when the arguments are invalid. That there is no such pack is no such error."""
    request = Request(id="1", method="tools/call", params={"name": tool, "arguments": arguments}, modern=False)
    result = msgspec.convert(call(request, handoffs=lambda: handoffs, close_store=lambda: None), dict[str, Any])
    if "isError" not in result:
        return None
    error = msgspec.json.decode(result["content"][0]["text"], type=dict[str, Any])
    return error if error["code"] == "invalid_data" else None


# --- null -------------------------------------------------------------------------------------------------------------


@cases(("tool", "name"), PROPERTIES)
def test_null_is_left_out_for_every_argument_of_the_schema(handoffs: HandoffSession, tool: str, name: str) -> None:
    arguments = {name: None}
    assert refusal(handoffs, tool, arguments) is None
    assert SCHEMA[tool].is_valid(arguments)


@cases(("tool", "name"), PROPERTIES)
def test_an_argument_of_another_action_is_refused_and_false_is_none_for_a_flag_alone(
    handoffs: HandoffSession, tool: str, name: str
) -> None:
    flag = name in {"validate_only", "structured"}
    for action in FIELDS[tool]:
        if name not in FIELDS[tool][action] and action != "write":
            error = refusal(handoffs, tool, {"action": action, "id": "x", name: True})
            assert error is not None
            assert {problem["path"] for problem in error["details"]["problems"]} >= {name}
    listed = {"action": "list", name: False}
    assert (refusal(handoffs, tool, listed) is None) is flag


@pytest.mark.parametrize("tool", FIELDS)
def test_a_call_without_an_action_is_a_call(handoffs: HandoffSession, tool: str) -> None:
    calls: list[dict[str, Any]] = [{}, {"action": None}, {"id": "pk_abcd2345"}, {"name": "login-bug"}]
    for arguments in calls[: 4 if tool == "output" else 2]:
        assert SCHEMA[tool].is_valid(arguments), arguments
        assert refusal(handoffs, tool, arguments) is None


@cases(
    ("tool", "action", "name", "instead"),
    [
        ("input", "write", "title", "document"),
        ("input", "write", "section_key", "document"),
        ("input", "write", "op", "document"),
        ("output", "read", "mode", "profile"),
        ("output", "read", "cursor", "page_token"),
        ("output", "read", "match", "contains"),
        ("output", "list", "format", None),
        ("input", "list", "stranger", None),
    ],
)
def test_a_name_that_the_schema_does_not_have_is_refused_though_it_is_null(
    handoffs: HandoffSession, tool: str, action: str, name: str, instead: str | None
) -> None:
    arguments: dict[str, Any] = {"action": action, name: None}
    error = refusal(handoffs, tool, arguments)
    assert error is not None
    assert (error["details"]["unsupported_field"], error["details"].get("supported_field")) == (name, instead)


# --- the schema says the same -----------------------------------------------------------------------------------------

# The reader is more lenient with blanks and with the case of a choice, so these are not among them.
_ANY: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["x", 1.5, [], {}])
_STATUS = st.sampled_from(["draft", "finalized", "done"])
_FRESH = st.sampled_from(["fresh", "expiring_soon", "expired", "stale"])
_NUMBER = st.integers(-1, 3)
_COMMON: dict[str, st.SearchStrategy[Any]] = {
    "id": st.sampled_from(["pk_abcd2345", "login-bug", " "]),
    "name": st.sampled_from(["login-bug", "pk_abcd2345"]),
    "status": _STATUS,
    "freshness": _FRESH,
    "query": st.text(max_size=3),
    "limit": _NUMBER,
    "offset": _NUMBER,
}
_FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "input": {
        **_COMMON,
        "document": st.sampled_from([{"sections": []}, {"sections": None}, {}, {"title": "x", "sections": []}]),
        "expected_revision": _NUMBER,
        "validate_only": st.just(value=True),
        "ttl_minutes": _NUMBER,
        "extend_minutes": _NUMBER,
    },
    "output": {
        **_COMMON,
        "profile": st.sampled_from(["orchestrator", "reviewer", "executor", "writer"]),
        "contains": st.text(max_size=3),
        "page_token": st.just("x"),
    },
}


@st.composite
def _calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A tool and arguments for one of its actions, now and then of a wrong type, out of place, or unknown."""
    tool = draw(st.sampled_from([*FIELDS]))
    action = draw(st.sampled_from([*FIELDS[tool], None]))
    likely = FIELDS[tool][action or "list"]
    names = draw(st.lists(st.sampled_from(likely) | st.sampled_from([*_FIELDS[tool], "stranger"]), max_size=5))
    values = {name: draw(_FIELDS[tool].get(name, _ANY) | _ANY) for name in names if name != "action"}
    if action == "write" and values.get("validate_only", False) is False:
        values["validate_only"] = True  # the place stays without packs
    return tool, values if action is None and draw(st.booleans()) else {**values, "action": action}


# What a schema cannot say: which arguments go together, and which action takes them.
_BEYOND = (
    "is no argument of action",
    "is not supported any more",
    "needs the pack",
    "needs expected_revision",
    "expected_revision is for an update",
    "exactly one of",
    "document: is required",
    "limit: must be at least 1, not 0",
)


@given(_calls())
def test_schema_and_reader_agree(handoffs: HandoffSession, asked: tuple[str, dict[str, Any]]) -> None:
    tool, arguments = asked
    error = refusal(handoffs, tool, arguments)
    if error is None:
        assert SCHEMA[tool].is_valid(arguments), [*SCHEMA[tool].iter_errors(arguments)]
    elif SCHEMA[tool].is_valid(arguments):
        assert any(words in error["message"] for words in _BEYOND) or "invalid_page_token" in error["message"], error
