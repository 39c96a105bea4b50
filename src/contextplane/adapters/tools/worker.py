"""The process of our own tools, one for all their calls: `python -m contextplane.adapters.tools.worker` (`serving`)."""

import sys

from contextplane.adapters.tools.files import file_tools
from contextplane.adapters.tools.http import http_tool
from contextplane.adapters.tools.serving import Find, serve
from contextplane.adapters.tools.workspace import Workspace

__all__ = ["own_tools"]


def own_tools(workspace: Workspace, hosts: tuple[str, ...], _modules: tuple[str, ...] = ()) -> Find:
    return {**file_tools(workspace), "http_get": http_tool(hosts)}.__getitem__


if __name__ == "__main__":
    serve(sys.argv[1:], own_tools)
