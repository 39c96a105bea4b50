"""Serve handoff packs to coding agents over MCP, on standard input and output.

The tools are input (list, get, write, ttl, delete) and output (list, read). Packs and recorded runs can also be read
as resources. An MCP client starts the server, and it ends when its input ends. 'mcp-context-pack' is the same server.

The packs are in the first of these folders:
  - the one that CONTEXT_PACK_ROOT names
  - the store that CTX_DIR names
  - .agents/mcp/context_pack or .ctx, if it is a store: here, or in a folder above up to the root of the git repository;
    in a git worktree, then those of the main worktree
  - the nearest .ctx above
  - .agents/mcp/context_pack as a new store, in the root of the git repository; without one, here

Packs refer to code below the folder that holds the store, or below the root of the repository if the store is outside
of it. CONTEXT_PACK_SOURCE_ROOT names another folder.

Examples:
  ctx mcp    serve until the input ends
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    """It takes none: the client speaks to it."""


def run(_args: Namespace, _output: CommandOutput) -> int:
    from contextplane.mcp.main import run as serve

    return serve()
