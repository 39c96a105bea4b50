"""Serve handoff packs to coding agents: an MCP server on standard input and output.

The tools are input (list, get, write, ttl, delete) and output (list, read); packs and recorded runs can be
read as resources. It ends when its input ends. A client starts it; 'mcp-context-pack' is the same server.
CONTEXT_PACK_ROOT names the folder of the packs, CONTEXT_PACK_SOURCE_ROOT the one that their code is in.
Without the first they are in the store that CTX_DIR names; else in .agents/mcp/context_pack, when there is
a store already; else in the .ctx found here or above; else a store is made in .agents/mcp/context_pack, for
this folder alone. Run 'ctx init' in a project first, and all servers below it share its packs.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    """It takes none: the client speaks to it."""


def run(_args: Namespace, _output: CommandOutput) -> int:
    from contextplane.mcp.main import run as serve

    return serve()
