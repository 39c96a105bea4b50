"""Tools that other packages bring: entry points of the group `contextplane.tools`, named like the tool.

Each is a function `(parameters, workspace) -> bytes | str | JSON value`, where `workspace` is the path of the folder it
may look at. Each call runs in a process of its own, in the confines and with the limits of every tool, and may write
into the folder of temporary files only. Its version is that of the package that brings it.

The process for one call of a plug-in: `python -m contextplane.adapters.tools.plugin_worker` (`serving`).

Apart from that for functions, which need not load what finds plug-ins, and are called by the hundred.
"""

import sys
from importlib.metadata import EntryPoint, entry_points

from contextplane.adapters.tools.function_worker import returned_bytes
from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import Parameters, Tool
from contextplane.adapters.tools.worker import Find, serve
from contextplane.ports.tools import ToolFailed, ToolRefused, ToolUnknown

__all__ = ["GROUP", "plugged_in", "plugin_tool", "plugins"]

GROUP = "contextplane.tools"


def plugins() -> dict[str, str]:
    """The name and the version of every plug-in. None of them is loaded for that."""
    return {
        entry_point.name: entry_point.dist.version if entry_point.dist else ""
        for entry_point in entry_points(group=GROUP)
    }


def plugin_tool(name: str, root: str) -> Tool:
    """Load a plug-in. Only then does any code of it run."""
    entry = _entry(name)
    function = entry.load()
    if not callable(function):
        raise ToolFailed(f"the plug-in {entry.value!r} is no function")

    def plugin(parameters: Parameters) -> bytes:
        return returned_bytes(function(parameters, root))

    return plugin


def _entry(name: str) -> EntryPoint:
    found = tuple({entry.value: entry for entry in entry_points(group=GROUP, name=name)}.values())
    if not found:
        raise ToolUnknown(f"no plug-in is called {name[:80]!r}")
    if len(found) > 1:
        raise ToolRefused(
            f"several plug-ins are called {name[:80]!r}: {', '.join(entry_point.value for entry_point in found)}"
        )
    return found[0]


def plugged_in(workspace: Workspace, _hosts: tuple[str, ...], _modules: tuple[str, ...]) -> Find:
    return lambda name: plugin_tool(name, workspace.root)


if __name__ == "__main__":
    serve(sys.argv[1:], plugged_in)
