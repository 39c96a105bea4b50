"""contextplane: the context plane for AI agents.

It decides what an agent may know and do, proves what it knew and did, and hands that knowledge on. This module holds
the version and nothing else, so that `ctx --version` costs no more than starting Python.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
