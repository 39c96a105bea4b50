"""What the methods of the server do beyond the protocol, each imported when it is first asked for."""

import gc
from contextlib import ExitStack
from typing import TYPE_CHECKING

from contextplane.errors import ContextPlaneError
from contextplane.mcp.protocol import Method, Request, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contextplane.app.handoff.store import Desk
    from contextplane.app.settings import Settings
    from contextplane.mcp.log import Log

__all__ = ["Work"]


class Work:
    """The store is open from the first call that needs it until there is nothing to do: others wait for it then."""

    def __init__(self, settings: "Settings", log: "Log") -> None:
        self._settings = settings
        self._log = log
        self._stack = ExitStack()
        self._desk: Desk | None = None
        self._told: Mapping[str, str] = {}

    @property
    def methods(self) -> dict[str, Method]:
        return {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }

    @property
    def desk(self) -> "Desk":
        """The packs, opened."""
        if self._desk is None:
            from contextplane.app.handoff.store import opened_desk

            self._desk = self._stack.enter_context(opened_desk(self._settings))
        return self._desk

    def rest(self) -> None:
        """Close the store until it is needed again."""
        if self._desk is None:
            return
        taken, self._desk = self._desk.taken, None
        self._stack.close()
        if taken is not None and taken.refused != self._told:
            self._told = taken.refused
            for name, why in sorted(taken.refused.items()):
                self._log("warn", f"not taken in, and left as it is: {name}: {why}")

    def _list_tools(self, _request: Request) -> object:
        from contextplane.mcp.schemas import TOOLS

        return {"tools": TOOLS}

    def _call_tool(self, request: Request) -> object:
        from contextplane.mcp.tools import call

        try:
            return call(request, desk=lambda: self.desk, rest=self.rest)
        finally:
            if not gc.isenabled():
                gc.freeze()
                gc.enable()

    def _list_resources(self, request: Request) -> object:
        from contextplane.mcp.resources import listed

        return self._of_store(listed, request)

    def _list_templates(self, _request: Request) -> object:
        from contextplane.mcp.resources import TEMPLATES

        return {"resourceTemplates": TEMPLATES}

    def _read_resource(self, request: Request) -> object:
        from contextplane.mcp.resources import read

        return self._of_store(read, request)

    def _of_store(self, resource: "Callable[[Request, Desk], object]", request: Request) -> object:
        """What a resource tells. A store that cannot be used is closed, so that the next request opens it anew."""
        try:
            return resource(request, self.desk)
        except RequestRefused:
            raise
        except (ContextPlaneError, OSError) as error:
            from contextplane.mcp.resources import unavailable

            self.rest()
            raise unavailable(error) from error
