"""The tool `python`: public functions of allowed modules, and whatever happens in one is an answer."""

import pytest

from contextplane.adapters.tools.process import ProcessTools
from contextplane.ports.tools import ToolFailed, ToolRefused, Tools
from tests.support.cases import cases
from tests.unit.adapters.tool_workspace import ToolWorkspace, python


@cases(
    ("function", "arguments", "output"),
    [("double", {"n": 3}, b'{"twice":6}'), ("text", {}, "tëxt".encode()), ("raw", {}, b"\x00\xff")],
)
def test_what_a_function_returns_is_the_output_and_what_it_prints_is_not(
    tools: Tools, function: str, arguments: dict[str, object], output: bytes
) -> None:
    assert python(tools, function, **arguments) == output


@cases(
    "function",
    ["os:system", "workmodule:os", "workmodule:join", "workmodule:_hidden", "workmodule:missing", "workmodule", ":x"],
)
def test_only_public_functions_that_an_allowed_module_defines_are_called(tools: Tools, function: str) -> None:
    with pytest.raises(ToolRefused):
        tools.call("python", {"function": function})


def test_no_module_is_allowed_or_imported_unless_it_is_named(place: ToolWorkspace) -> None:
    with ProcessTools(place.options(allowing=False)) as tools, pytest.raises(ToolRefused):
        python(tools, "text")


@cases("function", ["odd", "broken", "leave", "double"])
def test_whatever_happens_in_a_function_is_a_failure_of_that_call_alone(tools: Tools, function: str) -> None:
    with pytest.raises(ToolFailed):
        python(tools, function)
    assert python(tools, "text") == "tëxt".encode()


def test_arguments_are_an_object(tools: Tools) -> None:
    with pytest.raises(ToolFailed, match="arguments"):
        tools.call("python", {"function": "workmodule:double", "arguments": [1]})
