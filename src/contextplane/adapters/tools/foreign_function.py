"""The process for one call of a Python function: `python -m contextplane.adapters.tools.foreign_function` (`serving`).

Code of others can do with its process what it likes, so there is nothing in it but that call: no other call's answer
passes through its pipes.
"""

import sys

from contextplane.adapters.tools.functions import python_tool
from contextplane.adapters.tools.serving import Find, serve
from contextplane.adapters.tools.workspace import Workspace

__all__ = ["functions"]


def functions(workspace: Workspace, _hosts: tuple[str, ...], modules: tuple[str, ...]) -> Find:
    return {"python": python_tool(workspace.root, modules)}.__getitem__


if __name__ == "__main__":
    serve(sys.argv[1:], functions)
