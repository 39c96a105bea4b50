"""The tool `python`: a function of a module that was allowed by name. Nothing is imported before that is clear.

The process for one call of a Python function: `python -m contextplane.adapters.tools.function_worker` (`serving`).

Code of others can do with its process what it likes, so there is nothing in it but that call: no other call's answer
passes through its pipes.
"""

import importlib
import sys
from collections.abc import Iterable
from inspect import isfunction
from typing import cast

from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import Output, Parameters, Tool, text_of
from contextplane.adapters.tools.worker import Find, serve
from contextplane.errors import ContextPlaneError
from contextplane.model.json.canonical import Json, canonical
from contextplane.ports.tools import ToolFailed, ToolRefused

__all__ = ["functions", "python_tool", "returned_bytes"]


def python_tool(root: str, modules: Iterable[str]) -> Tool:
    """`python` for functions that these modules define themselves: installed ones, else those in the workspace."""
    allowed = frozenset(modules)

    def python(parameters: Parameters) -> bytes:
        """Call `function`, written `module:name`, with the object `arguments` as its keyword arguments."""
        name = text_of(parameters, "function")
        module, _, attribute = name.partition(":")
        if not module or not attribute:
            raise ToolRefused(f"function must be module:name, not {name[:80]!r}")
        if module not in allowed:
            raise ToolRefused(f"the module {module[:80]!r} is not allowed", hint="--allow-python allows one")
        arguments = parameters.get("arguments")
        if not isinstance(arguments, dict | None):
            raise ToolFailed("the parameter arguments must be an object")
        if root not in sys.path:
            # Last, so that no file of a workspace takes the place of a module that is installed.
            sys.path.append(root)
        function = getattr(importlib.import_module(module), attribute, None)
        # What a module only imported is another module's: `os` in it does not allow `os.system`.
        if attribute.startswith("_") or not isfunction(function) or function.__module__ != module:
            raise ToolRefused(f"{name[:80]!r} is no public function of an allowed module")
        return returned_bytes(function(**(arguments or {})))

    return python


def returned_bytes(value: object) -> bytes:
    """What code of others returned, as an output: bytes as they are, text in UTF-8, else its canonical JSON."""
    output = Output()
    if isinstance(value, bytes):
        output.add(value)
    elif isinstance(value, str):
        output.add(value.encode())
    else:
        try:
            output.add(canonical(cast("Json", value)))  # it refuses what is not JSON
        except ContextPlaneError as error:
            raise ToolFailed(f"returned what is neither bytes, text nor JSON: {error.message}") from None
    return output.whole()


def functions(workspace: Workspace, _hosts: tuple[str, ...], modules: tuple[str, ...]) -> Find:
    return {"python": python_tool(workspace.root, modules)}.__getitem__


if __name__ == "__main__":
    serve(sys.argv[1:], functions)
