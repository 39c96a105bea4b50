"""The laws of the `Tools` port, for any adapter of it."""

from contextlib import suppress
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.model.value import Value
from contextplane.ports.tools import ToolFailed, ToolRefused, Tools, ToolTimedOut, ToolUnknown
from contextplane.testing.strategies import json_values

__all__ = ["Call", "ToolsLaw"]

_UNKNOWN_NAMES = ("", "nobody's", "x" * 10_000, "\0", "../read_file", "\ud800")


class Call(Value, frozen=True):
    """A call of a tool."""

    tool: str
    parameters: dict[str, object]


class ToolsLaw:
    """The laws. Subclasses make the tools and give one call for each way to end.

    - `gives`: a call and its output, the same each time.
    - `fails`: a call without an output; `refused`: one outside of the sandbox.
    - `hangs`: a call that never ends by itself; `floods`: one with an output beyond the limit.
    """

    gives: tuple[Call, bytes]
    fails: Call
    refused: Call
    hangs: Call
    floods: Call

    def make(self) -> Tools:
        raise NotImplementedError

    def test_names_are_sorted_and_each_tool_has_a_version(self) -> None:
        tools = self.make()
        names = tools.names()
        assert list(names) == sorted(set(names))
        assert {call.tool for call in (self.gives[0], self.fails, self.refused, self.hangs, self.floods)} <= set(names)
        assert all(isinstance(tools.version(name), str) for name in names)

    def test_a_tool_that_is_not_there_is_unknown_by_every_way_of_asking(self) -> None:
        tools = self.make()
        for name in _UNKNOWN_NAMES:
            assert name not in tools.names()
            with pytest.raises(ToolUnknown):
                tools.version(name)
            with pytest.raises(ToolUnknown):
                tools.call(name, {})

    def test_a_call_gives_its_bytes_and_the_same_ones_again(self) -> None:
        tools, (call, output) = self.make(), self.gives
        assert [tools.call(call.tool, call.parameters) for _ in range(3)] == [output] * 3

    def test_a_call_does_not_change_its_parameters(self) -> None:
        tools, (call, _) = self.make(), self.gives
        parameters = deepcopy(call.parameters)
        tools.call(call.tool, parameters)
        assert parameters == call.parameters

    def test_each_bad_end_has_its_own_error_and_the_next_call_is_none_the_worse(self) -> None:
        tools, (call, output) = self.make(), self.gives
        ends = ((self.fails, ToolFailed), (self.refused, ToolRefused), (self.hangs, ToolTimedOut))
        for bad, error in (*ends, (self.floods, ToolFailed)):
            with pytest.raises(error):
                tools.call(bad.tool, bad.parameters)
            assert tools.call(call.tool, call.parameters) == output

    @settings(max_examples=20)  # a call may cost a process
    @given(parameters=st.dictionaries(st.text(max_size=8), json_values(), max_size=4))
    def test_whatever_the_parameters_are_a_call_ends_in_bytes_or_an_error_of_the_port(
        self, parameters: dict[str, object]
    ) -> None:
        tools = self.make()
        for name in {self.gives[0].tool, self.fails.tool}:
            with suppress(ToolFailed, ToolRefused, ToolTimedOut):
                assert isinstance(tools.call(name, parameters), bytes)
