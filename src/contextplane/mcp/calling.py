"""`tools/call`: which tool, with which arguments; what it refuses is a result that says so, not a protocol error."""

from typing import TYPE_CHECKING

from contextplane.errors import ContextPlaneError
from contextplane.handoff.refusals import HandoffRefusal
from contextplane.mcp.answers import Answer, failed, told
from contextplane.mcp.arguments import arguments_of
from contextplane.mcp.protocol import INVALID_PARAMS, Request, RequestRefused
from contextplane.model.canonical import Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.app.handoff import Desk

__all__ = ["call"]

_TOOLS = ("input", "output")


def call(request: Request, *, desk: "Callable[[], Desk]", rest: "Callable[[], None]") -> object:
    """The result of one call. `desk` opens the store; `rest` closes it, so that the next call opens it anew."""
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if name not in _TOOLS:
        raise RequestRefused(
            f"invalid params: unknown tool {str(name)[:80]!r}", number=INVALID_PARAMS, data={"tools": [*_TOOLS]}
        )
    if arguments is not None and type(arguments) is not dict:
        raise RequestRefused("invalid params: arguments must be an object", number=INVALID_PARAMS)
    try:
        answer = _called(str(name), arguments or {}, desk)
    except HandoffRefusal as error:
        answer = failed(error, request.name)
    except (ContextPlaneError, OSError) as error:
        rest()
        answer = failed(error, request.name)
    return told(answer, request.name)


def _called(tool: str, given: dict[str, Json], desk: "Callable[[], Desk]") -> Answer:
    arguments = arguments_of(tool, given)
    if tool == "input":
        from contextplane.mcp.input_tool import called
    else:
        from contextplane.mcp.output_tool import called
    return called(arguments, desk())
