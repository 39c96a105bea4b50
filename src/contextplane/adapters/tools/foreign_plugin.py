"""The process for one call of a plug-in: `python -m contextplane.adapters.tools.foreign_plugin` (`serving`).

Apart from that for functions, which need not load what finds plug-ins, and are called by the hundred.
"""

import sys

from contextplane.adapters.tools.plugins import plugin_tool
from contextplane.adapters.tools.serving import Find, serve
from contextplane.adapters.tools.workspace import Workspace

__all__ = ["plugged_in"]


def plugged_in(workspace: Workspace, _hosts: tuple[str, ...], _modules: tuple[str, ...]) -> Find:
    return lambda name: plugin_tool(name, workspace.root)


if __name__ == "__main__":
    serve(sys.argv[1:], plugged_in)
