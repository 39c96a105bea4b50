"""Plug-in tools, which are entry points of the group `contextplane.tools`, and their worker process.

A plug-in is a function `(parameters, workspace) -> bytes | str | JSON value`, named like its tool; `workspace` is the
path of the folder it may read. A call runs in its own process with the limits of every tool, and may write only to the
folder of temporary files. The version of a plug-in is that of its package.

Run as `python -m contextplane.adapters.tools.plugin_worker`. It is not `function_worker`, because loading what finds
plug-ins takes time, and functions are called by the hundred.
"""

import sys
from importlib.metadata import EntryPoint, entry_points

from contextplane.adapters.tools.function_worker import output_bytes
from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import Parameters, Tool
from contextplane.adapters.tools.worker import ToolLookup, serve
from contextplane.ports.tools import ToolFailed, ToolRefused, ToolUnknown

__all__ = ["GROUP", "plugin_lookup", "plugin_tool", "plugin_versions"]

GROUP = "contextplane.tools"


def plugin_versions() -> dict[str, str]:
    """Map the name of every plug-in to its version, without loading one."""
    return {
        entry_point.name: entry_point.dist.version if entry_point.dist else ""
        for entry_point in entry_points(group=GROUP)
    }


def plugin_tool(name: str, root: str) -> Tool:
    """Load a plug-in. None of its code runs before."""
    entry = _entry_point(name)
    function = entry.load()
    if not callable(function):
        raise ToolFailed(f"the plug-in {entry.value!r} is no function")

    def plugin(parameters: Parameters) -> bytes:
        return output_bytes(function(parameters, root))

    return plugin


def _entry_point(name: str) -> EntryPoint:
    matches = tuple({entry.value: entry for entry in entry_points(group=GROUP, name=name)}.values())
    if not matches:
        raise ToolUnknown(f"no plug-in is called {name[:80]!r}")
    if len(matches) > 1:
        raise ToolRefused(
            f"several plug-ins are called {name[:80]!r}: {', '.join(entry_point.value for entry_point in matches)}"
        )
    return matches[0]


def plugin_lookup(workspace: Workspace, _hosts: tuple[str, ...], _modules: tuple[str, ...]) -> ToolLookup:
    return lambda name: plugin_tool(name, workspace.root)


if __name__ == "__main__":
    serve(sys.argv[1:], plugin_lookup)
