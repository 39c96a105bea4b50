"""The tool `python`, which calls a function of an allowed module, and its worker process.

A module is imported only after its name was checked. Foreign code controls its process, so a process serves one call:
no response of another call passes through its pipes. Run as `python -m contextplane.adapters.tools.function_worker`.
"""

import importlib
import sys
from collections.abc import Iterable
from inspect import isfunction
from typing import cast

from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import OutputBuffer, Parameters, Tool, text_parameter
from contextplane.adapters.tools.worker import ToolLookup, serve
from contextplane.errors import ContextPlaneError
from contextplane.model.json.canonical import Json, canonical
from contextplane.ports.tools import ToolFailed, ToolRefused

__all__ = ["function_lookup", "output_bytes", "python_tool"]


def python_tool(root: str, modules: Iterable[str]) -> Tool:
    """Return `python` for the functions that these modules define.

    An installed module comes before one of that name in the workspace.
    """
    allowed = frozenset(modules)

    def python(parameters: Parameters) -> bytes:
        """Call `function`, written `module:name`, with the object `arguments` as its keyword arguments."""
        name = text_parameter(parameters, "function")
        module, _, attribute = name.partition(":")
        if not module or not attribute:
            raise ToolRefused(f"function must be module:name, not {name[:80]!r}")
        if module not in allowed:
            raise ToolRefused(f"the module {module[:80]!r} is not allowed", hint="--allow-python allows one")
        arguments = parameters.get("arguments")
        if not isinstance(arguments, dict | None):
            raise ToolFailed("the parameter arguments must be an object")
        if root not in sys.path:
            # Last, so that no file of a workspace shadows an installed module.
            sys.path.append(root)
        function = getattr(importlib.import_module(module), attribute, None)
        # Not what the module only imports: `os` in it does not allow `os.system`.
        if attribute.startswith("_") or not isfunction(function) or function.__module__ != module:
            raise ToolRefused(f"{name[:80]!r} is no public function of an allowed module")
        return output_bytes(function(**(arguments or {})))

    return python


def output_bytes(value: object) -> bytes:
    """Encode what foreign code returned: bytes unchanged, text as UTF-8, anything else as canonical JSON."""
    output = OutputBuffer()
    if isinstance(value, bytes):
        output.add(value)
    elif isinstance(value, str):
        output.add(value.encode())
    else:
        try:
            output.add(canonical(cast("Json", value)))  # raises for values that are not JSON
        except ContextPlaneError as error:
            raise ToolFailed(f"returned neither bytes, text nor JSON: {error.message}") from None
    return output.to_bytes()


def function_lookup(workspace: Workspace, _hosts: tuple[str, ...], modules: tuple[str, ...]) -> ToolLookup:
    return {"python": python_tool(workspace.root, modules)}.__getitem__


if __name__ == "__main__":
    serve(sys.argv[1:], function_lookup)
