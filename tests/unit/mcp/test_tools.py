"""What a call of a tool does to the store of the session."""

from typing import NoReturn

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffNotFound
from contextplane.mcp.protocol import Request
from contextplane.mcp.tools import call
from contextplane.ports.objects import StorageFailed

LIST = Request(id="1", method="tools/call", params={"name": "input", "arguments": {"action": "list"}}, modern=False)


@pytest.mark.parametrize(
    ("error", "closed"),
    [(StorageFailed("the disk is gone"), 1), (OSError(5, "broken"), 1), (HandoffNotFound("no such pack"), 0)],
)
def test_after_an_error_of_the_store_and_not_after_a_refusal_the_next_call_opens_it_again(
    error: ContextPlaneError | OSError, closed: int
) -> None:
    def handoffs() -> NoReturn:
        raise error

    closings: list[None] = []
    result = call(LIST, handoffs=handoffs, close_store=lambda: closings.append(None))
    assert isinstance(result, dict)
    assert result["isError"] is True
    assert len(closings) == closed
