"""The methods of the server beyond the protocol itself. Each is imported when it is first called."""

import gc
from contextlib import ExitStack
from typing import TYPE_CHECKING

from contextplane.errors import ContextPlaneError
from contextplane.mcp.protocol import Method, Request, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contextplane.app.handoff.session import HandoffSession
    from contextplane.app.settings import Settings
    from contextplane.mcp.log import Log

__all__ = ["Methods"]


class Methods:
    """Opens the store on first use and closes it when idle, because other processes wait for its lock."""

    def __init__(self, settings: "Settings", log: "Log") -> None:
        self._settings = settings
        self._log = log
        self._stack = ExitStack()
        self._handoffs: HandoffSession | None = None
        self._reported: Mapping[str, str] = {}

    @property
    def by_name(self) -> dict[str, Method]:
        """The methods of this class as the protocol names them."""
        return {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }

    @property
    def handoffs(self) -> "HandoffSession":
        """The handoff packs, whose store is opened now if need be."""
        if self._handoffs is None:
            from contextplane.app.session import open_session

            self._handoffs = self._stack.enter_context(open_session(self._settings)).handoffs
        return self._handoffs

    def _handoffs_of(self, client: str) -> "HandoffSession":
        handoffs = self.handoffs
        handoffs.client = client
        return handoffs

    def close_store(self) -> None:
        """Close the store until it is needed again, and log which packs could not be imported."""
        if self._handoffs is None:
            return
        result, self._handoffs = self._handoffs.import_result, None
        self._stack.close()
        if result is not None and result.refused != self._reported:
            self._reported = result.refused
            for name, why in sorted(result.refused.items()):
                self._log("warn", f"not imported, left unchanged: {name}: {why}")

    def _list_tools(self, _request: Request) -> object:
        from contextplane.mcp.schemas import TOOLS

        return {"tools": TOOLS}

    def _call_tool(self, request: Request) -> object:
        from contextplane.mcp.tools import call

        try:
            return call(request, handoffs=lambda: self._handoffs_of(request.client), close_store=self.close_store)
        finally:
            if not gc.isenabled():
                gc.freeze()
                gc.enable()

    def _list_resources(self, request: Request) -> object:
        from contextplane.mcp.resources import list_resources

        return self._from_store(list_resources, request)

    def _list_templates(self, _request: Request) -> object:
        from contextplane.mcp.resources import TEMPLATES

        return {"resourceTemplates": TEMPLATES}

    def _read_resource(self, request: Request) -> object:
        from contextplane.mcp.resources import read_resource

        return self._from_store(read_resource, request)

    def _from_store(self, resource: "Callable[[Request, HandoffSession], object]", request: Request) -> object:
        """The answer of a resource. A store that fails is closed, so that the next request opens it again."""
        try:
            return resource(request, self.handoffs)
        except RequestRefused:
            raise
        except (ContextPlaneError, OSError) as error:
            from contextplane.mcp.resources import unavailable

            self.close_store()
            raise unavailable(error) from error
